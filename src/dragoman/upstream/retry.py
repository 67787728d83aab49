"""Decide what to do after a failed attempt: wait, use another key or model, or give up. No I/O.

The budget of attempts and seconds belongs to one client request and covers everything that is tried for it.
Attempts are never sent in parallel.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.errors import DragomanError, ErrorKind, UpstreamIncomplete, UpstreamProtocolError
from dragoman.upstream.keys import is_key_error

_FIRST_BACKOFF_S = 0.5
_BACKOFF_GROWTH = 2.0
_MIN_RATE_LIMIT_WAIT_S = 1.0  # shorter delays from the quota server are unreliable (known problem L2)
_MAX_TRIES_PER_MODEL = 2  # attempts with an overloaded model while another model is available

#: Errors that another model may avoid: this one does not exist, is out of quota or is too busy.
_MODEL_ERRORS: frozenset[ErrorKind] = frozenset(
    {"not_found", "quota", "rate_limit", "overloaded", "internal", "timeout"}
)


class RetryBudget(msgspec.Struct, frozen=True, kw_only=True):
    """The attempts and the waiting time that are left for one client request."""

    attempts: int
    wait_s: float

    def after(self, wait_s: float) -> RetryBudget:
        return RetryBudget(attempts=self.attempts - 1, wait_s=self.wait_s - wait_s)


class RetryStep(msgspec.Struct, frozen=True, kw_only=True):
    """The next attempt: how long to wait before it, and what to change."""

    wait_s: float = 0.0
    change: Literal["", "key", "model"] = ""


def next_step(
    error: DragomanError,
    attempt: int,
    budget: RetryBudget,
    jitter: float,
    *,
    other_key: bool = False,
    other_model: bool = False,
) -> RetryStep | None:
    """Return the step before attempt number `attempt + 1`, or None to give up.

    `jitter` is between 0 and 1; `other_key` and `other_model` say whether there is an alternative. An
    overloaded model is tried twice before another one is used.
    """
    if budget.attempts <= 1:
        return None
    if other_key and is_key_error(error):
        return RetryStep(change="key")
    wait_s = _wait_s(error, attempt, budget, jitter)
    elsewhere = other_model and error.kind in _MODEL_ERRORS
    if elsewhere and (wait_s is None or error.kind == "rate_limit" or attempt >= _MAX_TRIES_PER_MODEL):
        return RetryStep(change="model")
    return None if wait_s is None else RetryStep(wait_s=wait_s)


def _wait_s(error: DragomanError, attempt: int, budget: RetryBudget, jitter: float) -> float | None:
    """Return how long to wait before the same attempt is repeated, or None if waiting does not help.

    Waiting does not help after a refused request, a wrong key or a spent daily quota, nor after a timeout of
    our own (which has no status): its full time has already been waited.
    """
    if not error.retryable or (error.kind == "timeout" and error.status is None):
        return None
    if isinstance(error, UpstreamIncomplete | UpstreamProtocolError):
        return 0.0
    backoff = _FIRST_BACKOFF_S * _BACKOFF_GROWTH ** (attempt - 1)
    if error.kind == "rate_limit":
        wait = max(error.retry_after_s or 2 * backoff, _MIN_RATE_LIMIT_WAIT_S)
    else:
        wait = error.retry_after_s or backoff
    wait += jitter * 0.25 * backoff
    return wait if wait <= budget.wait_s else None
