"""What to do after a failed attempt: wait, another key, another model, or give up; pure, within one budget.

The budget of attempts and seconds belongs to one client request, whatever is tried in it. Nothing is ever sent
twice at once.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.errors import DragomanError, ErrorKind, UpstreamCut, UpstreamGarbage
from dragoman.upstream.keys import is_the_keys_fault

_FIRST_BACKOFF_S = 0.5
_BACKOFF_GROWTH = 2.0
_LEAST_RATE_LIMIT_WAIT_S = 1.0  # a sub-second delay from the quota server is not to be believed (pain L2)
_TRIES_OF_ONE_MODEL = 2  # of an overloaded one, where another may do

#: What another model can cure: this one is gone, spent or too busy.
_MODEL_TROUBLE: frozenset[ErrorKind] = frozenset(
    {"not_found", "quota", "rate_limit", "overloaded", "internal", "timeout"}
)


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What is left for one client request."""

    attempts: int
    wait_s: float

    def after(self, wait_s: float) -> Budget:
        return Budget(attempts=self.attempts - 1, wait_s=self.wait_s - wait_s)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """Try again after so long, with something else than before."""

    wait_s: float = 0.0
    change: Literal["", "key", "model"] = ""


def next_step(
    error: DragomanError,
    attempt: int,
    budget: Budget,
    jitter: float,
    *,
    other_key: bool = False,
    other_model: bool = False,
) -> Step | None:
    """The step before attempt number `attempt + 1`, or None to give up; `jitter` is in 0..1.

    `other_key` and `other_model` tell what else there is. A busy model is tried twice before another one.
    """
    if budget.attempts <= 1:
        return None
    if other_key and is_the_keys_fault(error):
        return Step(change="key")
    wait_s = _wait_s(error, attempt, budget, jitter)
    elsewhere = other_model and error.kind in _MODEL_TROUBLE
    if elsewhere and (wait_s is None or error.kind == "rate_limit" or attempt >= _TRIES_OF_ONE_MODEL):
        return Step(change="model")
    return None if wait_s is None else Step(wait_s=wait_s)


def _wait_s(error: DragomanError, attempt: int, budget: Budget, jitter: float) -> float | None:
    """A daily quota, a refused request or a wrong key is not cured by waiting; nor is a silence that was
    already waited for to its end (a time-out of ours has no status)."""
    if not error.retryable or (error.kind == "timeout" and error.status is None):
        return None
    if isinstance(error, UpstreamCut | UpstreamGarbage):
        return 0.0
    backoff = _FIRST_BACKOFF_S * _BACKOFF_GROWTH ** (attempt - 1)
    if error.kind == "rate_limit":
        wait = max(error.retry_after_s or 2 * backoff, _LEAST_RATE_LIMIT_WAIT_S)
    else:
        wait = error.retry_after_s or backoff
    wait += jitter * 0.25 * backoff
    return wait if wait <= budget.wait_s else None
