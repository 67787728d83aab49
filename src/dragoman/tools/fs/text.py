"""Detect the encoding of a file, decode it to text and encode it back."""

from __future__ import annotations

import codecs

import msgspec

from dragoman.tools.errors import ToolFailed

_BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_MAGIC = {
    b"\x89PNG": "PNG image", b"\xff\xd8\xff": "JPEG image", b"GIF8": "GIF image", b"%PDF": "PDF document",
    b"PK\x03\x04": "ZIP archive", b"\x7fELF": "program", b"\x1f\x8b": "gzip archive", b"SQLite": "database",
}  # fmt: skip


class Encoding(msgspec.Struct, frozen=True):
    """A text encoding and its byte order mark."""

    name: str = "utf-8"
    bom: bytes = b""

    @property
    def note(self) -> str:
        """Describe the encoding for the model; empty for UTF-8 without a byte order mark."""
        mark = " with byte order mark" if self.bom else ""
        return "" if self == UTF8 else f"encoding: {self.name}{mark}"

    def decode(self, data: bytes) -> str:
        return data.removeprefix(self.bom).decode(self.name, "replace")

    def encode(self, text: str, *, bom: bool = True) -> bytes:
        """Encode text, with the byte order mark unless `bom` is false. Raise `ToolFailed` if it does not fit."""
        try:
            return (self.bom if bom else b"") + text.encode(self.name)
        except UnicodeEncodeError as error:
            bad = text[error.start]
            raise ToolFailed(f"the file is {self.name}, which has no character {bad!a}") from None


UTF8 = Encoding()


def detect_encoding(data: bytes, *, cut: bool = False) -> Encoding | None:
    """Return the encoding of a text, or None for binary data.

    `cut` says that `data` is only the beginning of the file and may end inside a character.
    """
    for bom, name in _BOMS.items():
        if data.startswith(bom):
            return Encoding(name, bom)
    if b"\0" in data or data.startswith(tuple(_MAGIC)):
        return None
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return UTF8 if cut and error.reason == "unexpected end of data" else Encoding("latin-1")
    return UTF8


def describe_binary(data: bytes) -> str:
    kind = next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), "")
    return f"is a binary file ({kind})" if kind else "is a binary file"
