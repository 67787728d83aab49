"""Event-stream frames built by hand, sound or spoilt: nothing of the code under test is used."""

from __future__ import annotations

import binascii
import struct

#: One value of each type of the format but text, as it lies on the wire.
OTHER_TYPES = {
    "true": b"\x00",
    "false": b"\x01",
    "byte": b"\x02\xff",
    "short": b"\x03\xff\xfe",
    "integer": b"\x04\x00\x00\x00\x07",
    "long": b"\x05" + bytes(7) + b"\x07",
    "bytes": b"\x06\x00\x03\x00\xff\x01",
    "timestamp": b"\x08" + bytes(7) + b"\x07",
    "uuid": b"\x09" + bytes(range(16)),
}


def text(name: str, value: str) -> bytes:
    return header(name, b"\x07" + struct.pack(">H", len(value.encode())) + value.encode())


def header(name: str, typed: bytes) -> bytes:
    return bytes([len(name.encode())]) + name.encode() + typed


def frame(
    head: bytes = b"",
    payload: bytes = b"",
    *,
    total: int | None = None,
    head_length: int | None = None,
    prelude_flaw: int = 0,
    flaw: int = 0,
) -> bytes:
    """A message; lengths may lie, and a flaw is mixed into its checksum."""
    lengths = struct.pack(
        ">II",
        len(head) + len(payload) + 16 if total is None else total,
        len(head) if head_length is None else head_length,
    )
    prelude = lengths + struct.pack(">I", binascii.crc32(lengths) ^ prelude_flaw)
    message = prelude + head + payload
    return message + struct.pack(">I", binascii.crc32(message) ^ flaw)
