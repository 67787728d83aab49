"""Split a text into the pieces of a stream."""

from __future__ import annotations

_SMALLEST_PIECE = 24
_MOST_PIECES = 24


def split_text(text: str) -> list[str]:
    """Split after spaces where possible; the joined pieces are the text again."""
    size = max(_SMALLEST_PIECE, len(text) // _MOST_PIECES)
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end = min(len(text), start + size)
        space = text.rfind(" ", start, end) if end < len(text) else -1
        end = space + 1 if space > start else end
        pieces.append(text[start:end])
        start = end
    return pieces
