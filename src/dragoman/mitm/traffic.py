"""What passes by: which requests are Gemini's, and their answers as chunks, in whatever framing they came."""

from __future__ import annotations

import re
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from dragoman.dialects.base import Target
from dragoman.dialects.gemini.frames import FrameDecoder
from dragoman.errors import UpstreamError
from dragoman.sse import on_its_lines

Json = dict[str, Any]
Framing = Literal["whole", "array", "sse"]

#: Google's Gemini hosts: AI Studio, and Vertex with and without a place. Nothing else is ever opened.
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
    """The model a request asks to generate something; None for everything else Google serves there."""
    found = _GENERATE.search(urlsplit(path).path)
    if found is None:
        return None
    backend = "vertex" if "aiplatform" in host else "gemini"
    return Target(model=found["model"], backend=backend)


def read_request(body: bytes) -> Json | None:
    """None for what Google will refuse anyway."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def read_answer(body: bytes) -> tuple[list[Json], Framing] | None:
    """The chunks of an answer; None if it is not one."""
    first = body.lstrip()[:1]
    framing: Framing = {b"{": "whole", b"[": "array"}.get(first, "sse")  # type: ignore[assignment]
    decoder = FrameDecoder()
    try:
        frames = [*decoder.feed(body), *decoder.close()]
        chunks = [msgspec.json.decode(frame) for frame in frames]
    except (UpstreamError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return (chunks, framing) if chunks and all(isinstance(chunk, dict) for chunk in chunks) else None


def write_answer(chunks: list[Json], framing: Framing) -> bytes:
    if framing == "whole":
        return msgspec.json.encode(chunks[0] if len(chunks) == 1 else joined(chunks))
    if framing == "array":
        return msgspec.json.encode(chunks)
    return on_its_lines(b"".join(b"data: %b\r\n\r\n" % msgspec.json.encode(chunk) for chunk in chunks))


def words_of(chunks: list[Json]) -> str:
    """What a program would show of an answer."""
    return "".join(part["text"] for part in _parts(chunks) if part.get("text") and not part.get("thought"))


def saying_first(chunks: list[Json], words: str) -> list[Json]:
    """The same answer behind words of an earlier round."""
    if not words:
        return chunks
    opening = {
        "candidates": [{"content": {"role": "model", "parts": [{"text": f"{words}\n\n"}]}, "index": 0}]
    }
    return [opening, *chunks]


def joined(chunks: list[Json]) -> Json:
    """Chunks as one answer: the last one with the parts of all."""
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
