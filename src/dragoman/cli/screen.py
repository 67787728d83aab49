"""What the commands say: results on stdout, everything else on stderr, colours only for a person."""

from __future__ import annotations

import os
import sys
from typing import TextIO

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Failure(Exception):
    """A command cannot go on: one sentence, a hint, and the exit code."""

    def __init__(self, message: str, *, hint: str = "", code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


def paint(text: str, colour: str, stream: TextIO) -> str:
    """The text in a colour, or as it is when nobody could see it (https://no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty()
    return text if plain else f"\x1b[{_CODES[colour]}m{text}\x1b[0m"


def visible(text: str) -> str:
    """Somebody else's words: they must not move the cursor or colour the terminal."""
    return text if text.isprintable() else "".join(one if one.isprintable() else "�" for one in text)


def say(text: str) -> None:
    """A line of the result."""
    print(text, flush=True)


def remark(text: str) -> None:
    """A line beside the result."""
    print(f"{paint('dragoman:', 'dim', sys.stderr)} {text}", file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """Something the user should know although the command goes on."""
    print(f"dragoman: {paint('note:', 'yellow', sys.stderr)} {text}", file=sys.stderr, flush=True)


def complain(failure: Failure) -> None:
    """Why the command ends here."""
    print(f"dragoman: {paint('error:', 'red', sys.stderr)} {failure.message}", file=sys.stderr)
    if failure.hint:
        print(f"  {paint('hint:', 'cyan', sys.stderr)} {failure.hint}", file=sys.stderr)
    sys.stderr.flush()
