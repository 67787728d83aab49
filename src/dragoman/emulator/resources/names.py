"""Names for new resources: of the same length and alphabet as Google's, but deterministic."""

from __future__ import annotations

import hashlib

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
DIGITS = "123456789"


def make_resource_name(kind: str, serial: int, now: str, *, alphabet: str, length: int) -> str:
    """Return a name that differs for every serial number of a kind.

    `now` makes the names of a restarted emulator differ from those before.
    """
    digest = hashlib.blake2b(f"{kind}|{serial}|{now}".encode(), digest_size=64).digest()
    return "".join(alphabet[byte % len(alphabet)] for byte in digest[:length])
