"""botocore, under every Python client of Amazon's, reads what we write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.eventstream import EventStream, EventStreamBuffer
from botocore.exceptions import EventStreamError
from botocore.parsers import EventStreamJSONParser
from botocore.session import Session
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.http.aws_eventstream import encode_event, encode_event_headers, encode_exception, encode_message

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


def read(data: bytes, size: int = 0) -> list[tuple[dict[str, Any], bytes]]:
    buffer = EventStreamBuffer()
    messages: list[tuple[dict[str, Any], bytes]] = []
    step = size or len(data) or 1
    for start in range(0, len(data), step):
        buffer.add_data(data[start : start + step])
        messages += [(message.headers, message.payload) for message in buffer]
    return messages


@settings(max_examples=150, deadline=None)
@given(
    messages=st.lists(
        st.tuples(st.dictionaries(WORDS, WORDS, max_size=5), st.binary(max_size=60)), max_size=5
    ),
    size=st.integers(0, 40),
)
def test_it_reads_every_message_in_any_slicing(
    messages: list[tuple[dict[str, str], bytes]], size: int
) -> None:
    assert read(b"".join(encode_message(*message) for message in messages), size) == messages


@pytest.mark.parametrize(
    "headers", [{"n" * 255: "v" * 32767}, {"é" * 127: "€" * 10922}], ids=["bytes", "characters"]
)
def test_it_reads_the_longest_headers_we_write(headers: dict[str, str]) -> None:
    assert read(encode_message(headers, b"x" * 100_000)) == [(headers, b"x" * 100_000)]


class Body:
    """The answer of a server as botocore holds it."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def stream(self) -> Iterator[bytes]:
        yield from (self._data[start : start + 7] for start in range(0, len(self._data), 7))


def events_of(data: bytes) -> list[Any]:
    """Read by the model of Bedrock's ConverseStream, as boto3 gives them to a program."""
    operation = Session().get_service_model("bedrock-runtime").operation_model("ConverseStream")
    shape = operation.get_event_stream_output()
    return list(EventStream(Body(data), shape, EventStreamJSONParser(), "ConverseStream"))


def test_an_event_is_a_member_of_its_union_and_an_unknown_one_is_passed_over() -> None:
    data = encode_event(encode_event_headers("messageStart"), b'{"role":"assistant"}')
    data += encode_event(encode_event_headers("ping"), b"{}")
    data += encode_event(encode_event_headers("messageStop"), b'{"stopReason":"end_turn"}')
    assert [event for event in events_of(data) if "SDK_UNKNOWN_MEMBER" not in event] == [
        {"messageStart": {"role": "assistant"}},
        {"messageStop": {"stopReason": "end_turn"}},
    ]


def test_an_exception_frame_is_an_exception_there() -> None:
    data = encode_exception("throttlingException", b'{"message":"slow down"}')
    with pytest.raises(EventStreamError, match=r"\(throttlingException\).*slow down"):
        events_of(data)
