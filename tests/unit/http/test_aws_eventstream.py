"""Amazon's event stream: every message in every slicing, every kind of damage told, with linear work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from zlib import crc32

import pytest

from dragoman.errors import DragomanError, UpstreamIncomplete, UpstreamProtocolError
from dragoman.http import aws_eventstream
from dragoman.http.aws_eventstream import (
    EventMessage,
    EventStreamDecoder,
    encode_event,
    encode_event_headers,
    encode_exception,
    encode_message,
)
from tests.unit.http.eventstream_frames import OTHER_TYPES, frame, header, text

HEAD = text(":event-type", "x")
GOOD = frame(HEAD, b"{}")
READ = EventMessage({":event-type": "x"}, b"{}")
ALL_TYPES = b"".join(header(name, typed) for name, typed in OTHER_TYPES.items())


def decode(data: bytes, size: int = 0, **options: Any) -> list[EventMessage]:
    """All messages of `data`, fed in slices of `size` bytes (0: at once)."""
    decoder = EventStreamDecoder(**options)
    messages = list(feed(decoder, data, size))
    decoder.close()
    return messages


def feed(decoder: EventStreamDecoder, data: bytes, size: int = 0) -> Iterable[EventMessage]:
    step = size or len(data) or 1
    for start in range(0, len(data), step):
        yield from decoder.feed(data[start : start + step])


# What is written


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        # Amazon's own first examples: an empty message, and one with a header and a payload.
        (encode_message({}, b""), bytes.fromhex("00000010 00000000 05c248eb 7d98c8ff")),
        (
            encode_message({"content-type": "application/json"}, b"{'foo':'bar'}"),
            bytes.fromhex("0000003d 00000020 07fd8396 0c") + b"content-type"
            b"\x07\x00\x10application/json{'foo':'bar'}" + bytes.fromhex("8d9c08b1"),
        ),
        (encode_message({"a": "zwölf €"}, b"\x00\xff"), frame(text("a", "zwölf €"), b"\x00\xff")),
        (encode_message({"a": "", "b": "c"}, b""), frame(text("a", "") + text("b", "c"))),
        (
            encode_event(encode_event_headers("chunk"), b"{}"),
            frame(
                text(":event-type", "chunk")
                + text(":content-type", "application/json")
                + text(":message-type", "event"),
                b"{}",
            ),
        ),
        (
            encode_exception("throttlingException", b'{"message":"slow"}'),
            frame(
                text(":exception-type", "throttlingException")
                + text(":content-type", "application/json")
                + text(":message-type", "exception"),
                b'{"message":"slow"}',
            ),
        ),
    ],
)
def test_messages_are_written_to_the_byte(written: bytes, expected: bytes) -> None:
    assert written == expected


@pytest.mark.parametrize(
    "headers",
    [{"n" * 255: "v"}, {"é" * 127: "v"}, {"n": "v" * 32767}, {"n": "€" * 10922}],
    ids=["name", "name in bytes", "value", "value in bytes"],
)
def test_the_longest_headers_are_read_back(headers: dict[str, str]) -> None:
    assert decode(encode_message(headers, b"")) == [EventMessage(headers, b"")]


@pytest.mark.parametrize(
    "headers",
    [{"": "v"}, {"n" * 256: "v"}, {"é" * 128: "v"}, {"n": "v" * 32768}, {"n": "€" * 10923}, {"n": "\ud83d"}],
    ids=["no name", "name", "name in bytes", "value", "value in bytes", "half a character"],
)
def test_a_header_that_no_decoder_takes_is_not_written(headers: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        encode_message(headers, b"")


# What is read

STREAMS = [
    (b"", []),
    (GOOD, [READ]),
    (GOOD * 3, [READ] * 3),
    (frame(), [EventMessage({}, b"")]),
    (
        frame() + GOOD + frame(HEAD) + GOOD,
        [EventMessage({}, b""), READ, EventMessage(READ.headers, b""), READ],
    ),
    (frame(b"", b"\x00" * 20), [EventMessage({}, b"\x00" * 20)]),
    (frame(b"", GOOD), [EventMessage({}, GOOD)]),  # a message inside a message is only its payload
    (frame(ALL_TYPES + HEAD, b"{}"), [READ]),
    (frame(HEAD + ALL_TYPES, b"{}"), [READ]),
    (frame(text("a", "") + text("ä", "zwölf €")), [EventMessage({"a": "", "ä": "zwölf €"}, b"")]),
]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 12, 16, 17])
@pytest.mark.parametrize(("data", "expected"), STREAMS)
def test_every_stream_in_every_slicing(data: bytes, expected: list[EventMessage], size: int) -> None:
    assert decode(data, size) == expected


def test_a_message_is_given_out_with_its_last_byte_and_not_before() -> None:
    decoder = EventStreamDecoder()
    assert list(feed(decoder, GOOD[:-1], 1)) == []
    assert decoder.feed(b"") == []
    assert decoder.feed(GOOD[-1:] + GOOD[:5]) == [READ]
    assert decoder.feed(GOOD[5:]) == [READ]


def test_a_small_message_does_not_wait_for_the_length_of_the_large_one_before_it() -> None:
    decoder = EventStreamDecoder()
    assert len(list(feed(decoder, frame(HEAD, b"x" * 5_000), 100))) == 1
    assert decoder.feed(GOOD) == [READ]


@pytest.mark.parametrize("name", OTHER_TYPES)
def test_headers_that_are_not_text_are_passed_over(name: str) -> None:
    assert decode(frame(header(name, OTHER_TYPES[name]) + HEAD, b"{}")) == [READ]


# Damage

DAMAGE = {
    "the prelude's checksum": (frame(HEAD, b"{}", prelude_flaw=1), "checksum of a message's prelude"),
    "the message's checksum": (frame(HEAD, b"{}", flaw=1 << 31), "checksum of a message is wrong"),
    "text instead of frames": (b"HTTP/1.1 502 Bad Gateway", "checksum of a message's prelude"),
    "longer than any message": (frame(total=0xFFFFFFFF), "too long: 4294967295 bytes"),
    "a byte over the limit": (frame(total=24 * 1024 * 1024 + 1), "too long"),
    "headers over the limit": (
        frame(total=1 << 20, head_length=128 * 1024 + 1),
        "headers of a message are too long: 131073",
    ),
    "headers longer than the message": (frame(HEAD, head_length=len(HEAD) + 1), "shorter than its headers"),
    "shorter than a frame": (frame(total=15), "shorter than its headers"),
    "no length at all": (frame(total=0), "shorter than its headers"),
    "a name that leaves the headers": (frame(b"\xff" + b"name\x00"), "cannot be read"),
    "a name without a type": (frame(b"\x04name"), "cannot be read"),
    "a name that is not text": (frame(b"\x01\xff\x00"), "cannot be read"),
    "a value that is not text": (frame(header("a", b"\x07\x00\x01\xff")), "cannot be read"),
    "a value that leaves the headers": (frame(header("a", b"\x07\x00\x03ab")), "cannot be read"),
    "a length that leaves the headers": (frame(header("a", b"\x07\x00")), "cannot be read"),
    "bytes that leave the headers": (frame(header("a", b"\x06\x00\x03ab"), b"c"), "cannot be read"),
    "an unknown type": (frame(header("a", b"\x0a")), "cannot be read"),
    "the same name twice": (frame(HEAD + HEAD), "cannot be read"),
    "the same name in two types": (frame(header("a", b"\x00") + text("a", "b")), "cannot be read"),
} | {
    f"a cut {name}": (frame(header("a", typed[:-1])), "cannot be read")
    for name, typed in OTHER_TYPES.items()
    if len(typed) > 1
}


@pytest.mark.parametrize("size", [0, 1, 5])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_an_error_that_says_what(damage: str, size: int) -> None:
    data, words = DAMAGE[damage]
    with pytest.raises(UpstreamProtocolError, match=words):
        decode(data, size)


@pytest.mark.parametrize("size", [0, 1, 5, len(GOOD), len(GOOD) + 1])
@pytest.mark.parametrize("damage", DAMAGE)
def test_what_came_before_the_damage_is_given_out_in_every_slicing(damage: str, size: int) -> None:
    decoder, messages = EventStreamDecoder(), list[EventMessage]()

    def read() -> None:
        messages.extend(feed(decoder, GOOD * 2 + DAMAGE[damage][0] + GOOD, size))
        decoder.close()

    for call in (read, lambda: decoder.feed(GOOD), decoder.close):
        with pytest.raises(UpstreamProtocolError, match=DAMAGE[damage][1]):
            call()
    assert messages == [READ] * 2


@pytest.mark.parametrize("length", range(1, len(GOOD)))
def test_a_stream_that_ends_inside_a_message_was_cut(length: int) -> None:
    """boto3 says nothing here, and the user never knows that something is missing."""
    with pytest.raises(UpstreamIncomplete, match="ends inside a message"):
        decode(GOOD + GOOD[:length])


def test_the_limits_are_for_one_message_not_for_one_read() -> None:
    assert decode(GOOD * 50, max_message_bytes=len(GOOD)) == [READ] * 50
    with pytest.raises(UpstreamProtocolError, match="too long"):
        decode(GOOD, max_message_bytes=len(GOOD) - 1)


def test_headers_up_to_the_limit_are_read() -> None:
    full = text("a", "v" * 32767) + text("b", "v" * 32767) + text("c", "v" * 32767) + text("d", "v" * 32751)
    assert len(full) == 128 * 1024
    [message] = decode(frame(full))
    assert list(message.headers) == ["a", "b", "c", "d"]


def test_an_absurd_length_is_refused_before_its_bytes_are_waited_for() -> None:
    decoder = EventStreamDecoder()
    with pytest.raises(UpstreamProtocolError, match="too long"):
        decoder.feed(frame(total=0x7FFFFFFF)[:12])


def test_one_flipped_bit_anywhere_is_noticed() -> None:
    for place in range(len(GOOD)):
        for bit in range(8):
            spoilt = bytearray(GOOD)
            spoilt[place] ^= 1 << bit
            with pytest.raises(DragomanError):
                decode(bytes(spoilt))


# Work


class Copies:
    """Counts the bytes that a decoder copies, takes out of a buffer or looks through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        outer = self

        class Text(bytes):
            def __new__(cls, source: Any) -> Text:
                outer.count += len(source)
                return super().__new__(cls, source)

            def __getitem__(self, key: Any) -> Any:
                taken = super().__getitem__(key)
                return Text(taken) if isinstance(taken, bytes) else taken

        def checksum(data: bytes, start: int = 0) -> int:
            outer.count += len(data)
            return crc32(data, start)

        monkeypatch.setattr(aws_eventstream, "bytes", Text, raising=False)
        monkeypatch.setattr(aws_eventstream, "crc32", checksum)


@pytest.mark.parametrize("size", [1, 64, 65_536])
def test_work_is_linear_for_one_huge_message_in_small_pieces(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = frame(HEAD, b"x" * 100_000)
    copies = Copies(monkeypatch)
    assert len(decode(data, size)) == 1
    assert copies.count < 6 * len(data)


@pytest.mark.parametrize("size", [1, 64, 4_096, 0])
def test_work_is_linear_for_many_small_messages(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = GOOD * 3_000
    copies = Copies(monkeypatch)
    assert len(decode(data, size)) == 3_000
    assert copies.count < 12 * len(data)


def test_a_decoder_keeps_nothing_of_what_it_has_given_out() -> None:
    decoder = EventStreamDecoder()
    assert len(decoder.feed(GOOD * 1_000 + GOOD[:3])) == 1_000
    assert bytes(decoder._buffer) == GOOD[:3]
