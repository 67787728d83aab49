"""Lists in pages, as OpenAI's API cuts them: newest first unless asked otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from dragoman.errors import InvalidRequest

_DEFAULT, _MOST = 20, 100


class _Identified(msgspec.Struct):
    id: str = ""


def page_of(items: Sequence[bytes], query: Mapping[str, str]) -> tuple[list[bytes], bool]:
    """The items after `after`, at most `limit`, and whether there are more; every item has an id."""
    ordered = list(items) if query.get("order") == "asc" else list(items)[::-1]
    after = query.get("after", "")
    if after:
        ids = [msgspec.json.decode(item, type=_Identified).id for item in ordered]
        if after not in ids:
            raise InvalidRequest(f"there is no item {after!r} in this list", where="after")
        ordered = ordered[ids.index(after) + 1 :]
    limit = _limit(query.get("limit", ""))
    return ordered[:limit], len(ordered) > limit


def _limit(text: str) -> int:
    if not text:
        return _DEFAULT
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:4]) <= _MOST or len(text) > 3:
        raise InvalidRequest(f"must be a number from 1 to {_MOST}", where="limit")
    return int(text)
