"""run_command: no shell by accident, no key, no end of output, nothing left running."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.ir import Text, ToolCall
from dragoman.schema import check_args
from dragoman.tools import process
from dragoman.tools.bubblewrap import Isolation
from dragoman.tools.definition import Context, ToolOutput
from dragoman.tools.errors import ToolFailed, ToolRefused
from dragoman.tools.handler import Handler
from dragoman.tools.process import HeadAndTail
from dragoman.tools.registry import Registry
from dragoman.tools.run_command import command_tool, minimal_environment, preview, read_argv, subject

BARE = Isolation(note="commands are not isolated: for a test")
WAIT_S = 20.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    return root


async def run(
    root: Path, args: dict[str, Any], progress: Callable[[str], None] = lambda _: None, **settings: Any
) -> tuple[str, bool]:
    tool = command_tool(root, isolation=BARE, **settings)
    assert check_args(msgspec.json.encode(args), tool.schema) == ()
    assert tool.execute is not None
    output = await tool.execute(args, Context(progress=progress))
    assert isinstance(output, ToolOutput)
    (text,) = output.content
    assert isinstance(text, Text)
    return text.text, output.is_error


async def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        await asyncio.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return (
            f"{pid} (" in Path(f"/proc/{pid}/stat").read_text()
            and ") Z " not in Path(f"/proc/{pid}/stat").read_text()
        )
    except FileNotFoundError:
        return False


async def test_both_outputs_come_in_order_with_the_exit_code(root: Path) -> None:
    said, failed = await run(root, {"command": ["sh", "-c", "echo out; echo err >&2; echo end; exit 3"]})
    assert said == "out\nerr\nend\n[exit code 3]"
    assert failed


async def test_success_is_no_error_and_output_need_not_end_in_a_newline(root: Path) -> None:
    assert await run(root, {"command": "printf hello"}) == ("hello\n[exit code 0]", False)
    assert await run(root, {"command": ["true"]}) == ("[exit code 0]", False)


async def test_a_signal_is_told_apart_from_an_exit_code(root: Path) -> None:
    assert await run(root, {"command": ["sh", "-c", "kill -9 $$"]}) == ("[ended by signal 9]", True)


async def test_it_runs_in_the_root_or_a_folder_below(root: Path) -> None:
    assert (await run(root, {"command": "pwd"}))[0].startswith(str(root))
    assert (await run(root, {"command": "pwd", "cwd": "sub"}))[0].startswith(f"{root}/sub\n")


@pytest.mark.parametrize(
    ("cwd", "error", "reason"),
    [
        ("..", ToolRefused, "outside of the project"),
        ("/etc", ToolRefused, "outside of the project"),
        ("out", ToolRefused, "outside of the project"),
        ("a\0b", ToolRefused, "is no path"),
        ("missing", ToolFailed, "there is no folder"),
    ],
)
async def test_it_does_not_start_outside(root: Path, cwd: str, error: type[Exception], reason: str) -> None:
    (root / "out").symlink_to("/tmp")
    with pytest.raises(error, match=reason):
        await run(root, {"command": "pwd", "cwd": cwd})


async def test_there_is_no_input_to_wait_for(root: Path) -> None:
    assert await run(root, {"command": "cat"}) == ("[exit code 0]", False)


async def test_keys_are_not_passed_on_even_when_asked_for(root: Path) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "GEMINI_API_KEY": "AIza-secret",
        "GOOGLE_APPLICATION_CREDENTIALS": "/secret",
        "DRAGOMAN_GATEWAY_KEY": "secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "WANTED": "yes",
    }
    said, _ = await run(
        root, {"command": "env"}, environ=environ, pass_env=["WANTED", "GEMINI_API_KEY", "NOT_SET"]
    )
    assert "secret" not in said
    assert "WANTED=yes" in said
    assert minimal_environment({"google_api_key": "x", "LANG": "C"}, ["google_api_key"]) == {"LANG": "C"}


async def test_a_program_that_cannot_start_is_a_clean_failure(root: Path) -> None:
    with pytest.raises(ToolFailed, match="there is no program 'no-such-program'"):
        await run(root, {"command": "no-such-program"})
    with pytest.raises(ToolFailed, match="missing cannot be started: No such file"):
        await run(root, {"command": "./missing"})
    with pytest.raises(ToolFailed, match="cannot be started: embedded null byte"):
        await run(root, {"command": ["ls", "a\0b"]})


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("git log -1", ["git", "log", "-1"]),
        ("grep 'a|b' x", ["grep", "a|b", "x"]),
        ("echo '#x' #y", ["echo", "#x", "#y"]),
        ("echo a=b:c,d~", ["echo", "a=b:c,d~"]),
        (["echo", "; rm"], ["echo", "; rm"]),
    ],
)
def test_a_string_is_split_and_a_list_taken_as_it_is(command: Any, argv: list[str]) -> None:
    assert read_argv({"command": command}) == argv


@pytest.mark.parametrize(
    "command", ["ls; rm x", "ls ; rm", "a && b", "a || b", "a | b", "a > b", "a>b", "a &", "(a)", "a <b"]
)
def test_what_only_a_shell_understands_is_not_guessed_at(command: str) -> None:
    with pytest.raises(ToolFailed, match="means nothing without a shell"):
        read_argv({"command": command})


def test_a_command_that_is_none_is_refused() -> None:
    with pytest.raises(ToolFailed, match="No closing quotation"):
        read_argv({"command": "echo 'x"})
    with pytest.raises(ToolFailed, match="is empty"):
        read_argv({"command": "   "})


async def test_a_shell_is_used_when_asked_for_and_named_in_what_rules_see(root: Path) -> None:
    args = {"command": "echo a | tr a b && echo $((1+1))", "shell": True}
    assert (await run(root, args))[0] == "b\n2\n[exit code 0]"
    assert shlex.split(subject(args)) == ["/bin/sh", "-c", args["command"]]
    assert subject({"command": ["a b", "c"], "shell": True}) == """/bin/sh -c ''"'"'a b'"'"' c'"""


def test_a_person_sees_the_exact_command_and_where_it_runs() -> None:
    assert preview({"command": "ls -l"}) == "$ ls -l"
    assert preview({"command": ["rm", "a b"], "cwd": "sub"}) == "$ rm 'a b'\n(in sub)"


async def test_a_time_out_ends_the_whole_family_and_keeps_the_output(root: Path) -> None:
    script = "trap '' TERM; sleep 300 & echo $!; wait; sleep 300"
    said, failed = await run(root, {"command": ["sh", "-c", script], "timeout_s": 0.5})
    pid = int(said.split()[0])
    assert said.endswith("\n[stopped after 0.5 s, with everything it had started]")
    assert failed
    await eventually(lambda: not alive(pid))


async def test_what_is_left_in_the_background_ends_with_the_command(root: Path) -> None:
    said, failed = await run(root, {"command": ["sh", "-c", "sleep 300 & echo $!"], "timeout_s": 60})
    assert not failed
    await eventually(lambda: not alive(int(said.split()[0])))


async def test_a_child_that_left_the_family_cannot_hold_the_answer_back(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_DRAIN_S", 0.05)
    script = "setsid sleep 300 & echo $!; until [ $(cat /proc/$!/comm) = sleep ]; do sleep 0.02; done"
    said, _ = await run(root, {"command": ["sh", "-c", script]})
    pid = int(said.split()[0])
    assert alive(pid)
    os.kill(pid, 9)


async def test_cancelling_the_call_ends_the_command(root: Path) -> None:
    tool = command_tool(root, isolation=BARE)
    assert tool.execute is not None
    file = root / "pid"
    script = f"echo $$ > {file}.new; mv {file}.new {file}; sleep 300"
    work = asyncio.ensure_future(tool.execute({"command": ["sh", "-c", script]}, Context()))
    await eventually(file.exists)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert not alive(int(file.read_text()))


async def test_endless_output_is_cut_in_the_middle(root: Path) -> None:
    script = "print('first'); [print('x' * 99) for _ in range(5000)]; print('last')"
    said, _ = await run(root, {"command": [sys.executable, "-c", script]}, max_output_bytes=1000)
    assert said.startswith("first\nxxx")
    assert said.endswith("xxx\nlast\n[exit code 0]")
    assert "\n[… 499011 bytes left out …]\n" in said
    assert len(said) < 1100


def test_the_middle_is_counted_however_the_output_comes() -> None:
    whole = bytes(range(65, 91)) * 4
    for size in (1, 3, 50, 104):
        kept = HeadAndTail(21)
        for start in range(0, len(whole), size):
            kept.feed(whole[start : start + size])
        assert kept.text() == f"{whole[:10].decode()}\n[… 83 bytes left out …]\n{whole[-11:].decode()}"


def test_a_letter_across_the_halves_stays_a_letter_when_nothing_is_cut() -> None:
    kept = HeadAndTail(4)
    kept.feed("aéb".encode())
    assert kept.text() == "aéb"


async def test_people_hear_that_nothing_is_isolated_and_what_is_printed(root: Path) -> None:
    heard: list[str] = []
    await run(root, {"command": ["sh", "-c", "echo one; echo two"]}, progress=heard.append)
    assert heard[0] == BARE.note
    assert heard[-1] in ("one", "two")


async def test_progress_is_no_flood(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_PROGRESS_S", 1000.0)
    heard: list[str] = []
    await run(
        root, {"command": ["sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.05; done"]}, progress=heard.append
    )
    assert heard == [BARE.note, "1"]


async def test_the_handler_runs_it_like_every_tool(root: Path) -> None:
    handler = Handler(Registry([command_tool(root, isolation=BARE)]))
    result = await handler.execute(ToolCall(id="1", name="run_command", args=b'{"command":"echo hi"}'))
    assert result.content == (Text(text="hi\n[exit code 0]"),)
    refused = await handler.execute(ToolCall(id="2", name="run_command", args=b'{"command":[]}'))
    assert refused.is_error
