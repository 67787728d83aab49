"""The methods embedContent, batchEmbedContents, and predict (Vertex)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.emulator.refusal import catch_all_error, field_rules_error
from dragoman.emulator.resources.catalog import EmbeddingModel, require_embedding_model
from dragoman.emulator.resources.vectors import hash_embedding
from dragoman.emulator.routes import GeminiRoute
from dragoman.emulator.tokens import count_prompt, count_text, token_details

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
