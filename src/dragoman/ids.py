"""Random ids for requests, calls and stored objects: 80 bits each, in lower-case base32 letters.

Separate from the translation, which gets its ids as an argument: this module asks the operating system for randomness.
"""

from __future__ import annotations

import os

_LETTERS = bytes(b"abcdefghijklmnopqrstuvwxyz234567"[value % 32] for value in range(256))
_CHARS = 16
_BATCH = 64  # ids per call of `os.urandom`, whose cost dominates; a request needs about three

_ready: list[str] = []


def new_id() -> str:
    """Return 16 random letters and digits: 80 bits, so that collisions can be ignored."""
    try:
        return _ready.pop()
    except IndexError:
        first, *others = _generate()
        _ready.extend(others)
        return first


def _generate() -> list[str]:
    letters = os.urandom(_CHARS * _BATCH).translate(_LETTERS).decode()
    return [letters[at : at + _CHARS] for at in range(0, len(letters), _CHARS)]


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_ready.clear)  # parent and child must not return the same ids
