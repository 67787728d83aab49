"""Contents of a conversation that goes on: a remark may still join what was the last content before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects.gemini import contents
from dragoman.dialects.gemini.contents import SENTINEL, encode_contents
from dragoman.dialects.gemini.models import profile_of
from dragoman.dialects.gemini.parts import EncodingContext
from dragoman.dialects.gemini.stream import _MAX_SNAPSHOTS, GeminiStream
from dragoman.ir import Media, Message, Native, Role, Text, TextDelta, ToolCall, ToolResult, Usage
from dragoman.notes import Note
from dragoman.schema import NameMap

SETTING = EncodingContext(profile_of("gemini-3.8-flash"), NameMap.of(()), "x")
OTHER = EncodingContext(profile_of("gemini-2.5-flash"), SETTING.names, "x")


def _said(role: Role, text: str) -> Message:
    return Message(role=role, parts=(Text(text=text),))


def _copies(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    return tuple(Message(role=message.role, parts=message.parts) for message in messages)


CALL = Message(role="model", parts=(ToolCall(id="c", name="f", args=b"{}"),))
RESULT = Message(role="user", parts=(ToolResult(call_id="c", name="f", content=(Text(text="done"),)),))


@pytest.mark.parametrize(
    "history",
    [
        (_said("user", "a"), _said("system", "b"), _said("system", "c"), _said("model", "d")),
        (_said("user", "a"), CALL, RESULT, _said("system", "b"), _said("system", "c"), _said("model", "d")),
        (_said("system", "a"), _said("system", "b"), _said("user", "c"), _said("system", "d")),
        (_said("user", "a"), _said("model", "b"), _said("system", "c"), _said("system", "d"), CALL, RESULT),
        (_said("user", "a"), _said("user", ""), _said("model", "b"), _said("user", "c")),
    ],
)
def test_every_turn_is_as_if_it_were_the_first(history: tuple[Message, ...]) -> None:
    for end in (*range(1, len(history) + 1), 2, len(history)):
        for setting in (SETTING, OTHER, SETTING):
            turn = history[:end]
            assert encode_contents(turn, setting) == encode_contents(_copies(turn), setting)


@pytest.mark.parametrize("end", [(), (_said("model", "e"),), (_said("system", "e"), _said("model", "f"))])
@pytest.mark.parametrize("known", range(1, 7))
def test_a_remark_is_gone_when_the_client_has_taken_it_back(known: int, end: tuple[Message, ...]) -> None:
    history = (
        _said("user", "a"),
        _said("system", "b"),
        CALL,
        RESULT,
        _said("system", "c"),
        _said("user", "d"),
    )
    encode_contents(history, SETTING)
    turn = (*history[:known], *end)
    assert encode_contents(turn, SETTING) == encode_contents(_copies(turn), SETTING)


def test_of_a_next_turn_only_what_is_new_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[Message] = []
    encode = contents._encode

    def counted(message: Message, *more: Any) -> contents.EncodedContent:
        encoded.append(message)
        return encode(message, *more)

    monkeypatch.setattr(contents, "_encode", counted)
    history = _copies((_said("user", "a"), CALL, RESULT, _said("model", "b"), _said("user", "c")))
    encode_contents(history[:3], SETTING)
    assert encoded == [*history[:3]]
    encode_contents(history, SETTING)
    assert encoded == [*history]


def _sentinels(messages: tuple[Message, ...]) -> list[int]:
    written, notes = encode_contents(messages, SETTING)
    places = [place for place, json in enumerate(written) if SENTINEL.encode() in json]
    assert [note.where for note in notes] == [f"contents[{place}]" for place in places]
    return places


def test_the_sentinel_leaves_a_call_when_the_next_turn_begins_and_comes_back_if_that_is_taken_back() -> None:
    nothing = _said("model", "")
    history = _copies((_said("user", "a"), nothing, CALL, RESULT, CALL, RESULT, _said("user", "b"), CALL))
    assert _sentinels(history[:4]) == [1]
    assert _sentinels(history[:6]) == [1, 3]
    assert _sentinels(history[:7]) == []
    assert _sentinels(history) == [6]
    assert _sentinels(history[:6]) == [1, 3]


def test_the_sentinel_is_put_into_its_own_call_where_the_model_speaks_first() -> None:
    said = (
        Message(role="model", parts=(ToolCall(id="c", name="read"),)),
        Message(role="model", parts=(Text(text=""),)),
        Message(role="model", parts=(Text(text="b"),)),
    )
    setting = EncodingContext(profile_of("gemini-3-pro-preview"), NameMap.of(["read"]), "x")
    encoded, notes = encode_contents(said, setting)
    first, second = json.loads(b"[%b]" % b",".join(encoded))
    assert first["parts"][0]["thoughtSignature"] == SENTINEL
    assert second == {"role": "model", "parts": [{"text": "b"}]}
    assert [note.where for note in notes] == ["contents[0]"]


def test_what_got_lost_in_a_message_is_not_told_when_the_message_is_gone() -> None:
    picture = Message(role="user", parts=(Media(mime="image/tiff", data="x"),))
    history = _copies((_said("user", "a"), _said("model", "b"), picture, _said("model", "c"), picture))
    dropped = [Note("dropped", "messages", "Gemini reads no image/tiff")]
    assert [encode_contents(history[:end], SETTING)[1] for end in (3, 5, 4, 2)] == [dropped] * 3 + [[]]


def test_nothing_was_said() -> None:
    assert encode_contents((), SETTING) == ([], [])


def _usage(*counts: bytes) -> Usage:
    reader = GeminiStream(SETTING.names, "x", lambda: "id")
    for count in counts:
        reader.feed(b'data: {"usageMetadata":%b}\r\n\r\n' % count)
    reader.feed(b'data: {"candidates":[{"finishReason":"STOP"}]}\r\n\r\n')
    usages = [event for event in reader.close() if isinstance(event, Usage)]
    return usages[0]


def test_the_last_word_on_each_count_holds() -> None:
    first = b'{"promptTokenCount":7,"candidatesTokenCount":%d}'
    assert _usage(*(first % n for n in range(1, 30))) == Usage(input_tokens=7, output_tokens=29)
    more = [b'{"candidatesTokenCount":%d}' % n for n in range(30, 40)]
    assert _usage(first % 1, *more) == Usage(input_tokens=7, output_tokens=39)
    texts = [b'{"promptTokenCount":"5"}', b'{"promptTokenCount":"6"}']
    assert _usage(*texts) == Usage(input_tokens=6)


def test_a_digit_inside_a_name_is_no_number() -> None:
    reader = GeminiStream(SETTING.names, "x", lambda: "id")
    for number in (1, 2):
        reader.feed(b'data: {"usageMetadata":{"promptTokenCount":1,"a%d":1}}\r\n\r\n' % number)
    reader.feed(b'data: {"candidates":[{"finishReason":"STOP"}]}\r\n\r\n')
    told = [event.json for event in reader.close() if isinstance(event, Native)]
    assert told == [b'{"promptTokenCount":1,"a1":1,"a2":1}']


def test_an_event_may_have_its_object_on_several_lines() -> None:
    event = b'data: {"candidates":[{"content":\r\ndata: {"parts":[{"text":"%d"}]}}]}\r\n\r\n'
    plain = b'data: {"candidates":[{"content":{"parts":[{"text":"plain"}]}}]}\r\n\r\n'
    reader = GeminiStream(SETTING.names, "x", lambda: "id")
    pieces = (plain, event % 1 + plain, plain + event % 2, plain + plain[:9], plain[9:] + plain)
    events = [one for piece in pieces for one in reader.feed(piece)]
    said = [one.text for one in events if isinstance(one, TextDelta)]
    assert said == ["plain", "1", "plain", "plain", "2", *["plain"] * 3]


def test_counts_that_change_their_form_all_the_time_are_read_on_the_way() -> None:
    forms = (b'{"promptTokenCount":%d}', b'{"candidatesTokenCount":%d}')
    counts = [forms[n % 2] % n for n in range(2 * _MAX_SNAPSHOTS)]
    last = 2 * _MAX_SNAPSHOTS - 1
    assert _usage(*counts) == Usage(input_tokens=last - 1, output_tokens=last)
