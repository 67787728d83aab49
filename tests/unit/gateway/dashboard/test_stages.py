from __future__ import annotations

import base64

from dragoman.gateway.dashboard.request import view_stages
from dragoman.http.aws_eventstream import encode_message
from dragoman.observe.captures import CapturedBody, display_body
from tests.unit.gateway.dashboard.builders import captured


def test_json_stays_as_it_was_written() -> None:
    shown = display_body(CapturedBody(text='{ "n": 12345678901234567890 }'))
    assert (shown.kind, shown.text) == ("json", '{ "n": 12345678901234567890 }')


def test_events_are_told_apart() -> None:
    shown = display_body(CapturedBody(text='event: a\ndata: {"x":1}\n\ndata: [DONE]\n\n'))
    assert shown.kind == "events"
    assert [(one.name, one.data) for one in shown.events] == [("a", '{"x":1}'), ("", "[DONE]")]


def test_amazons_frames_are_events_too() -> None:
    data = encode_message({":event-type": "chunk"}, b'{"x":1}') + encode_message(
        {":exception-type": "bad"}, b"{}"
    )
    shown = display_body(CapturedBody(base64=base64.b64encode(data).decode()))
    assert [(one.name, one.data) for one in shown.events] == [("chunk", '{"x":1}'), ("bad", "{}")]


def test_what_is_neither_is_text_or_bytes_or_nothing() -> None:
    assert display_body(CapturedBody(text="<html>no</html>")).kind == "text"
    assert display_body(CapturedBody(base64=base64.b64encode(b"\xff\x00\x01").decode())).kind == "bytes"
    assert display_body(CapturedBody()).kind == "empty"
    assert display_body(CapturedBody(text=" \n")).kind == "empty"


def test_a_stream_without_end_is_cut() -> None:
    shown = display_body(CapturedBody(text="data: {}\n\n" * 2_500))
    assert (len(shown.events), shown.left_out) == (2_000, 500)


def test_json_that_is_too_deep_is_text() -> None:
    assert display_body(CapturedBody(text="[" * 100_000)).kind == "text"


def test_the_four_stages() -> None:
    stages = view_stages(captured({"a": 1}, ({"b": 2}, {"c": 3}), ({"d": 4}, {"e": 5}), given={"f": 6}))
    assert stages.asked.text == '{"a":1}'
    assert [(one.request.text, one.answer.text) for one in stages.upstream] == [
        ('{"b":2}', '{"c":3}'),
        ('{"d":4}', '{"e":5}'),
    ]
    assert stages.given.text == '{"f":6}'
