"""Recognise Gemini requests, and decode and encode responses in any framing: JSON object, JSON array or SSE."""

from __future__ import annotations

import re
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from dragoman.dialects.base import Target
from dragoman.dialects.gemini.stream_framing import FrameDecoder
from dragoman.errors import UpstreamError
from dragoman.http.sse import escape_line_separators

Json = dict[str, Any]
Framing = Literal["whole", "array", "sse"]

#: Google's Gemini hosts: AI Studio, and Vertex AI with and without a region. TLS to other hosts is not intercepted.
HOSTS = (
    r"generativelanguage\.googleapis\.com",
    r"([a-z0-9-]+-)?aiplatform\.googleapis\.com",
    r"aiplatform\.[a-z]{2,8}\.rep\.googleapis\.com",
)
_HOST = re.compile("|".join(f"(?:{host})" for host in HOSTS))
_GENERATE = re.compile(r"/models/(?P<model>[^/:]+):(?:streamG|g)enerateContent")


def is_gemini(host: str) -> bool:
    return _HOST.fullmatch(host.lower()) is not None


def target_of(host: str, path: str) -> Target | None:
    """Return the target of a `generateContent` or `streamGenerateContent` request, or None for any other path."""
    found = _GENERATE.search(urlsplit(path).path)
    if found is None:
        return None
    backend = "vertex" if "aiplatform" in host else "gemini"
    return Target(model=found["model"], backend=backend)


def decode_request(body: bytes) -> Json | None:
    """Decode a request body; return None if it is not a JSON object, which Google will reject."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def decode_response(body: bytes) -> tuple[list[Json], Framing] | None:
    """Return the chunks of a response and its framing, or None if it cannot be decoded."""
    first = body.lstrip()[:1]
    framing: Framing = {b"{": "whole", b"[": "array"}.get(first, "sse")  # type: ignore[assignment]
    decoder = FrameDecoder()
    try:
        frames = [*decoder.feed(body), *decoder.close()]
        chunks = [msgspec.json.decode(frame) for frame in frames]
    except (UpstreamError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return (chunks, framing) if chunks and all(isinstance(chunk, dict) for chunk in chunks) else None


def encode_response(chunks: list[Json], framing: Framing) -> bytes:
    """Encode chunks in the given framing; a "whole" response joins them into one object."""
    if framing == "whole":
        return msgspec.json.encode(chunks[0] if len(chunks) == 1 else join_chunks(chunks))
    if framing == "array":
        return msgspec.json.encode(chunks)
    return escape_line_separators(
        b"".join(b"data: %b\r\n\r\n" % msgspec.json.encode(chunk) for chunk in chunks)
    )


def response_text(chunks: list[Json]) -> str:
    """Return the text of a response without thoughts."""
    return "".join(part["text"] for part in _parts(chunks) if part.get("text") and not part.get("thought"))


def prepend_text(chunks: list[Json], words: str) -> list[Json]:
    """Return the response with the text of earlier rounds in front."""
    if not words:
        return chunks
    opening = {
        "candidates": [{"content": {"role": "model", "parts": [{"text": f"{words}\n\n"}]}, "index": 0}]
    }
    return [opening, *chunks]


def join_chunks(chunks: list[Json]) -> Json:
    """Join chunks into one response: the last chunk with the parts of all."""
    last = chunks[-1]
    candidates = last.get("candidates") or [{"content": {"role": "model"}}]
    content = {"role": "model", **(candidates[0].get("content") or {}), "parts": _parts(chunks)}
    return {**last, "candidates": [{**candidates[0], "content": content}, *candidates[1:]]}


def _parts(chunks: list[Json]) -> list[Json]:
    return [
        part
        for chunk in chunks
        for candidate in (chunk.get("candidates") or ())[:1]
        for part in (candidate.get("content") or {}).get("parts") or ()
    ]
