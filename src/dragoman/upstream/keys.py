"""Which of several keys a request goes with, and how long one that was refused rests; pure.

A conversation stays with its key, so that Google's implicit cache keeps hitting; it moves only while its key
rests. What makes a key rest, and for which models, is a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import msgspec

from dragoman.errors import DragomanError, ErrorKind

EVERY_MODEL = "*"
_MOST_RATE_LIMIT_S = 120.0


class Key(msgspec.Struct, frozen=True):
    """A secret, and a name for it that may be shown and stored."""

    secret: str
    name: str


NO_KEY = Key("", "")


class Rest(msgspec.Struct, frozen=True):
    """One key is left alone until then; for one model, or for every one."""

    key: str
    model: str
    until_s: float


class _Rule(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float
    every_model: bool = False


#: What the key itself is refused for. A spent day is asked for again now and then: nobody says when it ends.
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
    """How long the key rests after that answer; None: it does not."""
    rule = _RULES.get(error.kind)
    if rule is None:
        return None
    seconds = rule.seconds
    if error.kind == "rate_limit" and error.retry_after_s is not None:
        seconds = min(max(error.retry_after_s, 1.0), _MOST_RATE_LIMIT_S)
    return Rest(key, EVERY_MODEL if rule.every_model else model, now_s + seconds)


def in_order(keys: Sequence[Key], session: str) -> list[Key]:
    """The keys as one conversation prefers them: each conversation in its own order, always the same.

    A key that is added or taken away moves only the conversations that prefer it.
    """
    return sorted(keys, key=lambda key: blake2b(f"{session}\0{key.name}".encode(), digest_size=8).digest())


def choose(
    keys: Sequence[Key], session: str, model: str, rests: Mapping[tuple[str, str], float], now_s: float
) -> Key | None:
    """The preferred key that does not rest; None if all do."""
    return next((key for key in in_order(keys, session) if rested_s(key, model, rests, now_s) == 0), None)


def soonest_s(keys: Sequence[Key], model: str, rests: Mapping[tuple[str, str], float], now_s: float) -> float:
    """How long until one of them may be asked again."""
    return min((rested_s(key, model, rests, now_s) for key in keys), default=0.0)


def rested_s(key: Key, model: str, rests: Mapping[tuple[str, str], float], now_s: float) -> float:
    """How long this key still rests for that model."""
    ends = (rests.get((key.name, which), 0.0) for which in (model, EVERY_MODEL))
    return max(0.0, max(ends) - now_s)
