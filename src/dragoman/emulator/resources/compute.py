"""Vertex's computeTokens: the pieces a text is counted by, with a number for each."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.emulator.resources.catalog import require_speaker
from dragoman.emulator.routes import Route
from dragoman.emulator.tokens import count_text

_VOCABULARY = 262_144


def compute_tokens(route: Route, request: Mapping[str, Any]) -> dict[str, Any]:
    """`{tokensInfo: [{role, tokenIds, tokens}]}`, one for each content."""
    require_speaker(route)
    return {"tokensInfo": [_describe(content) for content in request.get("contents", ())]}


def _describe(content: Mapping[str, Any]) -> dict[str, Any]:
    pieces = [piece for part in content.get("parts", ()) for piece in _split(part.get("text", ""))]
    return {
        "role": content.get("role") or "user",
        "tokenIds": [str(zlib.crc32(piece) % _VOCABULARY) for piece in pieces],
        "tokens": [base64.b64encode(piece).decode() for piece in pieces],
    }


def _split(text: str) -> Iterator[bytes]:
    """As many pieces as `countTokens` says."""
    step = -(-len(text) // max(count_text(text), 1)) or 1
    for start in range(0, len(text), step):
        yield text[start : start + step].encode()
