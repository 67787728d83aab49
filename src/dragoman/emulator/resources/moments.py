"""Points in time and spans as Google writes them; the clock itself is always an argument."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def read_moment(text: str) -> datetime:
    """RFC 3339, with up to nanoseconds, which Python cuts to microseconds."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def write_moment(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def read_span(text: str) -> timedelta:
    """`300s`, `1.5s`"""
    return timedelta(seconds=float(text.removesuffix("s")))
