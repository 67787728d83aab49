"""Fresh random words for ids."""

from __future__ import annotations

import os

_LETTERS = bytes(b"abcdefghijklmnopqrstuvwxyz234567"[value % 32] for value in range(256))


def new_token() -> str:
    """16 random letters and digits: 80 bits, unique for ever."""
    return os.urandom(16).translate(_LETTERS).decode()
