"""Rank tools for a query with Okapi BM25; tools that the query names come first."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from dragoman.incremental.lru import LruCache
from dragoman.translation.tool_search.index import ToolDocument, bare_name, words_of

_K1, _B = 1.2, 0.75
_NAME_WEIGHT = 3  # a word of the tool's name counts as three words of its description
_SEPARATORS = re.compile(r"[\s,;'\"`()]+")

#: Cached word counts of tools.
_COUNTS: LruCache[ToolDocument, Counter[str]] = LruCache(16 * 1024 * 1024, "found words")


def rank(query: str, entries: Sequence[ToolDocument], limit: int) -> list[int]:
    """Return the indexes of the best entries, best first; equal scores keep their order."""
    asked = {name.lower() for name in _SEPARATORS.split(query)}
    scores = _scores(set(words_of(query)), entries)
    found = [
        (not _is_named(entry, asked), -score, place)
        for place, (entry, score) in enumerate(zip(entries, scores, strict=True))
        if score or _is_named(entry, asked)
    ]
    return [place for *_, place in sorted(found)[:limit]]


def _is_named(entry: ToolDocument, asked: set[str]) -> bool:
    return entry.name.lower() in asked or bare_name(entry.name).lower() in asked


def _scores(query: set[str], entries: Sequence[ToolDocument]) -> list[float]:
    """Return the BM25 score of each entry; zero if it has none of the words."""
    counts = [_counted(entry) for entry in entries]
    lengths = [counted.total() for counted in counts]
    average = max(1.0, sum(lengths) / max(1, len(lengths)))
    idf = {word: _idf(sum(word in counted for counted in counts), len(counts)) for word in query}

    def score(counted: Counter[str], length: int) -> float:
        damping = _K1 * (1 - _B + _B * length / average)
        times = ((idf[word], counted[word]) for word in sorted(query) if word in counted)
        return sum(rare * (_K1 + 1) * often / (often + damping) for rare, often in times)

    return [score(counted, length) for counted, length in zip(counts, lengths, strict=True)]


def _idf(holders: int, every: int) -> float:
    return math.log(1 + (every - holders + 0.5) / (holders + 0.5))


def _counted(entry: ToolDocument) -> Counter[str]:
    size = len(entry.name) + len(entry.description) + sum(map(len, entry.arguments))
    return _COUNTS.get(entry, 8 * size, lambda: _count(entry))


def _count(entry: ToolDocument) -> Counter[str]:
    counted = Counter(words_of(entry.description))
    for line in entry.arguments:
        counted.update(words_of(line))
    for word in words_of(entry.name):
        counted[word] += _NAME_WEIGHT
    return counted
