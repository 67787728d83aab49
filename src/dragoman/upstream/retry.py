"""Whether to try again, and when: pure, within one budget of attempts and seconds per client request."""

from __future__ import annotations

import msgspec

from dragoman.errors import DragomanError, UpstreamCut, UpstreamGarbage

_FIRST_BACKOFF_S = 0.5
_BACKOFF_GROWTH = 2.0
_LEAST_RATE_LIMIT_WAIT_S = 1.0  # a sub-second delay from the quota server is not to be believed (pain L2)


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What is left for one client request."""

    attempts: int
    wait_s: float

    def after(self, wait_s: float) -> Budget:
        return Budget(attempts=self.attempts - 1, wait_s=self.wait_s - wait_s)


def wait_before_retry(error: DragomanError, attempt: int, budget: Budget, jitter: float) -> float | None:
    """Seconds to wait before attempt number `attempt + 1`, or None to give up; `jitter` is in 0..1.

    A daily quota, a refused request or a wrong key is not cured by waiting; nor is a silence that was
    already waited for to its end (a time-out of ours has no status).
    """
    if budget.attempts <= 1 or not error.retryable:
        return None
    if error.kind == "timeout" and error.status is None:
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
