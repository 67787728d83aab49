"""The two framings: which one it is, documents out of any slicing, caps and linear work."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from dragoman.dialects.gemini import stream_framing as frames_module
from dragoman.dialects.gemini.stream_framing import ArrayFrames, FrameDecoder, WholeFrame
from dragoman.errors import UpstreamProtocolError
from dragoman.http.sse import SseDecoder

SIZES = [0, 1, 2, 3, 5]


def frames(data: bytes, size: int = 0, decoder: Any = None) -> list[bytes]:
    reader = decoder or FrameDecoder()
    step = size or len(data) or 1
    found: list[bytes] = []
    for start in range(0, len(data), step):
        found += reader.feed(data[start : start + step])
    found += reader.close()
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b" \r\n\t", []),
        (b'data: {"a":1}\r\n\r\ndata: {"b":2}\r\n\r\n', [b'{"a":1}', b'{"b":2}']),
        (b'\r\n\r\ndata: {"a":1}\n\n', [b'{"a":1}']),
        (b'\xef\xbb\xbfdata: {"a":1}\n\n', [b'{"a":1}']),
        (b'data: {"a":1}\n\ndata: [DONE]\n\n', [b'{"a":1}']),
        (b'data: {"a":1}\n\ndata: [DONE]', [b'{"a":1}']),
        (b'data: {"a":1}\n\ndata:\n\ndata:  \n\ndata: {"b":2}\n\n', [b'{"a":1}', b'{"b":2}']),
        (b'data: {\ndata: "a":1}\n\n', [b'{\n"a":1}']),
        (b': hello\n\ndata: {"a":1}\n\n', [b'{"a":1}']),
        (b"<html>\n<body>\n\n", []),
        (b'[{"a":1}\n,\r\n{"b":2}]', [b'{"a":1}', b'{"b":2}']),
        (b'\xef\xbb\xbf[{"a":1}]', [b'{"a":1}']),
        (b'  [ {"a":1} ] \n', [b'{"a":1}']),
        (b'{"a":1}', [b'{"a":1}']),
        (b'{"a":{"b":[{"c":1},[2]]}}', [b'{"a":{"b":[{"c":1},[2]]}}']),
        (b'[{"a":"}]{[\\"\\\\"},{}]', [b'{"a":"}]{[\\"\\\\"}', b"{}"]),
        (b'[{"a":"\\\\"},{"b":"\\u0041"}]', [b'{"a":"\\\\"}', b'{"b":"\\u0041"}']),
        ('[{"a":"ü€😀"}]'.encode(), ['{"a":"ü€😀"}'.encode()]),
        (b"[]", []),
        (b'["a","{"]', []),
        (b"[1,2]", []),
        (b'[{"a":1}', [b'{"a":1}']),
        (b'[{"a":1}] trailing', [b'{"a":1}']),
    ],
)
def test_e6_documents_come_out_whole(data: bytes, expected: list[bytes], size: int) -> None:
    assert frames(data, size) == expected


#: Pieces of events: some reads of them are plain, and most are not.
PIECES = (b'data: {"a":1}', b"\r\n\r\n", b"\n\n", b"\n", b"\r", b"data: [DONE]", b'data:{"b":2}', b": x")


def test_a_read_is_cut_as_the_format_says_whichever_way_it_takes() -> None:
    begin, end = b"data: {}\r\n\r\n", b"\r\n\r\n"
    for pieces in itertools.product(PIECES, repeat=4):
        decoder, judge = FrameDecoder(), SseDecoder()
        for data in (begin, b"".join(pieces), end, b'data: {"c":3}' + end):
            told = [event.data for event in judge.feed(data) if event.data != b"[DONE]"]
            assert decoder.feed(data) == told, pieces


@pytest.mark.parametrize("event", [b'data: {"a":"0123456789abcdef"}', b'data: {"a":\ndata: "0123456789"}'])
@pytest.mark.parametrize("number", [1, 2])
def test_an_event_above_the_cap_takes_no_short_way(
    event: bytes, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames_module, "MAX_EVENT_BYTES", 20)
    monkeypatch.setattr(frames_module, "SseDecoder", lambda: SseDecoder(20))
    decoder = FrameDecoder()
    decoder.feed(b"data: {}\r\n\r\n")
    with pytest.raises(UpstreamProtocolError, match="longer than 20 bytes"):
        decoder.feed((event + b"\r\n\r\n") * number)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("data", [b'[{"a":1},{"b"', b'{"a":"x', b'{"a":"\\', b"[}", b"[{}}"])
def test_e7_an_array_that_stops_in_the_middle_is_no_end(data: bytes, size: int) -> None:
    with pytest.raises(UpstreamProtocolError, match="in the middle"):
        frames(data, size)


@pytest.mark.parametrize("size", [0, 1, 8])
def test_an_element_above_the_cap_is_refused(size: int) -> None:
    with pytest.raises(UpstreamProtocolError, match="longer than 20 bytes"):
        frames(b'[{"a":"0123456789abcdef"}]', size, ArrayFrames(20))


@pytest.mark.parametrize("size", [0, 1, 8])
def test_a_whole_answer_above_the_cap_is_refused(size: int) -> None:
    with pytest.raises(UpstreamProtocolError, match="longer than 20 bytes"):
        frames(b'{"a":"0123456789abcdef"}', size, WholeFrame(20))


@pytest.mark.parametrize("size", [0, 1, 8])
def test_the_cap_is_for_one_element_not_for_one_read(size: int) -> None:
    data = b"[" + b",".join([b'{"a":"01234567"}'] * 50) + b"]"
    assert len(frames(data, size, ArrayFrames(20))) == 50


class CountingPattern:
    """A pattern that counts the bytes it was asked to look at."""

    def __init__(self, pattern: re.Pattern[bytes], work: list[int]) -> None:
        self._pattern = pattern
        self._work = work

    def search(self, buffer: bytearray, start: int) -> re.Match[bytes] | None:
        found = self._pattern.search(buffer, start)
        self._work[0] += (found.end() if found else len(buffer)) - start
        return found


@pytest.mark.parametrize("size", [1, 7, 65_536])
@pytest.mark.parametrize(
    "document",
    [
        b'{"a":"' + b"x" * 60_000 + b'"}',
        b'{"a":"' + b"\\n" * 30_000 + b'"}',
        b'{"a":[' + b"[1]," * 10_000 + b"2]}",
    ],
)
def test_work_is_linear_in_the_bytes_however_they_are_sliced(
    monkeypatch: pytest.MonkeyPatch, document: bytes, size: int
) -> None:
    work = [0]
    monkeypatch.setattr(frames_module, "_INSIDE", CountingPattern(frames_module._INSIDE, work))
    monkeypatch.setattr(frames_module, "_OUTSIDE", CountingPattern(frames_module._OUTSIDE, work))
    data = b"[" + document + b"," + document + b"]"
    assert frames(data, size) == [document, document]
    assert work[0] <= 2 * len(data)


def test_what_was_given_out_is_forgotten() -> None:
    decoder = ArrayFrames()
    decoder.feed(b"[")
    for _ in range(100):
        decoder.feed(b'{"a":1}\n,\r\n')
        assert len(decoder._buffer) == 0
