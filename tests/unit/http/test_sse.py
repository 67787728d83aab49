"""Server-sent events: every framing a server may choose, in every slicing, with linear work."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.errors import UpstreamProtocolError
from dragoman.http.sse import ServerEvent, SseDecoder, encode_event


def decode(data: bytes, size: int = 0, **options: Any) -> list[tuple[str, bytes]]:
    """All events of `data`, fed in slices of `size` bytes (0: at once)."""
    decoder = SseDecoder(**options)
    step = size or len(data) or 1
    events: list[ServerEvent] = []
    for start in range(0, len(data), step):
        events += decoder.feed(data[start : start + step])
    return [(event.event, event.data) for event in events + decoder.close()]


E6 = [
    (b"data: a\n\ndata: b\n\n", [("", b"a"), ("", b"b")]),
    (b"data: a\r\n\r\ndata: b\r\n\r\n", [("", b"a"), ("", b"b")]),
    (b"data: a\r\rdata: b\r\r", [("", b"a"), ("", b"b")]),
    (b"data: a\r\n\ndata: b\n\r\n", [("", b"a"), ("", b"b")]),
    (b"data:a\n\n", [("", b"a")]),
    (b"data:  a\n\n", [("", b" a")]),
    (b"data: a\ndata: b\n\n", [("", b"a\nb")]),
    (b"data: a\r\ndata:\r\ndata: b\r\n\r\n", [("", b"a\n\nb")]),
    (b": ping\n\ndata: a\n: in between\ndata: b\n\n", [("", b"a\nb")]),
    (b"id: 7\nretry: 10\nevent: error\ndata: a\n\n", [("error", b"a")]),
    (b"event: lonely\n\ndata: a\n\n", [("", b"a")]),
    (b"data\n\n", [("", b"")]),
    (b"data: a: b\n\n", [("", b"a: b")]),
    (b"data: a", [("", b"a")]),
    (b"data: a\n", [("", b"a")]),
    (b"data: a\r", [("", b"a")]),
    (b"data: a\n\n: bye", [("", b"a")]),
    (b"\n\n\r\n\r\r", []),
    (b"", []),
    (b"\xef\xbb\xbfdata: a\n\n", [("", b"a")]),
    (b"event: \xff\ndata: \xff\xfe\n\n", [("�", b"\xff\xfe")]),
    ("data: zwölf €\n\n".encode(), [("", "zwölf €".encode())]),
    (b"data: a\x0bb\x0cc\x1cd\xc2\x85e\n\n", [("", b"a\x0bb\x0cc\x1cd\xc2\x85e")]),
]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7])
@pytest.mark.parametrize(("data", "expected"), E6)
def test_e6_every_framing_in_every_slicing(data: bytes, expected: list[tuple[str, bytes]], size: int) -> None:
    assert decode(data, size) == expected


def test_a_crlf_cut_in_two_by_empty_slices_ends_one_line_only() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: a\r") == []
    assert decoder.feed(b"") == []
    assert decoder.feed(b"\n") == []
    assert decoder.feed(b"data: b\r\n\r\n") == [ServerEvent("", b"a\nb")]


def test_close_twice_gives_nothing_twice() -> None:
    decoder = SseDecoder()
    decoder.feed(b"data: a")
    assert len(decoder.close()) == 1
    assert decoder.close() == []


@pytest.mark.parametrize("size", [0, 1, 16])
def test_a_byte_order_mark_counts_only_at_the_start(size: int) -> None:
    assert decode(b"data: \xef\xbb\xbf\n\n\xef\xbb\xbfdata: lost\n\n", size) == [("", b"\xef\xbb\xbf")]


@pytest.mark.parametrize("size", [0, 1, 10])
def test_an_event_above_the_cap_is_refused(size: int) -> None:
    with pytest.raises(UpstreamProtocolError, match="longer than 20 bytes"):
        decode(b"data: 0123456789\ndata: 0123456789\n\n", size, max_event_bytes=20)


@pytest.mark.parametrize("size", [0, 1, 50])
def test_a_line_that_never_ends_is_refused(size: int) -> None:
    with pytest.raises(UpstreamProtocolError, match="longer than"):
        decode(b": " + b"x" * 100, size, max_event_bytes=99)


@pytest.mark.parametrize("size", [0, 1, 13])
def test_the_cap_is_for_one_event_not_for_one_read(size: int) -> None:
    data = b"data: 0123456789\n\n" * 50
    assert decode(data, size, max_event_bytes=20) == [("", b"0123456789")] * 50


@pytest.mark.parametrize("size", [0, 1])
def test_comments_between_events_do_not_add_up(size: int) -> None:
    data = b": ping\n" * 50 + b"data: a\n\n"
    assert decode(data, size, max_event_bytes=20) == [("", b"a")]


def test_encode_event_is_read_back() -> None:
    assert decode(encode_event("ping", b'{"a":1}')) == [("ping", b'{"a":1}')]


def bytes_touched(run: Callable[[], None]) -> int:
    """How many bytes the methods of byte strings were asked to look at while `run` ran."""
    total = 0

    def on_call(frame: Any, event: str, arg: Any) -> None:
        nonlocal total
        if event == "c_call" and isinstance(getattr(arg, "__self__", None), bytes | bytearray):
            total += len(arg.__self__)

    sys.setprofile(on_call)
    try:
        run()
    finally:
        sys.setprofile(None)
    return total


def test_work_is_linear_in_the_bytes_however_they_are_sliced() -> None:
    """A clean-looking decoder took 21.7 s for 1 MB byte by byte until it remembered where it had looked."""
    data = b"data: " + b"x" * 50_000 + b"\r\n\r\n"

    def run(size: int) -> Callable[[], None]:
        def feed() -> None:
            decode(data, size)

        return feed

    assert bytes_touched(run(1)) < 20 * len(data)
    assert bytes_touched(run(64)) < 12 * len(data)
    assert bytes_touched(run(65_536)) < 12 * len(data)


def test_work_is_linear_in_many_small_events() -> None:
    data = b"data: {}\r\n\r\n" * 5_000

    def feed() -> None:
        assert len(decode(data, 65_536)) == 5_000

    assert bytes_touched(feed) < 12 * len(data)


def test_a_line_feed_after_the_carriage_return_of_the_last_slice_opens_no_event() -> None:
    decoder = SseDecoder()
    assert len(decoder.feed(b"data: x\r\n\r")) == 1
    assert decoder.feed(b"\n") == []
    assert decoder.is_between_events
