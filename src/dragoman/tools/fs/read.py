"""Read text files: detect the encoding, decode, and return the whole file or a range of lines."""

from __future__ import annotations

import codecs
import io
from typing import BinaryIO

import msgspec

from dragoman.tools.errors import ToolFailed, ToolRefused
from dragoman.tools.fs.sandbox import Sandbox

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


_PROBE_BYTES = 64 * 1024
_MAX_SCAN_BYTES = 256 * 1024 * 1024  # maximum size of a file for reading a range


class LineRange(msgspec.Struct, frozen=True, kw_only=True):
    """A range of lines: `offset` is the first line, counted from 1; `limit` is the number of lines."""

    offset: int = 1
    limit: int | None = None

    @property
    def whole(self) -> bool:
        return self.offset <= 1 and self.limit is None


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """The text that was read, and a note about its encoding and range."""

    text: str
    note: str = ""


def read_text(
    sandbox: Sandbox, path: str, wanted: LineRange, *, max_bytes: int, numbered: bool = False
) -> Excerpt:
    """Return the wanted lines as they are in the file, with line numbers if `numbered`.

    A range that exceeds `max_bytes` is cut, with a note. Raises `ToolRefused` for a whole file or a single line
    that exceeds it, and `ToolFailed` for a binary file or a range after its end.
    """
    with sandbox.open_entry(path) as entry:
        descriptor, status = entry.open()
        with open(descriptor, "rb") as file:
            size = status.st_size
            if size > (max_bytes if wanted.whole else _MAX_SCAN_BYTES):
                hint = ": read a range of lines with offset and limit" if wanted.whole else ""
                why = f"{size:,} bytes is above the limit of {max_bytes:,}{hint}"
                raise ToolRefused(why, where=entry.path)
            start = file.read(max(_PROBE_BYTES, min(size, max_bytes)))
            encoding = detect_encoding(start, cut=len(start) < size)
            if encoding is None:
                raise ToolFailed(f"{describe_binary(start)}, {size:,} bytes", where=entry.path)
            file.seek(len(encoding.bom))
            lines, cut = _lines(file, encoding.name, wanted, max_bytes)
    text = "".join(_number(lines, wanted.offset) if numbered else lines)
    return Excerpt(text=text, note="; ".join(filter(None, [encoding.note, _range_note(lines, wanted, cut)])))


def _lines(file: BinaryIO, encoding: str, wanted: LineRange, max_bytes: int) -> tuple[list[str], bool]:
    """Return the wanted lines, and whether they were cut at `max_bytes`."""
    taken: list[str] = []
    seen, size, ended = 0, 0, True
    with io.TextIOWrapper(file, encoding, errors="replace", newline="\n") as text:
        while wanted.limit is None or len(taken) < wanted.limit:
            line = text.readline(max_bytes + 1)
            if not line:
                break
            seen += ended  # `readline` returns a very long line in several pieces
            ended = line.endswith("\n")
            if seen < wanted.offset:
                continue
            size += len(line.encode("utf-8", "replace"))
            if size > max_bytes and not taken:
                raise ToolRefused(f"line {seen} alone is longer than {max_bytes:,} bytes")
            if size > max_bytes:
                return taken, True
            taken.append(line)
    if not taken and wanted.offset > 1:
        raise ToolFailed(f"line {wanted.offset} was asked for, and the file has {seen}")
    return taken, False


def _number(lines: list[str], start: int) -> list[str]:
    return [f"{number:>6}\t{line}" for number, line in enumerate(lines, max(1, start))]


def _range_note(lines: list[str], wanted: LineRange, cut: bool) -> str:
    if wanted.whole and not cut:
        return ""
    first = max(1, wanted.offset)
    more = ", and there is more: it would be too long at once" if cut else ""
    return f"lines {first} to {first + len(lines) - 1}{more}"
