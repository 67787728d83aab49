"""A model that keeps failing is left alone for a while; then one request finds out whether it is back."""

from __future__ import annotations

_FAILURES = 5  # in a row
_OPEN_S = 10.0
_PROBE_S = 30.0  # a probe that nobody hears of again


class Breaker:
    """closed -- five failures in a row --> open -- ten seconds --> one probe -- success --> closed

    A failed probe opens it again; any answer closes it, a refusal too. The caller brings the time.
    """

    def __init__(self, failures: int = _FAILURES, open_s: float = _OPEN_S) -> None:
        self._most = failures
        self._open_s = open_s
        self._failures = 0
        self._closed_from_s = 0.0  # until then nobody passes

    def wait_s(self, now_s: float) -> float:
        """0: go ahead (and tell how it went); else come again after so long."""
        if self._failures < self._most:
            return 0.0
        if now_s >= self._closed_from_s:
            self._closed_from_s = now_s + _PROBE_S  # this one is the probe
            return 0.0
        return self._closed_from_s - now_s

    def rests_s(self, now_s: float) -> float:
        """How long it still keeps everybody away; whoever only looks is no probe."""
        return max(0.0, self._closed_from_s - now_s) if self._failures >= self._most else 0.0

    @property
    def failures(self) -> int:
        """In a row, until now."""
        return self._failures

    def unasked(self, now_s: float) -> None:
        """Whoever was let through has not asked after all; if that was the probe, the next one is."""
        if self._failures >= self._most:
            self._closed_from_s = now_s

    def succeeded(self) -> None:
        self._failures = 0

    def failed(self, now_s: float) -> None:
        self._failures += 1
        if self._failures >= self._most:
            self._closed_from_s = now_s + self._open_s
