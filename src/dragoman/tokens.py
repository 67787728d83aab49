"""Fresh random words for ids."""

from __future__ import annotations

import base64
import secrets


def new_token() -> str:
    """16 random letters and digits: 80 bits, unique for ever."""
    return base64.b32encode(secrets.token_bytes(10)).decode().lower()
