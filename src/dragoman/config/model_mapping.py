"""Map a client's model name to a Gemini model; no name is rejected as unknown (known problems F9, M1, M5)."""

from __future__ import annotations

import re

from dragoman.config.model import ModelsConfig

# Claude Code's suffix for a context of a million tokens (known problem M5)
_LONG_CONTEXT = re.compile(r"\[1m\]$", re.IGNORECASE)
#: Google's own names, also in the forms of the model lists: `claude-gemini-…`,
#: `us.anthropic.claude-gemini-…-v1:0`.
_GEMINI_NAME = re.compile(
    r"(?:(?:[a-z-]+\.)?(?:anthropic|google)\.)?(?:claude-)?((?:gemini|gemma)-.*?)(?:-v\d+:\d+)?", re.DOTALL
)
_FAMILIES = ("haiku", "sonnet", "opus")


def model_for(name: str, models: ModelsConfig) -> str:
    """Return the Gemini model: a Gemini name itself, else by the rules, by the families, or the default."""
    bare = _LONG_CONTEXT.sub("", name.strip()).rpartition("/")[2]
    own = _GEMINI_NAME.fullmatch(bare)
    if own is not None:
        return own[1]
    for exact in (name, bare):
        if exact in models.rules:
            return models.rules[exact]
    lowered = bare.lower()
    for word, model in models.rules.items():
        if word.lower() in lowered:
            return model
    for family in _FAMILIES:
        if family in lowered:
            return str(getattr(models, family))
    return models.default
