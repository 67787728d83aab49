"""The list of models in each client dialect, with the real token limits (known problems F7, F8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dragoman.config import ModelsConfig, model_for
from dragoman.dialects import gemini
from dragoman.dialects.base import Reply
from dragoman.errors import InvalidRequest
from dragoman.gateway.handlers.pagination import read_page_size
from dragoman.gateway.request import RequestContext
from dragoman.gateway.response_writer import JSON_HEADERS, ResponseWriter

#: The models in the list; other names work too.
GEMINI_MODELS = (
    "gemini-4-carbon",
    "gemini-4-argon",
    "gemini-3.8-flash",
    "gemini-3.7-flash",
    "gemini-3.6-flash",
    "gemini-3.5-flash",
    "gemini-3.5-flash-lite",
    "gemini-3.1-pro-preview",
)
CLAUDE_MODELS = ("claude-opus-4-8", "claude-sonnet-4-5", "claude-haiku-4-5")
#: Tells Kiro that it may send a thinking effort.
_EFFORT_SCHEMA = {
    "type": "object",
    "properties": {
        "thinking": {
            "type": "object",
            "properties": {"type": {"type": "string", "enum": ["adaptive", "disabled"]}},
        },
        "output_config": {
            "type": "object",
            "properties": {"effort": {"type": "string", "enum": ["low", "medium", "high", "max"]}},
        },
    },
}
_UNKNOWN_DATE = "1970-01-01T00:00:00Z"
_ANTHROPIC_PAGE, _GEMINI_PAGE, _MAX_PAGE = 20, 50, 1000
_METHODS = ["generateContent", "streamGenerateContent", "countTokens"]


async def list_models(request: RequestContext, response: ResponseWriter) -> None:
    """Reply with the model that the path names, or with the list of all."""
    name, dialect, config = (
        request.path_params.get("model", ""),
        request.dialect.name,
        request.gateway.config.models,
    )
    body = encode_model(dialect, name, config) if name else encode_models(dialect, config, request.query)
    await response.reply(Reply(200, body, JSON_HEADERS))


def encode_models(dialect: str, models: ModelsConfig, query: Mapping[str, str]) -> bytes:
    return msgspec.json.encode(_LISTS.get(dialect, _openai_list)(models, query))


def encode_model(dialect: str, name: str, models: ModelsConfig) -> bytes:
    return msgspec.json.encode(_MODELS.get(dialect, _openai_model)(name, models))


def _anthropic_list(models: ModelsConfig, query: Mapping[str, str]) -> dict[str, Any]:
    """Give every Gemini model an alias with "claude": model discovery of clients accepts only such ids."""
    names = (*CLAUDE_MODELS, *(f"claude-{model}" for model in GEMINI_MODELS), *GEMINI_MODELS)
    page, has_more = paginate_names(
        names, query, "after_id", read_page_size(query, "limit", _ANTHROPIC_PAGE, _MAX_PAGE)
    )
    data = [_anthropic_model(name, models) for name in page]
    ends = {"first_id": page[0] if page else None, "last_id": page[-1] if page else None}
    return {"data": data, "has_more": has_more, **ends}


def _anthropic_model(name: str, models: ModelsConfig) -> dict[str, Any]:
    upstream_name = model_for(name, models)
    profile = gemini.profile_of(upstream_name)
    return {
        "type": "model",
        "id": name,
        "display_name": display_name(upstream_name)
        if "gemini" in name
        else f"{display_name(name)} → {display_name(upstream_name)}",
        "created_at": _UNKNOWN_DATE,
        "lifecycle": "active",
        "max_input_tokens": profile.input_tokens,
        "max_tokens": profile.output_tokens,
    }


def _openai_list(models: ModelsConfig, _query: Mapping[str, str]) -> dict[str, Any]:
    """Return all models at once, because OpenAI's list has no pagination."""
    return {
        "object": "list",
        "data": [_openai_model(name, models) for name in (*GEMINI_MODELS, *CLAUDE_MODELS)],
    }


def _openai_model(name: str, models: ModelsConfig) -> dict[str, Any]:
    profile = gemini.profile_of(model_for(name, models))
    return {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": "google",
        "context_window": profile.input_tokens,
        "max_output_tokens": profile.output_tokens,
    }


def _gemini_list(models: ModelsConfig, query: Mapping[str, str]) -> dict[str, Any]:
    """Return one page; the page token is the name of the previous page's last model."""
    page, has_more = paginate_names(
        GEMINI_MODELS, query, "pageToken", read_page_size(query, "pageSize", _GEMINI_PAGE, _MAX_PAGE)
    )
    body: dict[str, Any] = {"models": [_gemini_model(name, models) for name in page]}
    return {**body, "nextPageToken": page[-1]} if has_more else body


def _amazonq_list(models: ModelsConfig, _query: Mapping[str, str]) -> dict[str, Any]:
    """Include the default model: a client that has saved another service's model falls back to it."""
    names = dict.fromkeys((models.default, *GEMINI_MODELS))
    return {
        "models": [_amazonq_model(name, models) for name in names],
        "defaultModel": _amazonq_model(models.default, models),
    }


def _amazonq_model(name: str, models: ModelsConfig) -> dict[str, Any]:
    profile = gemini.profile_of(model_for(name, models))
    return {
        "modelId": name,
        "modelName": display_name(name),
        "description": "Google Gemini through Dragoman",
        "tokenLimits": {"maxInputTokens": profile.input_tokens, "maxOutputTokens": profile.output_tokens},
        "supportedInputTypes": ["TEXT", "IMAGE"],
        "additionalModelRequestFieldsSchema": _EFFORT_SCHEMA,
        "rateMultiplier": 1,
        "rateUnit": "Credit",
    }


def paginate_names(
    names: tuple[str, ...], query: Mapping[str, str], field: str, size: int
) -> tuple[tuple[str, ...], bool]:
    """Return the names after the one in the query's `field`, and whether there are more."""
    after = query.get(field, "")
    if after and after not in names:
        raise InvalidRequest(f"there is no page behind {after!r}", where=field)
    start = names.index(after) + 1 if after else 0
    return names[start : start + size], start + size < len(names)


def _gemini_model(name: str, models: ModelsConfig) -> dict[str, Any]:
    profile = gemini.profile_of(model_for(name, models))
    return {
        "name": f"models/{name}",
        "version": "001",
        "displayName": display_name(name),
        "inputTokenLimit": profile.input_tokens,
        "outputTokenLimit": profile.output_tokens,
        "supportedGenerationMethods": _METHODS,
        "thinking": True,
    }


def display_name(name: str) -> str:
    return name.replace("-", " ").title()


_LISTS: dict[str, Callable[[ModelsConfig, Mapping[str, str]], dict[str, Any]]] = {
    "anthropic": _anthropic_list,
    "gemini": _gemini_list,
    "amazonq": _amazonq_list,
}
_MODELS: dict[str, Callable[[str, ModelsConfig], dict[str, Any]]] = {
    "anthropic": _anthropic_model,
    "gemini": _gemini_model,
}
