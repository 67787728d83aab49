"""Timestamps and durations in Google's format. The current time is always an argument."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def parse_timestamp(text: str) -> datetime:
    """Parse RFC 3339. Python truncates nanoseconds to microseconds."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def format_timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_duration(text: str) -> timedelta:
    """Parse a duration such as `300s` or `1.5s`."""
    return timedelta(seconds=float(text.removesuffix("s")))
