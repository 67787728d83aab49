"""The methods embedContent, batchEmbedContents, and predict (Vertex).

An embedding is a hashed bag of words, so that texts with common words are close without a model.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.emulator.errors import catch_all_error, field_rules_error
from dragoman.emulator.parsed_request import blob_of
from dragoman.emulator.resources.models_api import EmbeddingModel, require_embedding_model
from dragoman.emulator.routes import GeminiRoute
from dragoman.emulator.tokens import count_prompt, count_text, token_details

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


_MAX_PER_BATCH = 100


def embed_one(route: GeminiRoute, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return `{embedding: {values}}`.

    On Vertex the settings can be in a message of their own, and the response has token counts.
    """
    embedder = require_embedding_model(route)
    settings = {**request, **request.get("embedContentConfig", {})}
    content = request.get("content", {})
    embedding = {"values": _embed(embedder, content, settings, "EmbedContentRequest", "")}
    if not route.backend.is_vertex:
        return {"embedding": embedding}
    counts = count_prompt({"contents": [content]})
    total = sum(counts.values())
    usage = {
        "promptTokenCount": total,
        "totalTokenCount": total,
        "promptTokensDetails": token_details(counts),
    }
    return {"embedding": embedding, "usageMetadata": usage, "truncated": False}


def embed_batch(route: GeminiRoute, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return `{embeddings: [{values}]}`, one for each request."""
    embedder = require_embedding_model(route)
    requests: Sequence[Mapping[str, Any]] = request.get("requests", ())
    root = "BatchEmbedContentsRequest"
    if len(requests) > _MAX_PER_BATCH:
        raise field_rules_error(["requests: at most 100 requests can be in one batch"], root)
    wrong = [
        f"requests[{index}].model: unexpected model name format"
        for index, one in enumerate(requests)
        if one.get("model") != f"models/{route.model}"
    ]
    if wrong:
        raise field_rules_error(wrong, root)
    return {
        "embeddings": [
            {"values": _embed(embedder, one.get("content", {}), one, root, f"requests[{index}].")}
            for index, one in enumerate(requests)
        ]
    }


class _Instance(msgspec.Struct, frozen=True):
    """One text of a predict request."""

    content: str
    task_type: str | None = None
    title: str | None = None


class _Parameters(msgspec.Struct, frozen=True, rename="camel"):
    """The parameters of all texts of a predict request."""

    output_dimensionality: int | None = None
    auto_truncate: bool | None = None


def predict(route: GeminiRoute, request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer the older API of Vertex, with instances and predictions."""
    embedder = require_embedding_model(route)
    try:
        instances = msgspec.convert(request.get("instances", []), list[_Instance])
        parameters = msgspec.convert(request.get("parameters", {}), _Parameters)
    except msgspec.ValidationError as error:
        raise catch_all_error(f"instances and parameters do not fit: {error}") from None
    predictions = []
    for index, one in enumerate(instances):
        content = {"parts": [{"text": one.content}]}
        settings = {
            "taskType": one.task_type,
            "title": one.title,
            "outputDimensionality": parameters.output_dimensionality,
        }
        values = _embed(embedder, content, settings, "PredictRequest", f"instances[{index}].")
        statistics = {"truncated": False, "token_count": count_text(one.content)}
        predictions.append({"embeddings": {"values": values, "statistics": statistics}})
    characters = sum(len(one.content) for one in instances)
    return {"predictions": predictions, "metadata": {"billableCharacterCount": characters}}


def _embed(
    embedder: EmbeddingModel, content: Mapping[str, Any], settings: Mapping[str, Any], root: str, path: str
) -> list[float]:
    parts = content.get("parts", ())
    if not any(part.get("text") or "inlineData" in part or "fileData" in part for part in parts):
        raise field_rules_error([f"{path}content: content is empty"], root)
    if embedder.text_only and not all("text" in part for part in parts):
        raise catch_all_error(f"{embedder.id} embeds text only")
    size = settings.get("outputDimensionality")
    size = embedder.dimensions if size is None else size
    if not 1 <= size <= embedder.dimensions:
        raise field_rules_error(
            [
                f"{path}output_dimensionality: output_dimensionality must be in the range [1, {embedder.dimensions}]."
            ],
            root,
        )
    return hash_embedding(parts, settings.get("taskType") or "", settings.get("title") or "", size)
