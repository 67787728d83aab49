"""Counting tokens without a tokenizer: four characters each, an image 258; the same text always the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_CHARS_PER_TOKEN = 4
_IMAGE_TOKENS = 258
_BYTES_PER_TOKEN = {"AUDIO": 1000, "VIDEO": 1000, "DOCUMENT": 4000}
_MODALITIES = {"image": "IMAGE", "audio": "AUDIO", "video": "VIDEO", "application": "DOCUMENT"}
_ORDER = ("TEXT", "IMAGE", "AUDIO", "VIDEO", "DOCUMENT")


def count_text(text: str) -> int:
    return -(-len(text) // _CHARS_PER_TOKEN)


def count_value(value: Any) -> int:
    return -(-len(msgspec.json.encode(value)) // _CHARS_PER_TOKEN)


def count_prompt(request: Mapping[str, Any]) -> dict[str, int]:
    """Tokens of a request by modality, in Google's order, absent ones left out."""
    counts: dict[str, int] = {}
    contents = [*request.get("contents", ()), request.get("systemInstruction", {})]
    for content in contents:
        for modality, tokens in _count_parts(content.get("parts", ())):
            counts[modality] = counts.get(modality, 0) + tokens
    if request.get("tools"):
        counts["TEXT"] = counts.get("TEXT", 0) + count_value(request["tools"])
    return {modality: counts[modality] for modality in _ORDER if counts.get(modality)}


def details(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """`[{modality, tokenCount}]`"""
    return [{"modality": modality, "tokenCount": tokens} for modality, tokens in counts.items()]


def _count_parts(parts: Any) -> Iterator[tuple[str, int]]:
    for part in parts:
        if "text" in part:
            yield "TEXT", count_text(part["text"])
        elif "inlineData" in part or "fileData" in part:
            yield _count_blob(part.get("inlineData") or part.get("fileData"))
        elif "functionCall" in part:
            yield "TEXT", count_value(part["functionCall"])
        elif "functionResponse" in part:
            response = part["functionResponse"]
            yield "TEXT", count_value([response.get("name", ""), response.get("response", {})])
            yield from _count_parts(response.get("parts", ()))


def _count_blob(blob: Mapping[str, Any]) -> tuple[str, int]:
    mime = blob.get("mimeType", "image/png")
    data = blob.get("data", b"")
    if mime.startswith("text/"):
        return "TEXT", -(-len(data) // _CHARS_PER_TOKEN)
    modality = _MODALITIES.get(mime.partition("/")[0], "DOCUMENT")
    if modality == "IMAGE":
        return modality, _IMAGE_TOKENS
    return modality, max(_IMAGE_TOKENS, len(data) // _BYTES_PER_TOKEN[modality])
