"""Terminal output: results on stdout, everything else on stderr, colours only on a terminal."""

from __future__ import annotations

import os
import sys
from typing import TextIO

_COLOUR_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class CommandError(Exception):
    """A command cannot continue: message, hint and exit code."""

    def __init__(self, message: str, *, hint: str = "", code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


def paint(text: str, colour: str, stream: TextIO) -> str:
    """Return the text in a colour, or unchanged if the stream shows none (https://no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty()
    return text if plain else f"\x1b[{_COLOUR_CODES[colour]}m{text}\x1b[0m"


def replace_controls(text: str) -> str:
    """Replace control characters in untrusted text, which could move the cursor or change colours."""
    return text if text.isprintable() else "".join(one if one.isprintable() else "�" for one in text)


def print_result(text: str) -> None:
    """Print a line of the result to stdout."""
    print(text, flush=True)


def print_status(text: str) -> None:
    """Print a remark to stderr."""
    print(f"{paint('dragoman:', 'dim', sys.stderr)} {text}", file=sys.stderr, flush=True)


def print_note(text: str) -> None:
    """Print a note to stderr; the command continues."""
    print(f"dragoman: {paint('note:', 'yellow', sys.stderr)} {text}", file=sys.stderr, flush=True)


def print_error(failure: CommandError) -> None:
    """Print the error that ends the command, with its hint."""
    print(f"dragoman: {paint('error:', 'red', sys.stderr)} {failure.message}", file=sys.stderr)
    if failure.hint:
        print(f"  {paint('hint:', 'cyan', sys.stderr)} {failure.hint}", file=sys.stderr)
    sys.stderr.flush()
