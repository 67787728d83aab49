"""One sink for everything a process says, and no secret passes it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from typing import Any

import pytest

from dragoman.observe.logs import TextFormatter
from dragoman.redact import REDACTED, Redactor

SECRET = "the canary, whatever it looks like"

#: All the ways in which Python says something, each with a secret that nobody could know by its shape.
TALKATIVE = f"""
import asyncio, logging, threading, warnings
from dragoman.observe.logs import configure_logging
from dragoman.redact import Redactor

SECRET = {SECRET!r}
configure_logging(Redactor([SECRET]))
configure_logging(Redactor([SECRET]))  # once more changes nothing
logging.getLogger("dragoman").info("1 our own: %s", SECRET)
logging.getLogger("anybody.else").warning("2 a library's: %s", SECRET)
logging.getLogger("anybody.else").info("a library's chatter")
try:
    raise ValueError(SECRET)
except ValueError:
    logging.getLogger("dragoman").exception("3 a traceback")
warnings.warn("4 a warning: " + SECRET)
def die():
    raise ValueError("5 a thread: " + SECRET)
thread = threading.Thread(target=die)
thread.start(); thread.join()
class Odd:
    def __del__(self):
        raise ValueError("6 a finaliser: " + SECRET)
del (odd := [Odd()])[0]
async def fail():
    raise ValueError("7 a forgotten task: " + SECRET)
async def main():
    task = asyncio.get_running_loop().create_task(fail())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    del task
    asyncio.get_running_loop().call_soon(lambda: 1 / 0 if SECRET else None)
    await asyncio.sleep(0.01)
asyncio.run(main())
"""


@pytest.mark.parametrize("form", ["text", "json"])
def test_o5_nothing_a_process_can_say_gets_past_the_sink(form: str) -> None:
    talk = TALKATIVE.replace(
        "configure_logging(Redactor([SECRET]))", f"configure_logging(Redactor([SECRET]), form={form!r})"
    )
    done = subprocess.run([sys.executable, "-c", talk], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert SECRET not in done.stderr
    for number in range(1, 8):
        assert done.stderr.count(f"{number} a") + done.stderr.count(f"{number} our own") >= 1, done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert "chatter" not in done.stderr
    assert done.stderr.count("1 our own") == 1
    if form == "json":
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        assert {line["level"] for line in lines} == {"info", "warning", "error"}
        (failed,) = [line for line in lines if line["message"] == "3 a traceback"]
        assert failed["traceback"].endswith("ValueError: [redacted]")


def said(message: str, *args: Any, error: Exception | None = None) -> str:
    info = (type(error), error, None) if error is not None else None
    record = logging.LogRecord("dragoman", logging.INFO, "x.py", 1, message, args, info)
    return TextFormatter(Redactor([SECRET])).format(record)


def test_o5_messages_arguments_and_errors_are_cleaned() -> None:
    assert said(f"{SECRET} %s", f"AIza{'x' * 35}") == f"{REDACTED} {REDACTED}"
    assert said("oops", error=ValueError(f"password={'x' * 9}")) == f"oops\nValueError: password={REDACTED}"


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("/v1\nreq_fake POST /v1/messages 200", r"/v1\nreq_fake POST /v1/messages 200"),
        ("/v1\r\x1b[2Jx", r"/v1\r\x1b[2Jx"),
        ("a\u2028b\x85c", r"a\u2028b\x85c"),
        ("é😀", "é😀"),
    ],
)
def test_nobody_writes_a_line_of_his_own(hostile: str, shown: str) -> None:
    assert said("%s", hostile) == shown
