"""The event-stream decoders of OpenAI's and Anthropic's libraries read what we write, and what we read, the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic._streaming
import msgspec
import openai._streaming
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.http.sse import SseDecoder, encode_event

JUDGES = [openai._streaming.SSEDecoder, anthropic._streaming.SSEDecoder]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    ["\n", "\r", "\r\n\r\n", "\u2028", "\x85", "\x0b", "\x1c", "data: x", "\n\nevent: y"]
)
NAMES = st.from_regex(r"[a-z_.]{1,20}", fullmatch=True)
#: Lines of a stream as a server may write them, with every end of line the format knows.
LINES = st.tuples(
    st.sampled_from(
        [b"data: a", b"data:b", b"data", b"data:  c", b"event: e", b"event:f", b": note", b"", b""]
    ),
    st.sampled_from([b"\n", b"\r\n"]),
).map(b"".join)


def slices(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def read(judge: Any, data: bytes, size: int) -> list[tuple[str, str]]:
    """Events with data; the libraries also give out those that have only a name."""
    found = judge().iter_bytes(slices(data, size))
    return [(event.event or "", event.data) for event in found if event.data]


@pytest.mark.parametrize("judge", JUDGES)
@settings(max_examples=150, deadline=None)
@given(
    events=st.lists(st.tuples(NAMES, st.dictionaries(TEXT, TEXT, max_size=3)), max_size=4),
    size=st.integers(1, 60),
)
def test_they_read_every_event_we_write(
    judge: Any, events: list[tuple[str, dict[str, str]]], size: int
) -> None:
    data = b"".join(encode_event(name, msgspec.json.encode(body)) for name, body in events)
    assert [(name, msgspec.json.decode(text)) for name, text in read(judge, data, size)] == events


@pytest.mark.parametrize("judge", JUDGES)
@settings(max_examples=150, deadline=None)
@given(lines=st.lists(LINES, max_size=12), size=st.integers(1, 30))
def test_we_read_what_they_read(judge: Any, lines: list[bytes], size: int) -> None:
    data = b"".join([*lines, b"\n\n"])
    decoder = SseDecoder()
    ours = [event for piece in slices(data, size) for event in decoder.feed(piece)]
    assert [(event.event, event.data.decode()) for event in ours if event.data] == read(judge, data, size)
