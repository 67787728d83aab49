"""`GET /v1/models` for Anthropic clients: names Claude Code's discovery accepts, with real limits (F7, F8)."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.config import ModelsConfig, model_for
from dragoman.dialects import gemini

#: Shown to clients; anything else still works.
_GEMINI = (
    "gemini-4-carbon",
    "gemini-4-argon",
    "gemini-3.8-flash",
    "gemini-3.7-flash",
    "gemini-3.6-flash",
    "gemini-3.5-flash",
    "gemini-3.5-flash-lite",
    "gemini-3.1-pro-preview",
)
_FAMILIES = ("claude-opus-4-8", "claude-sonnet-4-5", "claude-haiku-4-5")
_UNKNOWN_DATE = "1970-01-01T00:00:00Z"


def list_models(models: ModelsConfig) -> bytes:
    """Discovery takes only ids with "claude" in them, so every Gemini model has such an alias too."""
    names = (*_FAMILIES, *(f"claude-{model}" for model in _GEMINI), *_GEMINI)
    data = [_model(name, models) for name in names]
    return msgspec.json.encode({"data": data, "has_more": False, "first_id": names[0], "last_id": names[-1]})


def get_model(name: str, models: ModelsConfig) -> bytes:
    return msgspec.json.encode(_model(name, models))


def _model(name: str, models: ModelsConfig) -> dict[str, Any]:
    real = model_for(name, models)
    profile = gemini.profile_of(real)
    return {
        "type": "model",
        "id": name,
        "display_name": _title(real) if "gemini" in name else f"{_title(name)} → {_title(real)}",
        "created_at": _UNKNOWN_DATE,
        "lifecycle": "active",
        "max_input_tokens": profile.input_tokens,
        "max_tokens": profile.output_tokens,
    }


def _title(name: str) -> str:
    return name.replace("-", " ").title()
