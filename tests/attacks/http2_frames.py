"""HTTP/2 frames by hand, valid or not."""

from __future__ import annotations

from hpack import Encoder

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    range(10)
)
END_STREAM, ACK, END_HEADERS, PADDED = 0x1, 0x1, 0x4, 0x8
HEADER_TABLE_SIZE, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = 1, 3, 4, 5


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


def setting(name: int, value: int) -> bytes:
    return name.to_bytes(2) + value.to_bytes(4)


def header_block(method: str = "GET", path: str = "/healthz", **more: str) -> bytes:
    """A block that needs nothing of the dynamic table, so that any stream can send it."""
    fields = {":method": method, ":scheme": "http", ":path": path, ":authority": "127.0.0.1"}
    named = {name.replace("_", "-"): value for name, value in more.items()}
    return Encoder().encode([*fields.items(), *named.items()], huffman=False)


def opening(*own_settings: bytes) -> bytes:
    return PREFACE + frame(SETTINGS, payload=b"".join(own_settings)) + frame(SETTINGS, ACK)
