"""Names for new things: as long and as random-looking as Google's, and the same for the same history."""

from __future__ import annotations

import hashlib

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
DIGITS = "123456789"


def make_name(kind: str, serial: int, now: str, *, alphabet: str, length: int) -> str:
    """Different for every serial number of a kind; `now` keeps a restarted emulator from repeating itself."""
    digest = hashlib.blake2b(f"{kind}|{serial}|{now}".encode(), digest_size=64).digest()
    return "".join(alphabet[byte % len(alphabet)] for byte in digest[:length])
