"""How an answer ends: why, what it cost, how full the context is."""

from __future__ import annotations

from typing import Any

from dragoman.dialects.base import Answer
from dragoman.ir import Finished, StopReason, Usage

_STOP: dict[StopReason, str] = {
    "end": "END_TURN",
    "tool_calls": "TOOL_USE",
    "max_tokens": "MAX_TOKENS",
    "blocked": "CONTENT_FILTERED",
    "malformed": "UNKNOWN",
    "other": "END_TURN",
}
#: Ends that a silent answer must explain: most clients know no stop reason and would show nothing at all.
_UNEXPECTED: frozenset[StopReason] = frozenset({"blocked", "max_tokens", "malformed"})


def explanation(finished: Finished) -> str:
    """For people, where an answer has no word of its own; empty if there is nothing to explain."""
    return f"({_why(finished)})" if finished.reason in _UNEXPECTED else ""


def metadata(finished: Finished, usage: Usage, answer: Answer) -> dict[str, Any]:
    asked = max(usage.input_tokens or answer.input_tokens, usage.cached_tokens)
    told: dict[str, Any] = {
        "tokenUsage": {
            "uncachedInputTokens": asked - usage.cached_tokens,
            "outputTokens": usage.output_tokens,
            "totalTokens": asked + usage.output_tokens,
            "cacheReadInputTokens": usage.cached_tokens,
            "cacheWriteInputTokens": 0,
        },
        "stopReason": _STOP[finished.reason],
    }
    if finished.reason == "blocked":
        told["stopDetails"] = {"refusal": {"explanation": _why(finished)}}
    return told


def context_usage(usage: Usage, answer: Answer) -> dict[str, Any] | None:
    """How much of the context the conversation fills; None if nobody counted or knows its size."""
    if not usage.input_tokens or not answer.context_tokens:
        return None
    used = usage.input_tokens + usage.output_tokens - usage.thought_tokens
    return {"contextUsagePercentage": round(100 * used / answer.context_tokens, 2)}


def _why(finished: Finished) -> str:
    return finished.detail or f"Gemini stopped with {finished.raw}"
