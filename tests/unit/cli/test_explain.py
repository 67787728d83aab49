"""A captured request in a terminal: both sides beside each other, every note at its place, no words in charge of it."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from dragoman.agent.tui.style import display_width
from dragoman.cli.inspect.explain import SHORT_TEXT, WHOLE_TEXT, StageRow, side_by_side, stage_rows
from dragoman.http.aws_eventstream import encode_message
from dragoman.notes import Note
from dragoman.observe.captures import CapturedBody
from tests.unit.gateway.dashboard.builders import captured


def texts(stage: str, longest: int = SHORT_TEXT, **how: Any) -> list[str]:
    asked = {"model": "x", "top_k": 5, "said": "w" * 500}
    kept = captured(asked, ({"q": 1}, {"r": 1}), given={"g": 1}, notes=(Note("dropped", "top_k", "no such"),))
    return [row.text for row in stage_rows(msgspec.structs.replace(kept, **how), stage, longest)]


def test_a_note_stands_below_what_it_speaks_of() -> None:
    lines = texts("client")
    assert lines[lines.index('    "top_k": 5') + 1] == "    ^ dropped: no such"


def test_long_texts_are_shortened_unless_all_is_wanted() -> None:
    assert any("340 more characters" in line for line in texts("client"))
    assert any("w" * 500 in line for line in texts("client", WHOLE_TEXT))


def test_both_columns_are_as_wide_as_they_may_be_and_nothing_is_lost() -> None:
    left = [
        StageRow('  "said": "' + "two words " * 30 + '"'),
        StageRow("  日本語のテキスト" * 9),
        StageRow("short"),
    ]
    shown = list(side_by_side(left, [StageRow("right", "cyan")], 40))
    assert {display_width(one.text) for one, _ in shown} == {40}
    said = "".join(one.text for one, _ in shown).replace(" ", "")
    assert said == "".join(row.text for row in left).replace(" ", "")
    assert shown[0][1] == StageRow("right", "cyan")
    assert all(len(two.text) <= 40 for _, two in shown)


def test_a_very_long_line_is_folded_in_linear_work() -> None:
    lines = list(side_by_side([StageRow("x" * 1_000_000)], [], 70))
    assert len(lines) == 1 + -(-(1_000_000 - 70) // 68)


@pytest.mark.parametrize("evil", ["\x1b[2J", "\x9b31m", "\u202e", "\r"])
def test_words_of_others_do_not_move_the_cursor(evil: str) -> None:
    answer = CapturedBody(text=f'event: x{evil}\ndata: {{"text":"a\u009bb"}}\n\n')
    asked = CapturedBody(text=msgspec.json.encode({"text": f"{evil}\x9b"}).decode())
    for stage in ("client", "reply"):
        assert all(line.isprintable() for line in texts(stage, client_request=asked, client_answer=answer))


def test_events_of_a_stream_keep_their_shape_when_they_are_shortened() -> None:
    data = msgspec.json.encode({"parts": [{"signature": "s" * 500}], "finishReason": "STOP"}).decode()
    (line,) = texts("reply", client_answer=CapturedBody(text=f"event: done\ndata: {data}\n\n"))[1:]
    assert line.startswith('  done {"parts":[{"signature":"sss')
    assert line.endswith('…"}],"finishReason":"STOP"}')
    assert "s" * 500 in texts("reply", WHOLE_TEXT, client_answer=CapturedBody(text=f"data: {data}\n\n"))[1]


def test_amazons_frames_can_be_read() -> None:
    frames = encode_message({":event-type": "contentBlockDelta"}, b'{"delta":{"text":"hi"}}')
    body = CapturedBody(base64=base64.b64encode(frames).decode())
    assert texts("reply", client_answer=body)[1:] == ['  contentBlockDelta {"delta":{"text":"hi"}}']


def test_each_attempt_has_its_number() -> None:
    one = captured({}, ({"q": 1}, {"r": 1}), given={}).upstream[0]
    lines = texts("upstream", upstream=(one, one))
    assert [line for line in lines if line.startswith("2")] == [
        "2  request to Google (attempt 1)",
        "2  request to Google (attempt 2)",
    ]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (CapturedBody(), "empty"),
        (CapturedBody(text="<html>"), "<html>"),
        (CapturedBody(base64="/wAB"), "3 bytes"),
    ],
)
def test_what_is_no_json_is_told_too(body: CapturedBody, said: str) -> None:
    lines = texts("client", client_request=body)
    assert said in lines[1]
    assert lines[-1] == "  ^ dropped top_k: no such", "a note without its place is still told"
