"""Captures are bounded, private, found by their beginning, and never in anybody's way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dragoman.notes import Note
from dragoman.observe.captures import (
    CaptureWriter,
    build_capture,
    find_capture,
    read_capture,
    recent_captures,
)
from dragoman.observe.compare import annotate, diff_bodies
from dragoman.observe.record import RequestRecord, RequestStages
from dragoman.redact import Redactor


def record(identity: str) -> RequestRecord:
    return RequestRecord(id=identity, started_s=1.0, method="POST", path="/v1/messages", client="c")


def stages(text: bytes = b"{}") -> RequestStages:
    return RequestStages(client_request=text, upstream=((b"{}", b"\xff\xfe frames"),), client_answer=b"{}")


async def keep(captures: CaptureWriter, *identities: str, size: int = 10) -> None:
    for identity in identities:
        captures.on_request_end(record(identity), stages(b'"' + b"x" * size + b'"'))
    await captures.close()


async def test_what_was_kept_is_found_by_its_beginning(tmp_path: Path) -> None:
    await keep(CaptureWriter(tmp_path / "c", max_bytes=1 << 20), "req_abc", "req_abd", "req_x")
    folder = tmp_path / "c"
    found = find_capture(folder, "req_x")
    assert found is not None
    assert found.record == record("req_x")
    assert found.upstream[0].answer.data == b"\xff\xfe frames"
    assert find_capture(folder, "req_ab") is None, "two begin like that"
    assert find_capture(folder, "req_abc") is not None
    for nothing in ("", "nothing", "../c/req_x", "req_x/"):
        assert find_capture(folder, nothing) is None
    assert (folder / "req_x.json").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


async def test_an_id_that_begins_another_is_still_found(tmp_path: Path) -> None:
    await keep(CaptureWriter(tmp_path, max_bytes=1 << 20), "req_a", "req_ab")
    found = find_capture(tmp_path, "req_a")
    assert found is not None
    assert found.record.id == "req_a"


async def test_the_oldest_go_first(tmp_path: Path) -> None:
    roomy = CaptureWriter(tmp_path, max_bytes=1 << 20)
    await keep(roomy, *(f"req_{number}" for number in range(9)), size=1_000)
    for number in range(9):
        os.utime(tmp_path / f"req_{number}.json", (number, number))
    CaptureWriter(tmp_path, max_bytes=5_000).prune()
    left = [found.record.id for found in recent_captures(tmp_path, 99)]
    assert left[0] == "req_8"
    assert 1 < len(left) < 5
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 5_000


async def test_the_bound_holds_while_captures_are_written(tmp_path: Path) -> None:
    most = 200_000
    await keep(
        CaptureWriter(tmp_path, max_bytes=most), *(f"req_{number:03}" for number in range(120)), size=10_000
    )
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= most * 1.2
    assert find_capture(tmp_path, "req_119") is not None


async def test_a_capture_that_another_worker_has_just_taken_away_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "gone.json").symlink_to("nowhere")
    await keep(CaptureWriter(tmp_path, max_bytes=1 << 20), "req_a")
    assert [found.record.id for found in recent_captures(tmp_path, 9)] == ["req_a"]
    assert caplog.text == ""


async def test_a_capture_that_fails_for_any_reason_costs_itself_and_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Redactor):
        def body(self, data: bytes) -> bytes:
            if b"yyy" in data:
                raise RecursionError
            return data

    captures = CaptureWriter(tmp_path, max_bytes=1 << 20, redactor=Broken())
    captures.on_request_end(record("req_bad"), stages(b'"yyy"'))
    await keep(captures, "req_good")
    assert [found.record.id for found in recent_captures(tmp_path, 9)] == ["req_good"]
    assert "req_bad could not be captured" in caplog.text


async def test_how_many_captures_were_lost_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    captures = CaptureWriter(tmp_path, max_bytes=1 << 20)
    captures._dropped = 3
    await keep(captures, "req_a")
    assert "3 captures were lost" in caplog.text


async def test_requests_without_a_body_or_a_capture_are_not_kept(tmp_path: Path) -> None:
    captures = CaptureWriter(tmp_path / "c", max_bytes=1)
    captures.on_request_end(record("a"), None)
    captures.on_request_end(record("b"), RequestStages())
    await captures.close()
    assert recent_captures(tmp_path / "c", 9) == []


async def test_a_disk_that_refuses_costs_captures_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "c").write_text("in the way")
    await keep(CaptureWriter(tmp_path / "c", max_bytes=1), "req_a")
    assert "could not be written" in caplog.text


async def test_a_slow_disk_loses_captures_instead_of_holding_up_requests(tmp_path: Path) -> None:
    captures = CaptureWriter(tmp_path, max_bytes=1 << 20)
    captures._writer = object()  # type: ignore[assignment]  # nobody takes anything out
    for number in range(300):
        captures.on_request_end(record(f"r{number}"), stages())
    assert captures._dropped == 300 - 256


def test_a_file_that_is_being_written_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "half.json").write_text('{"record":')
    assert read_capture(tmp_path / "half.json") is None
    assert recent_captures(tmp_path, 5) == []


def test_secrets_are_taken_out() -> None:
    said = b'{"text": "AIzaSyD-0123456789012345678901234567890 known-secret"}'
    whole = RequestStages(
        client_request=said,
        headers={"x-amz-target": "known-secret"},
        query={"x": "known-secret", "X-Amz-Security-Token": "unknown"},
        upstream=((said, b"\xff frame known-secret"),),
        client_answer=said,
    )
    kept = build_capture(record("a"), whole, Redactor(["known-secret"]))
    assert kept.client_request.text == kept.client_answer.text == '{"text": "[redacted] [redacted]"}'
    assert kept.upstream[0].request == kept.client_request
    assert kept.upstream[0].answer.data == b"\xff frame [redacted]"
    assert kept.headers == {"x-amz-target": "[redacted]"}
    assert kept.query == {"x": "[redacted]", "X-Amz-Security-Token": "[redacted]"}


def test_notes_stand_where_they_belong() -> None:
    notes = [
        Note("dropped", "tools[0].x", "why"),
        Note("moved", "nowhere", "why"),
        Note("dropped", "", "all"),
    ]
    lines, elsewhere = annotate({"tools": [{"x": [1, {}], "long": "y" * 20}], "e": []}, notes, longest=10)
    marked = [line for line in lines if line.notes]
    assert [line.text.strip() for line in marked] == ['"x": [']
    assert elsewhere == notes[1:]
    assert any("10 more characters" in line.text for line in lines)
    assert lines[-2].text == '  "e": []'


def test_differences_are_shown_line_by_line_and_white_space_is_none() -> None:
    assert diff_bodies(b'{"a": 1}', b'{"a":1}') == []
    told = diff_bodies(b'{"a":1,"b":2}', b'{"a":1,"b":3}')
    assert [line for line in told if line.startswith(("-  ", "+  "))] == ['-  "b": 2', '+  "b": 3']
    assert diff_bodies(b"event: x\n", b"event: y\n")
