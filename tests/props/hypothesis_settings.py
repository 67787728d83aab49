"""How hard a property tries: as many examples as it says, however slow the machine is."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)


def examples(number: int) -> settings:
    return settings(max_examples=number, deadline=None, suppress_health_check=SLOW)
