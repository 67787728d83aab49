"""The audit log: every execution, once, whole, unreadable to others, and without secrets."""

from __future__ import annotations

import errno
import multiprocessing
import os
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.errors import ConfigError
from dragoman.tools.audit import (
    AuditEntry,
    AuditFollower,
    AuditLog,
    decode_entry,
    last_entries,
    log_files,
    rotated_path,
)
from dragoman.tools.handler import Decision, ExecutionRecord

WROTE = ExecutionRecord(
    session="s1",
    caller="anna",
    tool="write_file",
    args=b'{"path":"a","token":"hunter2hunter2"}',
    is_error=False,
    result_bytes=12,
    duration_s=0.0123456,
    decision=Decision(allowed=True, by="once, said the user"),
    at_s=1_790_000_000.1234,
)


def execution(**changes: Any) -> ExecutionRecord:
    return msgspec.structs.replace(WROTE, **changes)


def lines(path: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def test_an_entry_says_who_what_how_long_and_who_allowed_it(path: Path) -> None:
    AuditLog(path).record(WROTE)
    assert lines(path) == [
        {
            "at": "2026-09-21T14:13:20.123000Z",
            "tool": "write_file",
            "outcome": "ok",
            "allowed": True,
            "by": "once, said the user",
            "session": "s1",
            "caller": "anna",
            "digest": "183ead7326a06194",
            "bytes": 12,
            "seconds": 0.0123,
            "pid": os.getpid(),
        }
    ]
    assert b"hunter2" not in path.read_bytes()


def test_nobody_else_may_read_it_even_where_the_umask_would_let_them(path: Path) -> None:
    before = os.umask(0)
    try:
        AuditLog(path, max_bytes=1).record(WROTE)
        AuditLog(path, max_bytes=1).record(WROTE)
    finally:
        os.umask(before)
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_full_entries_keep_the_arguments_without_the_secrets(path: Path) -> None:
    log = AuditLog(path, detail="full")
    log.record(WROTE)
    log.record(execution(args=b'{"text":"' + b"x" * 9000 + b'"}'))
    log.record(execution(args=b"no json AIzaSyA1234567890123456789012345678901"))
    first, second, third = lines(path)
    assert first["args"] == {"path": "a", "token": "[redacted]"}
    assert second["args"] == {"text": "x" * 8192 + " [808 more characters]"}
    assert third["args"] == "no json [redacted]"


def test_reasons_are_kept_without_secrets_and_nameless_callers_have_a_uid(path: Path) -> None:
    decision = Decision(
        allowed=False, by="deny rule run_command(x --token abcdefgh)", reason="password=hunter2"
    )
    AuditLog(path).record(execution(decision=decision, caller="", outcome="refused"))
    (entry,) = lines(path)
    assert entry["allowed"] is False
    assert entry["by"] == "deny rule run_command(x --token [redacted]"
    assert entry["reason"] == "password=[redacted]"
    assert entry["caller"] == f"uid {os.getuid()}"


def test_old_files_move_up_and_only_so_many_are_kept(path: Path) -> None:
    log = AuditLog(path, max_bytes=300, keep=2)
    for number in range(8):
        log.record(execution(session=str(number)))
    assert [file.name for file in log_files(path)] == ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]
    kept = [entry.session for entry in last_entries(path, lambda _: True, 100)[0]]
    assert kept == ["5", "6", "7"]


def test_a_line_larger_than_the_limit_is_written_all_the_same(path: Path) -> None:
    log = AuditLog(path, max_bytes=10, keep=3)
    log.record(WROTE)
    assert len(lines(path)) == 1
    assert not rotated_path(path, 1).exists()


def test_a_file_that_was_taken_away_is_made_again(path: Path) -> None:
    log = AuditLog(path)
    path.unlink()
    log.record(WROTE)
    assert len(lines(path)) == 1


def _write_many(path: Path, name: str) -> None:
    log = AuditLog(path, max_bytes=20_000, keep=100)
    for number in range(200):
        log.record(execution(session=f"{name}-{number}"))


def test_processes_that_write_and_rotate_at_once_lose_nothing(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write_many, args=(path, f"p{number}")) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    entries, damaged = last_entries(path, lambda _: True, 10_000)
    assert damaged == 0
    assert len(log_files(path)) > 3
    assert sorted(entry.session for entry in entries) == sorted(
        f"p{p}-{n}" for p in range(3) for n in range(200)
    )


def test_a_rotation_that_another_process_has_done_is_not_done_again(path: Path) -> None:
    log = AuditLog(path, max_bytes=300)
    log.record(WROTE)
    log._rotate(b"x" * 10)
    assert not rotated_path(path, 1).exists()


def test_a_folder_that_cannot_be_written_is_said_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written: No such file"):
        AuditLog(tmp_path / "missing" / "audit.jsonl")


def test_a_link_in_place_of_the_log_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError):
        AuditLog(path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_full_disk_is_an_error_unless_somebody_wants_to_hear_of_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    heard: list[str] = []
    log, tolerant = AuditLog(path), AuditLog(path, on_loss=heard.append)
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        log.record(WROTE)
    tolerant.record(WROTE)
    assert heard == [f"{path}: an execution of write_file was not logged: No space left on device"]


def test_a_torn_line_does_not_swallow_the_next_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    log = AuditLog(path, on_loss=lambda _: None)
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:40]))
    log.record(WROTE)
    monkeypatch.undo()
    log.record(WROTE)
    entries, damaged = last_entries(path, lambda _: True, 10)
    assert (len(entries), damaged) == (1, 1)


def test_the_last_entries_are_found_over_all_files_and_in_order(path: Path) -> None:
    log = AuditLog(path, max_bytes=500)
    for number in range(9):
        log.record(execution(session=str(number), tool="a" if number % 2 else "b"))
    (path.parent / "audit.jsonl.bak").write_text("not ours")
    found, _ = last_entries(path, lambda entry: entry.tool == "a", 3)
    assert [entry.session for entry in found] == ["3", "5", "7"]
    assert last_entries(path, lambda _: True, 0) == ([], 0)
    path.unlink()
    assert [entry.session for entry in last_entries(path, lambda _: True, 1)[0]] == ["7"]


def test_no_log_is_an_empty_log(path: Path) -> None:
    assert last_entries(path, lambda _: True, 5) == ([], 0)


@pytest.mark.parametrize("line", [b"", b"{", b'{"tool":"x"}', b'"\xff"', b"[" * 100_000])
def test_any_damage_is_passed_over(line: bytes) -> None:
    assert decode_entry(line) is None


def test_the_tail_follows_through_a_rotation_and_tells_nothing_twice(path: Path) -> None:
    log = AuditLog(path, max_bytes=500)
    log.record(execution(session="old"))
    tail = AuditFollower(path)
    seen: list[AuditEntry] = tail.read_new()
    for number in range(7):
        log.record(execution(session=str(number)))
        if number % 2:
            seen += tail.read_new()
    seen += tail.read_new()
    tail.close()
    assert [entry.session for entry in seen] == [str(number) for number in range(7)]


def test_the_tail_misses_nothing_that_is_written_just_before_the_file_is_set_aside(path: Path) -> None:
    log = AuditLog(path)
    log.record(execution(session="old"))

    class Overtaken(AuditFollower):
        def _moved(self) -> bool:
            log.record(execution(session="just before"))
            path.replace(rotated_path(path, 1))
            log.record(execution(session="after"))
            return super()._moved()

    tail = Overtaken(path)
    assert [entry.session for entry in tail.read_new()] == ["just before", "after"]
    tail.close()


def test_the_tail_waits_for_a_log_and_for_the_end_of_a_line(path: Path) -> None:
    tail = AuditFollower(path)
    assert tail.read_new() == []
    AuditLog(path).record(WROTE)
    whole = path.read_bytes()
    path.write_bytes(whole[:30])
    assert tail.read_new() == []
    with path.open("ab") as file:
        file.write(whole[30:])
    assert [entry.tool for entry in tail.read_new()] == ["write_file"]
    path.unlink()
    assert tail.read_new() == []
    tail.close()
    tail.close()
