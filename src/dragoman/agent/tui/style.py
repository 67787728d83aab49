"""Colours, widths, and text that cannot play tricks on a terminal."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Mapping
from typing import TextIO

import msgspec

_CODES = {
    "bold": "1",
    "dim": "2",
    "italic": "3",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}
_RESET = "\x1b[0m"
_MIN_WIDTH = 20
_MAX_WIDTH = 100  # longer lines are hard to read

# Control characters as their pictures; what reorders text (U+202A…) or is not seen at all (U+200B, tags) could
# show another file than is written. Joiners (U+200C, U+200D) stay: scripts and emoji need them.
_UNSEEN = (0x061C, 0x200B, 0x200E, 0x200F, *range(0x2060, 0x2066), 0xFEFF, *range(0xE0000, 0xE0080))
_PICTURES = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"}
_HARMLESS = (
    _PICTURES
    | {0x7F: "\u2421"}
    | dict.fromkeys((*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")
    | dict.fromkeys(_UNSEEN, "\ufffd")
    | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
)


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """What the terminal can do: colours, rewriting a line (`live`), and how many columns it has."""

    colour: bool = False
    live: bool = False
    width: int = 80

    def paint(self, text: str, *names: str) -> str:
        if not self.colour or not names or not text:
            return text
        codes = ";".join(_CODES[name] for name in names)
        return f"\x1b[{codes}m{text}{_RESET}"


def find_style(stream: TextIO, env: Mapping[str, str]) -> Style:
    """No colours for files, for dumb terminals, and for whoever asks for none (https://no-color.org)."""
    is_terminal = stream.isatty() and env.get("TERM", "") != "dumb"
    columns = shutil.get_terminal_size().columns if is_terminal else 80
    width = min(max(columns, _MIN_WIDTH), _MAX_WIDTH)
    return Style(colour=is_terminal and not env.get("NO_COLOR"), live=is_terminal, width=width)


def harmless(text: str) -> str:
    """The text without anything a terminal would obey instead of show."""
    return text.replace("\r\n", "\n").translate(_HARMLESS)


def cells(text: str) -> int:
    """How many columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_cells_of, text))


def shorten(text: str, width: int) -> str:
    """One line that fits."""
    line = " ".join(text.split())
    if cells(line) <= width:
        return line
    while line and cells(line) > width - 1:
        line = line[:-1]
    return f"{line}…"


def _cells_of(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
