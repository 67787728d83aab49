"""Pagination of lists as in OpenAI's API: newest first, unless `order=asc`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dragoman.errors import InvalidRequest
from dragoman.gateway.conversation import decode_item_id

_DEFAULT_PAGE, _MAX_PAGE = 20, 100


def paginate(items: Sequence[bytes], query: Mapping[str, str]) -> tuple[list[bytes], bool]:
    """Return at most `limit` items after the one with the id `after`, and whether there are more.

    Raises InvalidRequest if no item has that id.
    """
    ordered = list(items) if query.get("order") == "asc" else list(items)[::-1]
    after = query.get("after", "")
    if after:
        ids = [decode_item_id(item) for item in ordered]
        if after not in ids:
            raise InvalidRequest(f"there is no item {after!r} in this list", where="after")
        ordered = ordered[ids.index(after) + 1 :]
    limit = read_page_size(query, "limit", _DEFAULT_PAGE, _MAX_PAGE)
    return ordered[:limit], len(ordered) > limit


def read_page_size(query: Mapping[str, str], field: str, default: int, maximum: int) -> int:
    """Return the page size in the query's `field`; raise InvalidRequest unless it is from 1 to `most`."""
    text = query.get(field, "")
    if not text:
        return default
    if (
        not text.isascii()
        or not text.isdigit()
        or len(text) > len(str(maximum))
        or not 1 <= int(text) <= maximum
    ):
        raise InvalidRequest(f"must be a number from 1 to {maximum}", where=field)
    return int(text)
