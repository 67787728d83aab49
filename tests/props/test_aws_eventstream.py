"""Always: what was written is read back, whatever the slicing, and damage never passes for something else."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import DragomanError, UpstreamIncomplete, UpstreamProtocolError
from dragoman.http.aws_eventstream import (
    EventMessage,
    EventStreamDecoder,
    encode_event,
    encode_event_headers,
    encode_exception,
    encode_message,
)
from tests.unit.http.eventstream_frames import OTHER_TYPES, frame, header, text

quick = settings(max_examples=150, deadline=None)

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
HEADERS = st.dictionaries(NAMES, WORDS, max_size=5)
PAYLOADS = st.binary(max_size=60)
MESSAGES = st.lists(st.builds(EventMessage, HEADERS, PAYLOADS), max_size=6)
TYPED = st.dictionaries(
    NAMES, st.sampled_from(sorted(OTHER_TYPES)) | WORDS.map(lambda word: [word]), max_size=6
)


def slices(data: bytes, seed: int) -> list[bytes]:
    chance = random.Random(seed)
    cuts = sorted(chance.choices(range(len(data) + 1), k=chance.randrange(12)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def read(pieces: list[bytes]) -> tuple[list[EventMessage], DragomanError | None]:
    """What came before the end or the damage, and what the damage was."""
    decoder, messages = EventStreamDecoder(), list[EventMessage]()
    try:
        for piece in pieces:
            messages += decoder.feed(piece)
        decoder.close()
    except DragomanError as damage:
        return messages, damage
    return messages, None


@quick
@given(messages=MESSAGES, seed=st.integers())
def test_messages_come_back_in_any_slicing(messages: list[EventMessage], seed: int) -> None:
    data = b"".join(encode_message(message.headers, message.payload) for message in messages)
    assert read(slices(data, seed)) == (messages, None)


@quick
@given(name=NAMES, payload=PAYLOADS)
def test_events_and_exceptions_say_what_they_are(name: str, payload: bytes) -> None:
    [event, exception], damage = read(
        [encode_event(encode_event_headers(name), payload) + encode_exception(name, payload)]
    )
    assert damage is None
    assert event.payload == exception.payload == payload
    assert (event.headers[":message-type"], event.headers[":event-type"]) == ("event", name)
    assert (exception.headers[":message-type"], exception.headers[":exception-type"]) == ("exception", name)


@quick
@given(typed=TYPED, payload=PAYLOADS, seed=st.integers())
def test_headers_of_every_type_are_passed_over_for_the_texts(
    typed: dict[str, str | list[str]], payload: bytes, seed: int
) -> None:
    texts = {name: value[0] for name, value in typed.items() if isinstance(value, list)}
    head = b"".join(
        text(name, value[0]) if isinstance(value, list) else header(name, OTHER_TYPES[value])
        for name, value in typed.items()
    )
    assert read(slices(frame(head, payload), seed)) == ([EventMessage(texts, payload)], None)


@quick
@given(messages=MESSAGES.filter(bool), data=st.data(), seed=st.integers())
def test_a_cut_is_told_and_nothing_is_invented(
    messages: list[EventMessage], data: st.DataObject, seed: int
) -> None:
    frames = [encode_message(message.headers, message.payload) for message in messages]
    whole = b"".join(frames)
    length = data.draw(st.integers(0, len(whole)))
    ends = [sum(map(len, frames[:number])) for number in range(len(frames) + 1)]
    number = sum(end <= length for end in ends) - 1
    got, damage = read(slices(whole[:length], seed))
    assert got == messages[:number]
    assert isinstance(damage, UpstreamIncomplete) == (length not in ends)


@quick
@given(messages=MESSAGES.filter(bool), data=st.data(), seed=st.integers())
def test_a_changed_byte_ends_the_stream_there_in_any_slicing(
    messages: list[EventMessage], data: st.DataObject, seed: int
) -> None:
    frames = [encode_message(message.headers, message.payload) for message in messages]
    spoilt = bytearray(b"".join(frames))
    place = data.draw(st.integers(0, len(spoilt) - 1))
    spoilt[place] ^= data.draw(st.integers(1, 255))
    number = sum(sum(map(len, frames[:count])) <= place for count in range(1, len(frames)))
    got, damage = read(slices(bytes(spoilt), seed))
    assert got == messages[:number]
    assert isinstance(damage, UpstreamProtocolError)
