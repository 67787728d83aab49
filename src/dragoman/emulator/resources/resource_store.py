"""What the stored resources have in common: expiration, generated names, timestamps, and pagination.

`ResourceStore` is bounded in bytes and number; the oldest items are evicted first. The current time is always an
argument. Generated names have the length and the alphabet of Google's, but they are deterministic.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

import msgspec

from dragoman.emulator.errors import ApiError, field_violations_error


def parse_timestamp(text: str) -> datetime:
    """Parse RFC 3339. Python truncates nanoseconds to microseconds."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def format_timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_duration(text: str) -> timedelta:
    """Parse a duration such as `300s` or `1.5s`."""
    return timedelta(seconds=float(text.removesuffix("s")))


LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
DIGITS = "123456789"


def make_resource_name(kind: str, serial: int, now: str, *, alphabet: str, length: int) -> str:
    """Return a name that differs for every serial number of a kind.

    `now` makes the names of a restarted emulator differ from those before.
    """
    digest = hashlib.blake2b(f"{kind}|{serial}|{now}".encode(), digest_size=64).digest()
    return "".join(alphabet[byte % len(alphabet)] for byte in digest[:length])


def paginate(
    field: str, items: Sequence[Any], query: Mapping[str, str], *, default: int, most: int
) -> dict[str, Any]:
    """Return `{field: […], nextPageToken}`. Google's JSON omits an empty list, so this does too."""
    size = min(_page_size(query) or default, most)
    start = _decode_page_token(query)
    page = list(items[start : start + size])
    response: dict[str, Any] = {field: page} if page else {}
    if start + size < len(items):
        response["nextPageToken"] = _encode_page_token(start + size)
    return response


def _page_size(query: Mapping[str, str]) -> int:
    text = query.get("pageSize") or query.get("page_size") or "0"
    try:
        size = int(text)
    except ValueError:
        line = f"Invalid value at 'page_size' (TYPE_INT32), \"{text}\""
        raise field_violations_error([("page_size", line)]) from None
    if size < 0:
        raise ApiError("page_size must be non-negative.")
    return size


def _encode_page_token(start: int) -> str:
    return base64.urlsafe_b64encode(f"from:{start}".encode()).decode().rstrip("=")


def _decode_page_token(query: Mapping[str, str]) -> int:
    token = query.get("pageToken") or query.get("page_token") or ""
    if not token:
        return 0
    try:
        prefix, _, start = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode().partition(":")
        if prefix == "from" and start.isdecimal():
            return int(start)
    except ValueError:  # not base64, not text, or too many digits
        pass
    raise ApiError("The page token is invalid.")


Item = TypeVar("Item")


class _StoredItem(msgspec.Struct, Generic[Item], frozen=True, kw_only=True):
    item: Item
    expires: datetime
    size: int


class ResourceStore(Generic[Item]):
    """Items by name, without those that have expired. Not thread-safe: the owner holds a lock."""

    def __init__(self, *, most_bytes: int, most_items: int = 1000) -> None:
        self.max_bytes = most_bytes
        self._max_items = most_items
        self._items: dict[str, _StoredItem[Item]] = {}
        self._bytes = 0

    def put(self, name: str, item: Item, *, expires: datetime, size: int) -> None:
        """Store an item as the newest, and evict the oldest ones that no longer fit."""
        self.delete(name)
        self._items[name] = _StoredItem(item=item, expires=expires, size=size)
        self._bytes += size
        while self._bytes > self.max_bytes or len(self._items) > self._max_items:
            self.delete(next(iter(self._items)))

    def get(self, name: str, now: datetime) -> Item | None:
        kept = self._items.get(name)
        if kept is None:
            return None
        if kept.expires <= now:
            self.delete(name)
            return None
        return kept.item

    def delete(self, name: str) -> None:
        kept = self._items.pop(name, None)
        if kept is not None:
            self._bytes -= kept.size

    def newest_first(self, now: datetime) -> list[Item]:
        """Return all items, newest first."""
        for name in [name for name, kept in self._items.items() if kept.expires <= now]:
            self.delete(name)
        return [kept.item for kept in reversed(self._items.values())]
