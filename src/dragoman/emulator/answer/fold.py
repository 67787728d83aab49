"""Merge chunks into the unary response: join the parts, and keep the last value of everything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from dragoman.emulator.answer.partial_args import apply_partial_arg

JsonObject = dict[str, Any]


def merge_chunks(chunks: Sequence[Mapping[str, Any]]) -> JsonObject:
    """Return the unary response.

    If the last chunk has no candidates (a blocked prompt or an error), it is the whole response.
    """
    last = dict(chunks[-1])
    if "candidates" not in last:
        return last
    by_index: dict[int, list[Mapping[str, Any]]] = {}
    for chunk in chunks:
        for candidate in chunk.get("candidates", ()):
            by_index.setdefault(candidate.get("index", 0), []).append(candidate)
    last["candidates"] = [_merge_candidate(index, pieces) for index, pieces in sorted(by_index.items())]
    return last


def _merge_candidate(index: int, pieces: Sequence[Mapping[str, Any]]) -> JsonObject:
    merged: JsonObject = {}
    for piece in pieces:
        merged |= piece
    parts = [part for piece in pieces for part in (piece.get("content") or {}).get("parts", ())]
    joined = [part for part in _join_parts(parts) if part.get("text") != "" or "thoughtSignature" in part]
    return {**merged, "content": {"parts": joined, "role": "model"} if joined else {}, "index": index}


def _join_parts(parts: Sequence[Mapping[str, Any]]) -> Iterator[JsonObject]:
    """Join adjacent text parts of the same kind, and the pieces of a streamed call."""
    waiting: JsonObject | None = None
    for part in parts:
        grown = _append_part(waiting, part) if waiting is not None else None
        if waiting is not None and grown is None:
            yield _finish_part(waiting)
        waiting = grown if grown is not None else _copy_part(part)
    if waiting is not None:
        yield _finish_part(waiting)


def _copy_part(part: Mapping[str, Any]) -> JsonObject:
    """Copy a part that may grow. Arguments grow in place, so a call is copied deeply."""
    return deepcopy(dict(part)) if "functionCall" in part else dict(part)


def _append_part(before: JsonObject, part: Mapping[str, Any]) -> JsonObject | None:
    """Return the previous part with this one appended, or None if a new part begins."""
    if "text" in part and "text" in before:
        joins = part.get("thought") == before.get("thought") and "thoughtSignature" not in before
        return {**before, **part, "text": before["text"] + part["text"]} if joins else None
    call, opened = part.get("functionCall"), before.get("functionCall") or {}
    if call is None or "name" in call or not opened.get("willContinue"):
        return None
    args = opened.get("args", {})
    for piece in call.get("partialArgs", ()):
        apply_partial_arg(args, piece)
    return {
        **before,
        "functionCall": {**opened, "args": args, "willContinue": call.get("willContinue", False)},
    }


def _finish_part(part: JsonObject) -> JsonObject:
    call = part.get("functionCall")
    if call is None or "willContinue" not in call:
        return part
    whole = {"name": call.get("name"), "args": call.get("args", {}), "id": call.get("id")}
    return {**part, "functionCall": {key: value for key, value in whole.items() if value is not None}}
