"""Terminal colours, text widths, and escaping of untrusted text."""

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

# Control characters become their Unicode pictures. Characters that reorder text (U+202A…) or are invisible (U+200B,
# tags) are replaced, because they could display another file name or content than is written. Joiners (U+200C,
# U+200D) stay: scripts and emoji need them.
_INVISIBLE = (0x061C, 0x200B, 0x200E, 0x200F, *range(0x2060, 0x2066), 0xFEFF, *range(0xE0000, 0xE0080))
_CONTROL_PICTURES = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"}
_ESCAPES = (
    _CONTROL_PICTURES
    | {0x7F: "\u2421"}
    | dict.fromkeys((*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")
    | dict.fromkeys(_INVISIBLE, "\ufffd")
    | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
)


class TerminalStyle(msgspec.Struct, frozen=True, kw_only=True):
    """The terminal's capabilities: colours, rewriting the current line (`live`), and its width in columns."""

    colour: bool = False
    live: bool = False
    width: int = 80

    def paint(self, text: str, *names: str) -> str:
        """Return the text in the named colours and styles, or unchanged if the terminal has no colours."""
        if not self.colour or not names or not text:
            return text
        codes = ";".join(_CODES[name] for name in names)
        return f"\x1b[{codes}m{text}{_RESET}"


def detect_style(stream: TextIO, env: Mapping[str, str]) -> TerminalStyle:
    """Detect the capabilities of a stream: no colours for files, dumb terminals, or if NO_COLOR is set.

    See https://no-color.org.
    """
    is_terminal = stream.isatty() and env.get("TERM", "") != "dumb"
    columns = shutil.get_terminal_size().columns if is_terminal else 80
    width = min(max(columns, _MIN_WIDTH), _MAX_WIDTH)
    return TerminalStyle(colour=is_terminal and not env.get("NO_COLOR"), live=is_terminal, width=width)


def escape_controls(text: str) -> str:
    """Replace control sequences and invisible or reordering characters, so that untrusted text is safe to print."""
    return text.replace("\r\n", "\n").translate(_ESCAPES)


def display_width(text: str) -> int:
    """Return how many terminal columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(map(character_width, text))


def shorten(text: str, width: int) -> str:
    """Return the text as one line, cut to fit `width` columns."""
    line = " ".join(text.split())
    if display_width(line) <= width:
        return line
    while line and display_width(line) > width - 1:
        line = line[:-1]
    return f"{line}…"


def character_width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
