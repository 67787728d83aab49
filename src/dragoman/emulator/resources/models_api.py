"""The models API: generative and embedding models with their supported methods, and computeTokens (Vertex)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.emulator.models import (
    ALIASES,
    MODELS,
    GeminiModel,
    find_model,
    model_not_found_error,
    require_model,
)
from dragoman.emulator.parsed_request import role_of
from dragoman.emulator.resources.resource_store import paginate
from dragoman.emulator.routes import Backend, GeminiRoute
from dragoman.emulator.tokens import split_tokens, token_id

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


def require_generative_model(route: GeminiRoute) -> GeminiModel:
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


def _describe_model(model: GeminiModel) -> dict[str, Any]:
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
