"""Choose one of several API keys for a request, and compute cooldowns after a key is refused. No I/O.

A conversation keeps its key, so that Google's implicit cache keeps hitting; it uses another one only while
its key is cooling down. A table says which errors start a cooldown, and for which models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import msgspec

from dragoman.errors import DragomanError, ErrorKind

EVERY_MODEL = "*"
_MOST_RATE_LIMIT_S = 120.0


class Key(msgspec.Struct, frozen=True):
    """An API key, with a name derived from it that may be shown and stored."""

    secret: str
    name: str


NO_KEY = Key("", "")


class Rest(msgspec.Struct, frozen=True):
    """A cooldown: do not use the key for `model` (or `EVERY_MODEL`) until `until_s`."""

    key: str
    model: str
    until_s: float


class _Rule(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float
    every_model: bool = False


#: Errors that are due to the key. Google does not say when a daily quota resets, so it is tried again every
#: half hour.
_RULES: dict[ErrorKind, _Rule] = {
    "rate_limit": _Rule(seconds=15),
    "quota": _Rule(seconds=1800),
    "permission": _Rule(seconds=600),
    "authentication": _Rule(seconds=600, every_model=True),
}


def name_keys(secrets: Sequence[str]) -> tuple[Key, ...]:
    return tuple(Key(secret, blake2b(secret.encode(), digest_size=6).hexdigest()) for secret in secrets)


def is_the_keys_fault(error: DragomanError) -> bool:
    return error.kind in _RULES


def rest_after(error: DragomanError, key: str, model: str, now_s: float) -> Rest | None:
    """Return the cooldown that this error starts, or None if the key is not at fault."""
    rule = _RULES.get(error.kind)
    if rule is None:
        return None
    seconds = rule.seconds
    if error.kind == "rate_limit" and error.retry_after_s is not None:
        seconds = min(max(error.retry_after_s, 1.0), _MOST_RATE_LIMIT_S)
    return Rest(key, EVERY_MODEL if rule.every_model else model, now_s + seconds)


def in_order(keys: Sequence[Key], session: str) -> list[Key]:
    """Return the keys in the order in which one conversation prefers them (rendezvous hashing).

    The order depends only on the conversation and the keys. A key that is added or removed affects only the
    conversations that prefer it.
    """
    return sorted(keys, key=lambda key: blake2b(f"{session}\0{key.name}".encode(), digest_size=8).digest())


def choose(
    keys: Sequence[Key], session: str, model: str, rests: Mapping[tuple[str, str], float], now_s: float
) -> Key | None:
    """Return the preferred key that is not cooling down, or None."""
    return next((key for key in in_order(keys, session) if rested_s(key, model, rests, now_s) == 0), None)


def soonest_s(keys: Sequence[Key], model: str, rests: Mapping[tuple[str, str], float], now_s: float) -> float:
    """Return the seconds until the first of the keys is available again."""
    return min((rested_s(key, model, rests, now_s) for key in keys), default=0.0)


def rested_s(key: Key, model: str, rests: Mapping[tuple[str, str], float], now_s: float) -> float:
    """Return the remaining cooldown of the key for this model, in seconds."""
    ends = (rests.get((key.name, which), 0.0) for which in (model, EVERY_MODEL))
    return max(0.0, max(ends) - now_s)
