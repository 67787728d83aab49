"""Which Gemini model a client's model name means; never "unknown model" (pains F9, M1, M5)."""

from __future__ import annotations

import re

from dragoman.config.model import ModelsConfig

_LONG_CONTEXT = re.compile(r"\[1m\]$", re.IGNORECASE)  # Claude Code's mark for a million tokens (pain M5)
_FAMILIES = ("haiku", "sonnet", "opus")


def model_for(name: str, models: ModelsConfig) -> str:
    bare = name.removesuffix("[1m]").rpartition("/")[2]
    bare = (
        bare.removeprefix("claude-") if bare.startswith("claude-gemini-") else bare
    )  # as the models list says
    if bare.startswith(("gemini-", "gemma-")):
        return bare
    if bare in models.rules:
        return models.rules[bare]
    lowered = bare.lower()
    for word, model in models.rules.items():
        if word.lower() in lowered:
            return model
    for family in _FAMILIES:
        if family in lowered:
            return str(getattr(models, family))
    return models.default
