"""Where the random part of every id comes from."""

from __future__ import annotations

import secrets
import string

_ALPHABET = string.ascii_letters + string.digits
_LENGTH = 16  # 95 bits: unique for ever, and an id with its prefix stays far below 64 characters


def new_token() -> str:
    """Sixteen random letters and digits."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
