"""The capabilities of each Gemini model, as data.

No other module interprets model names. Facts as of 2026-11-15. An unknown id gets the newest behaviour, because
it was probably released after this table.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import msgspec

Level = Literal["minimal", "low", "medium", "high"]


class ModelProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The capabilities of one model; models of one `family` accept each other's thought signatures."""

    family: str
    levels: tuple[Level, ...] = ()  # values of thinkingLevel, lowest first; empty: uses thinkingBudget
    budget: tuple[int, int] = (0, 0)  # smallest and largest thinkingBudget above 0
    can_stop_thinking: bool = False  # thinkingBudget 0 is allowed
    thinks_by_default: bool = True
    call_ids: bool = True
    signatures: bool = True
    media_in_results: bool = True
    ends_with_user: bool = True
    samples: bool = False  # temperature, topP and topK have an effect
    penalties: bool = False
    json_with_functions: bool = True  # JSON output together with functions or built-in tools
    mixes_tools: bool = True  # built-in tools together with functions, reported in the answer's parts
    input_tokens: int = 1_048_576
    output_tokens: int = 65_536


_GEMINI_2 = ModelProfile(
    family="g25",
    budget=(1, 24_576),
    can_stop_thinking=True,
    call_ids=False,
    signatures=False,
    media_in_results=False,
    ends_with_user=False,
    samples=True,
    json_with_functions=False,
    mixes_tools=False,
)
_GEMINI_3 = ModelProfile(
    family="g3", levels=("minimal", "low", "medium", "high"), ends_with_user=False, samples=True
)
_STRICT_3 = msgspec.structs.replace(_GEMINI_3, ends_with_user=True, samples=False)
_NEWEST = msgspec.structs.replace(_STRICT_3, levels=("low", "medium", "high"))

#: Aliases that only AI Studio's v1beta resolves -> the models they stand for elsewhere.
ALIASES = {
    "gemini-flash-latest": "gemini-3.8-flash",
    "gemini-flash-lite-latest": "gemini-3.5-flash-lite",
    "gemini-pro-latest": "gemini-3.1-pro-preview",
}

#: Patterns for model names; the first match wins.
_TABLE: tuple[tuple[str, ModelProfile], ...] = (
    (r"gemini-2\.5-pro", msgspec.structs.replace(_GEMINI_2, budget=(128, 32_768), can_stop_thinking=False)),
    (
        r"gemini-2\.5-flash-lite",
        msgspec.structs.replace(_GEMINI_2, budget=(512, 24_576), thinks_by_default=False),
    ),
    (r"gemini-[12]\.", _GEMINI_2),
    (r"gemini-3\.1-pro", msgspec.structs.replace(_GEMINI_3, levels=("low", "medium", "high"))),
    (r"gemini-3\.1-flash-lite", msgspec.structs.replace(_GEMINI_3, thinks_by_default=False)),
    (
        r"gemini-(3\.5-flash-lite|flash-lite-latest)",
        msgspec.structs.replace(_STRICT_3, thinks_by_default=False, samples=True),
    ),
    (r"gemini-3\.6-", _STRICT_3),
    (r"gemini-3(\.[0-5])?-", _GEMINI_3),
    (
        r"gemma-",
        msgspec.structs.replace(_GEMINI_3, family="gemma4", input_tokens=262_144, output_tokens=32_768),
    ),
)
_GENERATION = re.compile(r"gemini-(\d+)")


@lru_cache(maxsize=256)
def profile_of(model: str) -> ModelProfile:
    """Return the profile of a model name, with or without a path such as `publishers/google/models/`."""
    bare = model.rpartition("/")[2]
    known = next((profile for pattern, profile in _TABLE if re.match(pattern, bare)), None)
    if known is not None:
        return known
    generation = _GENERATION.match(bare)
    return msgspec.structs.replace(_NEWEST, family=f"g{generation[1]}") if generation else _NEWEST
