"""The end of an answer: stop reason, token usage, and how full the context is."""

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
#: Reasons to explain in an answer without content: most clients ignore the stop reason and would show nothing.
_UNEXPECTED: frozenset[StopReason] = frozenset({"blocked", "max_tokens", "malformed"})


def explanation(finished: Finished) -> str:
    """Return a text that explains why an answer has no content; empty if the reason needs none."""
    return f"({_why(finished)})" if finished.reason in _UNEXPECTED else ""


def metadata(finished: Finished, usage: Usage, answer: Answer) -> dict[str, Any]:
    """Return the payload of `metadataEvent`; Amazon's input tokens exclude cached ones, Google's include them."""
    prompt = max(usage.input_tokens or answer.input_tokens, usage.cached_tokens)
    payload: dict[str, Any] = {
        "tokenUsage": {
            "uncachedInputTokens": prompt - usage.cached_tokens,
            "outputTokens": usage.output_tokens,
            "totalTokens": prompt + usage.output_tokens,
            "cacheReadInputTokens": usage.cached_tokens,
            "cacheWriteInputTokens": 0,
        },
        "stopReason": _STOP[finished.reason],
    }
    if finished.reason == "blocked":
        payload["stopDetails"] = {"refusal": {"explanation": _why(finished)}}
    return payload


def context_usage(usage: Usage, answer: Answer) -> dict[str, Any] | None:
    """Return the payload of `contextUsageEvent`; None if the token count or the context size is unknown."""
    if not usage.input_tokens or not answer.context_tokens:
        return None
    used = usage.input_tokens + usage.output_tokens - usage.thought_tokens
    return {"contextUsagePercentage": round(100 * used / answer.context_tokens, 2)}


def _why(finished: Finished) -> str:
    return finished.detail or f"Gemini stopped with {finished.raw}"
