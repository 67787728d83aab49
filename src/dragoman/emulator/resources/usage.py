"""The share of a cache in the tokens of an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.emulator.tokens import details


def count_cached(chunks: Sequence[dict[str, Any]], cached: Mapping[str, int]) -> list[dict[str, Any]]:
    """Every chunk that counts the prompt says how much of it came from the cache."""
    if not cached:
        return list(chunks)
    share = {"cachedContentTokenCount": sum(cached.values()), "cacheTokensDetails": details(cached)}
    return [
        {**chunk, "usageMetadata": {**chunk["usageMetadata"], **share}}
        if "promptTokenCount" in chunk.get("usageMetadata", {})
        else chunk
        for chunk in chunks
    ]
