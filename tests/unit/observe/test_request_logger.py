"""One line a request: words for people, fields for programs, nothing that anybody wrote."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from dragoman.ir import Usage
from dragoman.notes import Note
from dragoman.observe.logs import JsonFormatter, RequestLogger, log_fields
from dragoman.observe.record import Attempt, RequestRecord
from dragoman.redact import Redactor

SECRET = "a-canary-of-nobodys-shape"
GOOD = RequestRecord(
    id="req_1",
    started_s=1.0,
    method="POST",
    path="/v1/messages",
    client="claude-cli/2.1",
    dialect="anthropic",
    session="s1",
    model="gemini-x",
    status=200,
    stream=True,
    usage=Usage(input_tokens=7, output_tokens=3),
    notes=(Note("dropped", "tools[0]", "words of a schema"),),
    calls=("Read",),
    attempts=(Attempt(model="gemini-x", status=200),),
    total_ms=12,
    trace="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
)


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter(Redactor([SECRET])))
    logger = logging.getLogger("dragoman")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_of_json_has_the_facts(written: io.StringIO) -> None:
    RequestLogger("all").on_request_end(GOOD, None)
    (line,) = lines(written)
    assert line.pop("time").endswith("Z")
    assert line.pop("message").startswith("req_1 POST /v1/messages gemini-x 200 in 12 ms")
    assert line == {
        "level": "info",
        "logger": "dragoman",
        "request_id": "req_1",
        "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
        "method": "POST",
        "path": "/v1/messages",
        "client": "claude-cli/2.1",
        "dialect": "anthropic",
        "session": "s1",
        "model": "gemini-x",
        "status": 200,
        "stream": True,
        "input_tokens": 7,
        "output_tokens": 3,
        "calls": 1,
        "attempts": 1,
        "notes": 1,
        "total_ms": 12,
    }


def test_o5_nobodys_words_and_no_secrets(written: io.StringIO) -> None:
    hostile = f'x" , "level": "forged\n\x1b[31m {SECRET} AIza{"x" * 35}'
    RequestLogger("all").on_request_end(
        RequestRecord(id="r", started_s=1, method="GET", path=hostile, client=hostile), None
    )
    RequestLogger("all").on_request_end(GOOD, None)
    first, second = lines(written)
    assert first["level"] == second["level"] == "info"
    assert first["path"].startswith('x" , "level": "forged\n')
    assert SECRET not in written.getvalue()
    assert "AIza" not in written.getvalue()
    for word in ("Read", "words of a schema"):
        assert word not in written.getvalue()


@pytest.mark.parametrize(
    ("which", "levels"), [("off", []), ("errors", ["warning"]), ("all", ["info", "warning"])]
)
def test_which_requests_have_a_line(
    written: io.StringIO, which: Literal["off", "errors", "all"], levels: list[str]
) -> None:
    log = RequestLogger(which)
    log.on_request_end(GOOD, None)
    log.on_request_end(
        RequestRecord(id="r", started_s=1, method="POST", path="/", client="", error="quota"), None
    )
    assert [line["level"] for line in lines(written)] == levels


def test_fields_that_are_empty_are_left_out() -> None:
    empty = RequestRecord(id="r", started_s=1, method="GET", path="/", client="")
    assert log_fields(empty) == {"request_id": "r", "method": "GET", "path": "/"}
