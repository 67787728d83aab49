"""Fresh random words for ids."""

from __future__ import annotations

import os

_LETTERS = bytes(b"abcdefghijklmnopqrstuvwxyz234567"[value % 32] for value in range(256))
_CHARS = 16
_DRAWN = 64  # at once: a request takes three, and asking the system for each takes longer than the rest of it

_ready: list[str] = []


def new_token() -> str:
    """16 random letters and digits: 80 bits, unique for ever."""
    try:
        return _ready.pop()
    except IndexError:
        first, *others = _draw()
        _ready.extend(others)
        return first


def _draw() -> list[str]:
    letters = os.urandom(_CHARS * _DRAWN).translate(_LETTERS).decode()
    return [letters[at : at + _CHARS] for at in range(0, len(letters), _CHARS)]


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_ready.clear)  # what the parent gives out is not given out twice
