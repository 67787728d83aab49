"""The models API: the models with their supported methods, computeTokens (Vertex), and embeddings.

An embedding is a hashed bag of words, so that texts with common words are close without a model.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.emulator.errors import catch_all_error, field_rules_error
from dragoman.emulator.models import (
    ALIASES,
    MODELS,
    EmulatedModel,
    find_model,
    model_not_found_error,
    require_model,
)
from dragoman.emulator.parsed_request import blob_of, role_of
from dragoman.emulator.resources.resource_store import paginate
from dragoman.emulator.routes import Backend, GeminiRoute
from dragoman.emulator.tokens import count_prompt, count_text, split_tokens, token_details, token_id

_DEFAULT_PAGE = 50
_MAX_PER_PAGE = 1000


class EmbeddingModel(msgspec.Struct, frozen=True, kw_only=True):
    """An embedding model; `size` is the dimension of its vectors."""

    id: str
    title: str
    input_limit: int
    dimensions: int = 3072
    text_only: bool = False


EMBEDDING_MODELS = {
    model.id: model
    for model in (
        EmbeddingModel(id="gemini-embedding-2", title="Gemini Embedding 2", input_limit=8192),
        EmbeddingModel(
            id="gemini-embedding-001", title="Gemini Embedding 001", input_limit=2048, text_only=True
        ),
    )
}


def require_generative_model(route: GeminiRoute) -> EmulatedModel:
    """Return the properties of a generative model, or raise Google's 404."""
    if route.model in EMBEDDING_MODELS and route.method != "countTokens":
        raise model_not_found_error(route.model, route.backend, route.method, route.resource)
    return require_model(route.model, route.backend, route.method, route.resource)


def require_embedding_model(route: GeminiRoute) -> EmbeddingModel:
    """Return the properties of an embedding model, or raise Google's 404."""
    found = EMBEDDING_MODELS.get(route.model)
    if found is None:
        raise model_not_found_error(route.model, route.backend, route.method, route.resource)
    return found


def show_model(route: GeminiRoute) -> dict[str, Any]:
    """Return the response of `models.get`."""
    if route.model in EMBEDDING_MODELS:
        shown = _describe_embedding_model(EMBEDDING_MODELS[route.model])
    else:
        shown = _describe_model(require_model(route.model, route.backend, route.method, route.resource))
    return {**shown, "name": route.resource} if route.backend.is_vertex else shown


def show_models(backend: Backend, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the response of `models.list`. v1beta also lists the aliases."""
    aliases = ALIASES if backend.version == "v1beta" else {}
    aliased = [(name, find_model(name, backend.version)) for name in aliases]
    shown = [
        *map(_describe_model, MODELS),
        *(
            {**_describe_model(model), "name": f"models/{name}"}
            for name, model in aliased
            if model is not None
        ),
        *map(_describe_embedding_model, EMBEDDING_MODELS.values()),
    ]
    field = "models"
    if backend.is_vertex:
        field = "publisherModels"
        shown = [{**model, "name": f"publishers/google/{model['name']}"} for model in shown]
    return paginate(field, shown, query, default=_DEFAULT_PAGE, most=_MAX_PER_PAGE)


def _describe_model(model: EmulatedModel) -> dict[str, Any]:
    cached = ["createCachedContent"] if model.min_cached_tokens else []
    return {
        "name": f"models/{model.id}",
        "version": model.id.removeprefix("gemini-").removeprefix("gemma-"),
        "displayName": model.title,
        "description": f"{model.title}, emulated offline by Dragoman",
        "inputTokenLimit": model.input_limit,
        "outputTokenLimit": model.output_limit,
        "supportedGenerationMethods": ["generateContent", "countTokens", *cached],
        "temperature": 1,
        "topP": 0.95,
        "topK": 64,
        "maxTemperature": 2,
        "thinking": True,
    }


def _describe_embedding_model(model: EmbeddingModel) -> dict[str, Any]:
    return {
        "name": f"models/{model.id}",
        "version": model.id.removeprefix("gemini-embedding-"),
        "displayName": model.title,
        "description": f"{model.title}, emulated offline by Dragoman",
        "inputTokenLimit": model.input_limit,
        "outputTokenLimit": 1,
        "supportedGenerationMethods": ["embedContent", "countTokens"],
    }


def compute_tokens(route: GeminiRoute, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return `{tokensInfo: [{role, tokenIds, tokens}]}`, one item for each content."""
    require_generative_model(route)
    return {"tokensInfo": [_describe_tokens(content) for content in request.get("contents", ())]}


def _describe_tokens(content: Mapping[str, Any]) -> dict[str, Any]:
    tokens = [token for part in content.get("parts", ()) for token in split_tokens(part.get("text", ""))]
    return {
        "role": role_of(content),
        "tokenIds": [str(token_id(token)) for token in tokens],
        "tokens": [base64.b64encode(token.encode()).decode() for token in tokens],
    }


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
