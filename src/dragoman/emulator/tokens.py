"""Deterministic token counts without a tokenizer: four characters per token, fixed costs for media."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from dragoman.emulator.parsed_request import CachedFragment, ParsedRequest, blob_of

CHARS_PER_TOKEN = 4
#: The cost of an image on Gemini 2.5, and the minimum for any other file.
SMALL_IMAGE_TOKENS = 258
_BYTES_PER_TOKEN = {"AUDIO": 1000, "VIDEO": 1000, "DOCUMENT": 4000}
_MODALITIES = {"image": "IMAGE", "audio": "AUDIO", "video": "VIDEO", "application": "DOCUMENT"}
_ORDER = ("TEXT", "IMAGE", "AUDIO", "VIDEO", "DOCUMENT")
#: Parts that are counted as their JSON text.
_STRUCTURED = ("functionCall", "toolCall", "toolResponse", "executableCode", "codeExecutionResult")
_VOCABULARY = 262_144

Counts = dict[str, int]


def count_text(text: str) -> int:
    return _chars_to_tokens(len(text))


def count_value(value: Any) -> int:
    return _chars_to_tokens(len(msgspec.json.encode(value)))


def split_tokens(text: str) -> list[str]:
    """Split a text into as many tokens as `count_text` returns."""
    return [text[start : start + CHARS_PER_TOKEN] for start in range(0, len(text), CHARS_PER_TOKEN)]


def token_id(token: str) -> int:
    return zlib.crc32(token.encode()) % _VOCABULARY


def count_prompt(request: Mapping[str, Any], image_tokens: int = SMALL_IMAGE_TOKENS) -> Counts:
    """Return the tokens of a request by modality, in Google's order, without zero counts."""
    total: Counts = {}
    for counts in _count_fragments(request):
        for modality, tokens in counts.items():
            total[modality] = total.get(modality, 0) + tokens
    if "IMAGE" in total:
        total["IMAGE"] *= image_tokens
    return {modality: total[modality] for modality in _ORDER if total.get(modality)}


def token_details(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the counts as `[{modality, tokenCount}]`."""
    return [{"modality": modality, "tokenCount": tokens} for modality, tokens in counts.items()]


def _count_fragments(request: Mapping[str, Any]) -> Iterator[Counts]:
    """Yield the counts of each piece.

    Images are counted as a number of images: the piece is shared by models with different costs per image.
    """
    if isinstance(request, ParsedRequest):
        yield _cached_counts(request.other_fields, _count_rest)
        for piece in request.content_fragments:
            yield _cached_counts(piece, _count_content)
    else:
        yield _count_rest(request)
        yield from map(_count_content, request.get("contents", ()))


def _cached_counts(piece: CachedFragment, count: Callable[[Mapping[str, Any]], Counts]) -> Counts:
    if piece.tokens is None:
        piece.tokens = count(piece.value)
    return piece.tokens


def _count_rest(request: Mapping[str, Any]) -> Counts:
    counts = _count_content(request.get("systemInstruction", {}))
    if request.get("tools"):
        counts["TEXT"] = counts.get("TEXT", 0) + count_value(request["tools"])
    return counts


def _count_content(content: Mapping[str, Any]) -> Counts:
    counts: Counts = {}
    for part in content.get("parts", ()):
        for modality, tokens in _count_part(part):
            counts[modality] = counts.get(modality, 0) + tokens
    return counts


def _count_part(part: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    if "text" in part:
        return (("TEXT", count_text(part["text"])),)
    if "inlineData" in part or "fileData" in part:
        return (_count_blob(blob_of(part) or {}),)
    for name in _STRUCTURED:
        if name in part:
            return (("TEXT", count_value(part[name])),)
    response = part.get("functionResponse")
    if response is None:
        return ()
    text_tokens = count_value([response.get("name", ""), response.get("response", {})])
    media = (pair for inner in response.get("parts", ()) for pair in _count_part(inner))
    return (("TEXT", text_tokens), *media)


def _count_blob(blob: Mapping[str, Any]) -> tuple[str, int]:
    mime = blob.get("mimeType", "image/png")
    data = blob.get("data", b"")
    if mime.startswith("text/"):
        return "TEXT", _chars_to_tokens(len(data))
    modality = _MODALITIES.get(mime.partition("/")[0], "DOCUMENT")
    if modality == "IMAGE":
        return modality, 1
    return modality, max(SMALL_IMAGE_TOKENS, len(data) // _BYTES_PER_TOKEN[modality])


def _chars_to_tokens(size: int) -> int:
    return -(-size // CHARS_PER_TOKEN)
