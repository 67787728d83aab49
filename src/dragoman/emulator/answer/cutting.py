"""Split a text into the pieces of a stream."""

from __future__ import annotations

_MIN_TEXT_CHARS = 24
_MAX_TEXTS = 24


def split_text(text: str) -> list[str]:
    """Split after spaces where possible; the joined pieces are the text again."""
    size = max(_MIN_TEXT_CHARS, len(text) // _MAX_TEXTS)
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end = min(len(text), start + size)
        space = text.rfind(" ", start, end) if end < len(text) else -1
        end = space + 1 if space > start else end
        pieces.append(text[start:end])
        start = end
    return pieces
