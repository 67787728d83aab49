"""Spoilt event streams: messages or a typed error, the same in any slicing, and nothing botocore reads otherwise."""

from __future__ import annotations

import random
import struct
from collections import Counter
from zlib import crc32

import pytest
from botocore.eventstream import EventStreamBuffer

from dragoman.errors import DragomanError, UpstreamIncomplete, UpstreamProtocolError
from dragoman.http.aws_eventstream import EventMessage, EventStreamDecoder
from tests.unit.http.eventstream_frames import OTHER_TYPES, frame, header, text

_SHARDS = 4
_CASES = 1500
_SEEDS = (
    frame(text(":event-type", "x") + text(":message-type", "event"), b"{}"),
    frame(b"".join(header(name, typed) for name, typed in OTHER_TYPES.items()) + text("a", "€"), b"12"),
    frame(text("a" * 255, "v" * 400)),
    frame(),
)
_NUMBERS = (
    0,
    1,
    2,
    7,
    15,
    16,
    17,
    127,
    128,
    255,
    256,
    0x7FFF,
    0xFFFF,
    1 << 17,
    (1 << 17) + 1,
    1 << 31,
    0xFFFFFFFF,
)

Outcome = tuple[list[EventMessage], type[DragomanError] | None]


@pytest.mark.parametrize("shard", range(_SHARDS))
def test_spoilt_streams_are_read_or_refused(shard: int) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(_CASES):
        chance = random.Random(f"{shard}.{number}")
        data = b"".join(_spoil(chance.choice(_SEEDS), chance) for _ in range(chance.choice((1, 1, 2, 3))))
        messages, error = _read([data])
        cuts = sorted(chance.choices(range(len(data) + 1), k=5))
        pieces = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        assert _read(pieces) == (messages, error), data.hex()
        if error is None:
            assert _botocore(data) == messages, data.hex()
        outcomes[error.__name__ if error else "read"] += 1
    # Neither the reader nor any refusal may go unvisited.
    assert (
        min(outcomes["read"], outcomes["UpstreamProtocolError"], outcomes["UpstreamIncomplete"])
        > _CASES // 50
    ), outcomes


def _read(pieces: list[bytes]) -> Outcome:
    decoder, messages = EventStreamDecoder(), list[EventMessage]()
    try:
        for piece in pieces:
            messages += decoder.feed(piece)
        decoder.close()
    except (UpstreamProtocolError, UpstreamIncomplete) as error:
        return messages, type(error)
    return messages, None


def _botocore(data: bytes) -> list[EventMessage]:
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    return [
        EventMessage({n: v for n, v in message.headers.items() if isinstance(v, str)}, message.payload)
        for message in buffer
    ]


def _spoil(message: bytes, chance: random.Random) -> bytes:
    spoilt = bytearray(message)
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        at = chance.randrange(len(spoilt) + 1)
        match chance.randrange(6):
            case 0 if at < len(spoilt):
                spoilt[at] ^= 1 << chance.randrange(8)
            case 1:
                del spoilt[at : at + chance.choice((1, 2, 20))]
            case 2:
                spoilt[at:at] = spoilt[at : at + chance.choice((1, 2, 20))]
            case 3:
                spoilt[at:at] = chance.randbytes(chance.choice((1, 4)))
            case 4 if len(spoilt) > 8:
                struct.pack_into(">I", spoilt, chance.choice((0, 4)), chance.choice(_NUMBERS))
            case _ if at < len(spoilt):
                spoilt[at] = chance.choice(_NUMBERS) & 0xFF
    return _sign(spoilt, keep_lengths=chance.random() < 0.5) if chance.random() < 0.8 else bytes(spoilt)


def _sign(spoilt: bytearray, *, keep_lengths: bool) -> bytes:
    """Right checksums, and often a right length: behind them lies what is worth spoiling."""
    if len(spoilt) < 16:
        return bytes(spoilt)
    if not keep_lengths:
        struct.pack_into(">I", spoilt, 0, len(spoilt))
    struct.pack_into(">I", spoilt, 8, crc32(spoilt[:8]))
    struct.pack_into(">I", spoilt, len(spoilt) - 4, crc32(spoilt[:-4]))
    return bytes(spoilt)
