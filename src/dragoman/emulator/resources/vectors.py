"""Embeddings without a model: a hashed bag of words, so that texts with common words are close."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dragoman.emulator.contents import blob_of

_WORD = re.compile(r"\w+")
_BLOB_WEIGHT = 1.0
_LETTER_WEIGHT = 0.15  # per letter: long words mean more than "the" and "of"
_GRAM_WEIGHT = 0.3  # trigrams: "cat" and "cats" are close
_TASK_WEIGHT = 0.1
_DIMENSIONS_PER_FEATURE = 4  # dimensions per feature, so that two features rarely cancel out

Feature = tuple[bytes, float]


def hash_embedding(parts: Sequence[Mapping[str, Any]], task: str, title: str, size: int) -> list[float]:
    """Return a unit vector of this size; the same input always gives the same vector."""
    values = [0.0] * size
    for feature, weight in (
        *_part_features(parts),
        *_word_features(title),
        (b"task " + task.encode(), _TASK_WEIGHT),
    ):
        digest = hashlib.blake2b(feature, digest_size=4 * _DIMENSIONS_PER_FEATURE).digest()
        for start in range(0, len(digest), 4):
            number = int.from_bytes(digest[start : start + 4], "big")
            values[(number >> 1) % size] += weight if number & 1 else -weight
    length = math.sqrt(sum(value * value for value in values))
    if not length:
        values[0] = length = 1.0
    return [value / length for value in values]


def _part_features(parts: Sequence[Mapping[str, Any]]) -> Iterator[Feature]:
    for part in parts:
        blob = blob_of(part)
        if blob is not None:
            yield b"kind " + blob.get("mimeType", "").encode(), _BLOB_WEIGHT
            yield b"data " + (blob.get("data") or blob.get("fileUri", "").encode()), _BLOB_WEIGHT
        yield from _word_features(part.get("text", ""))


def _word_features(text: str) -> Iterator[Feature]:
    for word in _WORD.findall(text.lower()):
        yield b"word " + word.encode(), _LETTER_WEIGHT * len(word)
        edged = f"<{word}>"
        for start in range(len(edged) - 2):
            yield b"gram " + edged[start : start + 3].encode(), _GRAM_WEIGHT
