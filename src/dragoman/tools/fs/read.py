"""Read a text file, as a whole or a range of lines."""

from __future__ import annotations

import io
from typing import BinaryIO

import msgspec

from dragoman.tools.errors import ToolFailed, ToolRefused
from dragoman.tools.fs.text import describe_binary, detect_encoding
from dragoman.tools.sandbox import Sandbox

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
    with sandbox.open_entry(path) as place:
        descriptor, status = place.open()
        with open(descriptor, "rb") as file:
            size = status.st_size
            if size > (max_bytes if wanted.whole else _MAX_SCAN_BYTES):
                hint = ": read a range of lines with offset and limit" if wanted.whole else ""
                why = f"{size:,} bytes is above the limit of {max_bytes:,}{hint}"
                raise ToolRefused(why, where=place.path)
            start = file.read(max(_PROBE_BYTES, min(size, max_bytes)))
            encoding = detect_encoding(start, cut=len(start) < size)
            if encoding is None:
                raise ToolFailed(f"{describe_binary(start)}, {size:,} bytes", where=place.path)
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
