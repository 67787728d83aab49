"""Choose one of several API keys for a request, and compute cooldowns after a key is refused. No I/O.

A conversation keeps its key, so that Google's implicit cache keeps hitting; it uses another one only while
its key is cooling down. A table says which errors start a cooldown, and for which models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import msgspec

from dragoman.errors import DragomanError, ErrorKind

ALL_MODELS = "*"
_MAX_RATE_LIMIT_S = 120.0


class ApiKey(msgspec.Struct, frozen=True):
    """An API key, with a name derived from it that may be shown and stored."""

    secret: str
    name: str


NO_KEY = ApiKey("", "")


class Cooldown(msgspec.Struct, frozen=True):
    """A cooldown: do not use the key for `model` (or `ALL_MODELS`) until `until_s`."""

    key: str
    model: str
    until_s: float


class _CooldownRule(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float
    all_models: bool = False


#: Errors that are due to the key. Google does not say when a daily quota resets, so it is tried again every
#: half hour.
_COOLDOWN_RULES: dict[ErrorKind, _CooldownRule] = {
    "rate_limit": _CooldownRule(seconds=15),
    "quota": _CooldownRule(seconds=1800),
    "permission": _CooldownRule(seconds=600),
    "authentication": _CooldownRule(seconds=600, all_models=True),
}


def name_keys(secrets: Sequence[str]) -> tuple[ApiKey, ...]:
    return tuple(ApiKey(secret, blake2b(secret.encode(), digest_size=6).hexdigest()) for secret in secrets)


def is_key_error(error: DragomanError) -> bool:
    return error.kind in _COOLDOWN_RULES


def cooldown_for(error: DragomanError, key: str, model: str, now_s: float) -> Cooldown | None:
    """Return the cooldown that this error starts, or None if the key is not at fault."""
    rule = _COOLDOWN_RULES.get(error.kind)
    if rule is None:
        return None
    seconds = rule.seconds
    if error.kind == "rate_limit" and error.retry_after_s is not None:
        seconds = min(max(error.retry_after_s, 1.0), _MAX_RATE_LIMIT_S)
    return Cooldown(key, ALL_MODELS if rule.all_models else model, now_s + seconds)


def rank_keys(keys: Sequence[ApiKey], session: str) -> list[ApiKey]:
    """Return the keys in the order in which one conversation prefers them (rendezvous hashing).

    The order depends only on the conversation and the keys. A key that is added or removed affects only the
    conversations that prefer it.
    """
    return sorted(keys, key=lambda key: blake2b(f"{session}\0{key.name}".encode(), digest_size=8).digest())


def choose_key(
    keys: Sequence[ApiKey], session: str, model: str, cooldowns: Mapping[tuple[str, str], float], now_s: float
) -> ApiKey | None:
    """Return the preferred key that is not cooling down, or None."""
    return next(
        (key for key in rank_keys(keys, session) if remaining_cooldown_s(key, model, cooldowns, now_s) == 0),
        None,
    )


def shortest_cooldown_s(
    keys: Sequence[ApiKey], model: str, cooldowns: Mapping[tuple[str, str], float], now_s: float
) -> float:
    """Return the seconds until the first of the keys is available again."""
    return min((remaining_cooldown_s(key, model, cooldowns, now_s) for key in keys), default=0.0)


def remaining_cooldown_s(
    key: ApiKey, model: str, cooldowns: Mapping[tuple[str, str], float], now_s: float
) -> float:
    """Return the remaining cooldown of the key for this model, in seconds."""
    ends = (cooldowns.get((key.name, which), 0.0) for which in (model, ALL_MODELS))
    return max(0.0, max(ends) - now_s)
