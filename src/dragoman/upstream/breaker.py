"""A circuit breaker for one model: stop sending requests after repeated failures, then probe."""

from __future__ import annotations

_MAX_FAILURES = 5  # consecutive
_OPEN_S = 10.0
_PROBE_TIMEOUT_S = 30.0  # how long to wait for a probe whose outcome is never reported


class CircuitBreaker:
    """closed -- five failures in a row --> open -- ten seconds --> one probe -- success --> closed

    A failed probe opens the breaker again. Any answer closes it, even if Google refuses the request. The
    caller passes the current time.
    """

    def __init__(self, failures: int = _MAX_FAILURES, open_s: float = _OPEN_S) -> None:
        self._max_failures = failures
        self._open_s = open_s
        self._failures = 0
        self._blocked_until_s = 0.0  # while open, no request passes before this time

    def acquire(self, now_s: float) -> float:
        """Return 0 if the request may be sent, otherwise the seconds to wait.

        A caller that gets 0 must report the outcome with `record_success`, `record_failure` or `release`.
        """
        if self._failures < self._max_failures:
            return 0.0
        if now_s >= self._blocked_until_s:
            self._blocked_until_s = now_s + _PROBE_TIMEOUT_S  # this request is the probe
            return 0.0
        return self._blocked_until_s - now_s

    def remaining_open_s(self, now_s: float) -> float:
        """Return how long the breaker stays open, without starting a probe."""
        return max(0.0, self._blocked_until_s - now_s) if self._failures >= self._max_failures else 0.0

    @property
    def failures(self) -> int:
        """Return the number of consecutive failures."""
        return self._failures

    def release(self, now_s: float) -> None:
        """Report that a permitted request was not sent after all, so that the next one may be the probe."""
        if self._failures >= self._max_failures:
            self._blocked_until_s = now_s

    def record_success(self) -> None:
        self._failures = 0

    def record_failure(self, now_s: float) -> None:
        self._failures += 1
        if self._failures >= self._max_failures:
            self._blocked_until_s = now_s + self._open_s
