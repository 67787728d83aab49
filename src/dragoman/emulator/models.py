"""The models of 2026-11 and their properties. No other module inspects a model name."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from dragoman.emulator.errors import CATCH_ALL, ApiError
from dragoman.emulator.routes import Backend


class ThinkingBudget(msgspec.Struct, frozen=True):
    """The range of `thinkingBudget` of a model; -1 (dynamic) is always allowed, 0 if `allows_zero` is set."""

    low: int
    high: int
    allows_zero: bool


class EmulatedModel(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of one model."""

    id: str
    title: str
    family: str  # models of one family accept each other's thought signatures
    generation: tuple[int, int]
    input_limit: int = 1_048_576
    output_limit: int = 65_536
    thinking_levels: frozenset[str] = (
        frozenset()
    )  # accepted thinkingLevel values; empty: the model has a budget
    budget: ThinkingBudget | None = None
    thinks_by_default: bool = True  # even when the request has no thinkingConfig
    strict_roles: bool = False  # only the roles user and model, and no model turn at the end
    zero_budget_error: str = ""  # the error for thinkingBudget 0; empty: no special rule
    requires_signatures: bool = True  # Gemini 3 and later; image models do not enforce them
    accepts_response_media: bool = True  # media inside a function response
    closed_to_new_users: bool = False  # to API keys that did not use it before
    image_tokens: int = 1_120
    min_cached_tokens: int = 0  # smallest explicit cache; 0: caching is not supported
    ignores_budget: bool = False  # accepts and ignores any thinkingBudget

    @property
    def is_gemini3_or_later(self) -> bool:
        """Gemini 3 and later: call ids, required signatures, and a separate closing chunk."""
        return self.generation >= (3, 0)

    @property
    def has_long_decode(self) -> bool:
        """Gemini 4: an answer comes in several hops, and input and output share the context window."""
        return self.generation >= (4, 0)

    @property
    def max_output_tokens(self) -> int:
        """The largest useful maxOutputTokens, over all hops."""
        return self.input_limit if self.has_long_decode else self.output_limit


_ALL_LEVELS = frozenset({"MINIMAL", "LOW", "MEDIUM", "HIGH"})
_NO_MINIMAL = _ALL_LEVELS - {"MINIMAL"}
_THINKING_ONLY = "Budget 0 is invalid. This model only works in thinking mode."


def _gemini3(name: str, title: str, minor: int, **facts: Any) -> EmulatedModel:
    return EmulatedModel(
        id=name,
        title=title,
        family="gemini-3",
        generation=(3, minor),
        min_cached_tokens=4096,
        **facts,
    )


def _gemini4(name: str, title: str) -> EmulatedModel:
    return EmulatedModel(
        id=name,
        title=title,
        family="gemini-4",
        generation=(4, 0),
        thinking_levels=_NO_MINIMAL,
        strict_roles=True,
        zero_budget_error=_THINKING_ONLY,
    )


def _gemini25(name: str, title: str, budget: ThinkingBudget, **facts: Any) -> EmulatedModel:
    return EmulatedModel(
        id=name,
        title=title,
        family="gemini-2.5",
        generation=(2, 5),
        budget=budget,
        requires_signatures=False,
        accepts_response_media=False,
        closed_to_new_users=True,
        image_tokens=258,
        min_cached_tokens=1024,
        **facts,
    )


def _gemma4(name: str, title: str) -> EmulatedModel:
    return EmulatedModel(
        id=name,
        title=title,
        family="gemma-4",
        generation=(3, 0),
        input_limit=262_144,
        output_limit=32_768,
        thinking_levels=_ALL_LEVELS,
        image_tokens=258,
    )


MODELS: tuple[EmulatedModel, ...] = (
    _gemini4("gemini-4-carbon", "Gemini 4 Carbon"),
    _gemini4("gemini-4-argon", "Gemini 4 Argon"),
    _gemini3(
        "gemini-3.8-flash",
        "Gemini 3.8 Flash",
        8,
        thinking_levels=_NO_MINIMAL,
        strict_roles=True,
        zero_budget_error=_THINKING_ONLY,
    ),
    _gemini3(
        "gemini-3.7-flash",
        "Gemini 3.7 Flash",
        7,
        thinking_levels=_NO_MINIMAL,
        strict_roles=True,
        ignores_budget=True,
    ),
    _gemini3("gemini-3.6-flash", "Gemini 3.6 Flash", 6, thinking_levels=_ALL_LEVELS, strict_roles=True),
    _gemini3("gemini-3.5-flash", "Gemini 3.5 Flash", 5, thinking_levels=_ALL_LEVELS),
    _gemini3(
        "gemini-3.5-flash-lite",
        "Gemini 3.5 Flash-Lite",
        5,
        thinking_levels=_ALL_LEVELS,
        strict_roles=True,
        thinks_by_default=False,
        zero_budget_error=CATCH_ALL,
    ),
    _gemini3(
        "gemini-3.1-flash-lite",
        "Gemini 3.1 Flash-Lite",
        1,
        thinking_levels=_ALL_LEVELS,
        thinks_by_default=False,
    ),
    _gemini3(
        "gemini-3.1-pro-preview",
        "Gemini 3.1 Pro Preview",
        1,
        thinking_levels=_NO_MINIMAL,
        zero_budget_error=_THINKING_ONLY,
    ),
    _gemini3("gemini-3-flash-preview", "Gemini 3 Flash Preview", 0, thinking_levels=_ALL_LEVELS),
    _gemini25(
        "gemini-2.5-pro",
        "Gemini 2.5 Pro",
        ThinkingBudget(128, 32_768, allows_zero=False),
        zero_budget_error=_THINKING_ONLY,
    ),
    _gemini25("gemini-2.5-flash", "Gemini 2.5 Flash", ThinkingBudget(1, 24_576, allows_zero=True)),
    _gemini25(
        "gemini-2.5-flash-lite",
        "Gemini 2.5 Flash-Lite",
        ThinkingBudget(512, 24_576, allows_zero=True),
        thinks_by_default=False,
    ),
    _gemma4("gemma-4-31b-it", "Gemma 4 31B IT"),
    _gemma4("gemma-4-26b-a4b-it", "Gemma 4 26B A4B IT"),
)

#: Aliases exist on v1beta only.
ALIASES = {
    "gemini-flash-latest": "gemini-3.8-flash",
    "gemini-flash-lite-latest": "gemini-3.5-flash-lite",
    "gemini-pro-latest": "gemini-3.1-pro-preview",
}

NEWEST_FLASH = "gemini-3.8-flash"

#: Retired models: all of 1.x and 2.0, and gemini-3-pro-preview.
_RETIRED_PREFIXES = ("gemini-1.", "gemini-2.0", "gemini-pro", "gemini-3-pro-preview")

_BY_ID = {model.id: model for model in MODELS}
#: Unknown ids take the properties of a known model by prefix. The longest prefix wins, so that a flash-lite
#: variant is not taken for a flash.
_BASE_BY_PREFIX = {
    **{f"{name}-": name for name in _BY_ID},
    "gemini-2.5-": "gemini-2.5-flash",
    "gemini-": NEWEST_FLASH,
}
_PREFIXES = sorted(_BASE_BY_PREFIX, key=len, reverse=True)
#: Properties that a substring of the id changes.
_VARIANTS: dict[str, dict[str, Any]] = {
    "-image": {"requires_signatures": False},
    "-computer-use": {"accepts_response_media": True},
}


@lru_cache(maxsize=1024)
def find_model(name: str, version: str) -> EmulatedModel | None:
    """Return the properties of a model id, or None if Google answers 404.

    Unknown gemini ids get the properties of the newest flash model.
    """
    if version == "v1beta" and name in ALIASES:
        # Measured 2026-09: every alias has the strict turns of 3.6, whichever model it refers to.
        return msgspec.structs.replace(_BY_ID[ALIASES[name]], strict_roles=True)
    if name in ALIASES or name.startswith(_RETIRED_PREFIXES):
        return None
    if name in _BY_ID:
        return _BY_ID[name]
    start = next((start for start in _PREFIXES if name.startswith(start)), None)
    if start is None:
        return None
    facts = {fact: value for infix in _VARIANTS if infix in name for fact, value in _VARIANTS[infix].items()}
    return msgspec.structs.replace(_BY_ID[_BASE_BY_PREFIX[start]], id=name, **facts)


def require_model(name: str, backend: Backend, method: str, resource: str) -> EmulatedModel:
    """Return the properties of a model, or raise Google's 404."""
    model = find_model(name, backend.version)
    if model is None:
        raise model_not_found_error(name, backend, method, resource)
    return model


def model_not_found_error(name: str, backend: Backend, method: str, resource: str) -> ApiError:
    """Return Google's 404 for a model that does not exist or does not support the method."""
    if backend.is_vertex:
        message = (
            f"Publisher Model `{resource}` was not found or your project does not have access to it. "
            "Please ensure you are using a valid model version. For more information, see: "
            "https://cloud.google.com/vertex-ai/generative-ai/docs/learn/model-versions"
        )
    elif method == "get":
        message = f"Model is not found: models/{name} for api version {backend.version}"
    else:
        message = (
            f"models/{name} is not found for API version {backend.version}, or is not supported for "
            f"{method}. Call ModelService.ListModels to see the list of available models and their "
            "supported methods."
        )
    return ApiError(message, code=404)
