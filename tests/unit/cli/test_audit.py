"""`dragoman audit`: who did what, found fast, shown safely."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.cli.inspect import audit
from dragoman.tools.audit import AuditLog
from dragoman.tools.handler import Decision, ExecutionRecord

WROTE = ExecutionRecord(
    session="session-1-long-name",
    caller="anna",
    tool="write_file",
    args=b'{"path":"a"}',
    is_error=False,
    result_bytes=12,
    duration_s=0.25,
    decision=Decision(allowed=True, by="allow rule write_file"),
    at_s=1_790_000_000.0,
)


def execution(**changes: Any) -> ExecutionRecord:
    return msgspec.structs.replace(WROTE, **changes)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    monkeypatch.delenv("DRAGOMAN_CONFIG", raising=False)
    monkeypatch.setenv("TZ", "UTC")
    log = AuditLog(tmp_path / "audit.jsonl")
    log.record(WROTE)
    denied = Decision(allowed=False, by="deny rule run_command", reason="no")
    log.record(execution(session="two", tool="run_command", decision=denied, outcome="refused"))
    log.record(execution(session="two", tool="read_file", outcome="refused"))
    log.record(execution(session="two", tool="mcp__a__b", outcome="timeout"))
    return tmp_path


def show(capsys: pytest.CaptureFixture[str], *argv: str) -> list[str]:
    assert audit.run(list(argv)) == 0
    return capsys.readouterr().out.splitlines()


def tools(lines: list[str]) -> list[str]:
    return [json.loads(line)["tool"] for line in lines]


def test_the_table_has_a_head_and_a_row_for_each(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head, first, *rest = show(capsys)
    assert head.split() == ["time", "session", "tool", "outcome", "by", "ms", "bytes", "arguments"]
    for word in ("session-1-lo", "write_file", "ok", "allow rule write_file", "250", "12"):
        assert f" {word} " in first, word
    assert "session-1-long-name" not in first
    assert len(rest) == 3


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        ([], ["write_file", "run_command", "read_file", "mcp__a__b"]),
        (["--session", "session-1"], ["write_file"]),
        (["--tool", "mcp__*"], ["mcp__a__b"]),
        (["--tool", "write_file"], ["write_file"]),
        (["--denied"], ["run_command", "read_file"]),
        (["-n", "1"], ["mcp__a__b"]),
        (["-n", "0"], []),
        (["--session", "two", "--denied", "-n", "1"], ["read_file"]),
    ],
)
def test_filters_find_what_one_looks_for(
    home: Path, capsys: pytest.CaptureFixture[str], argv: list[str], found: list[str]
) -> None:
    assert tools(show(capsys, "--json", *argv)) == found


def test_full_entries_show_the_arguments_and_never_move_the_cursor(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = execution(session="evil\x1b[2J", args=b'{"path":"\\u001b[31mred\\u202e"}')
    AuditLog(home / "audit.jsonl", detail="full").record(evil)
    row = show(capsys, "--session", "evil")[1]
    assert "\x1b" not in row
    assert "\u202e" not in row
    assert '{"path":"' in row


def test_an_empty_log_and_a_filter_without_a_hit_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    audit.run([])
    assert capsys.readouterr().err == f"dragoman: no entries in {tmp_path}/audit.jsonl\n"
    AuditLog(tmp_path / "audit.jsonl").record(WROTE)
    audit.run(["--tool", "x"])
    assert capsys.readouterr().err == f"dragoman: no matching entries in {tmp_path}/audit.jsonl\n"


def test_damage_is_told_and_does_not_hide_the_rest(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (home / "audit.jsonl").open("ab") as file:
        file.write(b'{"torn\n')
    assert audit.run([]) == 0
    said = capsys.readouterr()
    assert "1 damaged lines were skipped" in said.err
    assert len(said.out.splitlines()) == 5


def test_a_number_below_nothing_is_wrong_usage(home: Path) -> None:
    with pytest.raises(Exception, match="-n must be at least 0, not -1"):
        audit.run(["-n", "-1"])


def test_following_shows_what_happens_next_and_only_what_was_asked_for(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = AuditLog(home / "audit.jsonl")
    rounds = iter(["new", "other", None])

    def sleep(_seconds: float) -> None:
        name = next(rounds)
        if name is None:
            raise KeyboardInterrupt
        log.record(execution(session=name))

    monkeypatch.setattr(audit, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        audit.run(["-f", "--json", "--session", "new"])
    assert [json.loads(line)["session"] for line in capsys.readouterr().out.splitlines()] == ["new"]


def test_following_an_empty_log_waits_under_a_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def sleep(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    monkeypatch.setattr(audit, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        audit.run(["--follow"])
    said = capsys.readouterr()
    assert said.out.startswith("time ")
    assert said.err == ""


def test_a_person_sees_colours(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    rows = show(capsys)
    assert "\x1b[32mok" in rows[1]
    assert "\x1b[33mrefused" in rows[2]
    assert "\x1b[31mtimeout" in rows[4]


def test_the_command_is_there(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "audit", "--json", "-n", "1"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["tool"] == "mcp__a__b"
