"""What a supervisor and its workers say to each other: an order, and a word back."""

from __future__ import annotations

import msgspec

from dragoman.config import Config


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is to do; it holds secrets, so it goes through a pipe."""

    config: Config
    admin_keys: tuple[str, ...]
    address: str
    port: int


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says once: nothing is wrong, or what is."""

    wrong: str = ""
    where: str = ""
