"""The soak test for some seconds instead of half an hour, which is too short to measure memory growth."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.mixed_traffic import Report, soak

_SECONDS = 12.0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # google-genai's own
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)  # boto3's
async def test_mixed_traffic_with_faults_violates_no_protocol_and_leaks_nothing(tmp_path: Path) -> None:
    report = await soak(tmp_path, _SECONDS)
    print(report)
    assert report.violations == []
    assert report.descriptors[1] <= report.descriptors[0]
    assert report.left_at_google == 0
    assert report.ends["answered"] > report.ends.total() / 2


def _report(minutes: int, warm_min: int, rise_kib: int) -> Report:
    """Grow by a megabyte per minute during the warm-up, then by `rise_kib` per minute."""
    seconds = range(minutes * 60)
    kib = [
        1024 * min(at, warm_min * 60) // 60 + rise_kib * max(0, at - warm_min * 60) // 60 for at in seconds
    ]
    points = [(float(at), 50_000 + one) for at, one in zip(seconds, kib, strict=True)]
    return Report(seconds=minutes * 60, warm_s=warm_min * 60, rss_kib=points)


@pytest.mark.parametrize("rise_kib", [0, 300])
def test_growth_counts_as_a_leak_only_after_the_warm_up(rise_kib: int) -> None:
    slope = _report(30, 12, rise_kib).slope_kib_per_min
    assert slope is not None
    assert slope == pytest.approx(rise_kib, abs=2)


def test_a_run_shorter_than_the_warm_up_has_no_slope() -> None:
    assert _report(13, 12, 0).slope_kib_per_min is None
    assert Report(seconds=1800.0, rss_kib=[(float(at), 1) for at in range(1800)]).slope_kib_per_min is None
