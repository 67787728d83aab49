"""Map Google's finish reasons to neutral stop reasons."""

from __future__ import annotations

from dragoman.ir import StopReason

_REASON: dict[str, StopReason] = {
    "STOP": "end",
    "MAX_TOKENS": "max_tokens",
    "CONTINUATION": "max_tokens",
    "SAFETY": "blocked",
    "RECITATION": "blocked",
    "LANGUAGE": "blocked",
    "BLOCKLIST": "blocked",
    "PROHIBITED_CONTENT": "blocked",
    "SPII": "blocked",
    "IMAGE_SAFETY": "blocked",
    "IMAGE_PROHIBITED_CONTENT": "blocked",
    "IMAGE_RECITATION": "blocked",
    "ESCALATION": "blocked",
    "MODEL_ARMOR": "blocked",
    "MALFORMED_FUNCTION_CALL": "malformed",
    "MALFORMED_RESPONSE": "malformed",
    "UNEXPECTED_TOOL_CALL": "malformed",
    "TOO_MANY_TOOL_CALLS": "malformed",
    "MISSING_THOUGHT_SIGNATURE": "malformed",
    "OTHER": "malformed",
    "NO_IMAGE": "malformed",
    "IMAGE_OTHER": "malformed",
}


def stop_reason(raw: str, *, has_calls: bool) -> StopReason:
    """Return the neutral reason; STOP becomes `tool_calls` if the answer has calls.

    Google ends tool calls with STOP too. No other reason becomes `tool_calls`, so that a call that was cut off
    is not taken for complete (D3, D4).
    """
    reason = _REASON.get(raw, "other")
    return "tool_calls" if reason == "end" and has_calls else reason
