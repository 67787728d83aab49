"""Finish reasons in neutral words."""

from __future__ import annotations

import pytest

from dragoman.dialects.gemini.stream import stop_reason

BLOCKED = (
    "SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT "
    "IMAGE_RECITATION ESCALATION MODEL_ARMOR"
)
MALFORMED = (
    "MALFORMED_FUNCTION_CALL MALFORMED_RESPONSE UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS "
    "MISSING_THOUGHT_SIGNATURE OTHER NO_IMAGE IMAGE_OTHER"
)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("STOP", "end"),
        ("MAX_TOKENS", "max_tokens"),
        ("CONTINUATION", "max_tokens"),
        *((raw, "blocked") for raw in BLOCKED.split()),
        *((raw, "malformed") for raw in MALFORMED.split()),
        *((raw, "other") for raw in ("FINISH_REASON_UNSPECIFIED", "NEW_IN_2027")),
    ],
)
def test_d1_d4_every_reason_with_and_without_calls(raw: str, reason: str) -> None:
    """D1: an aborted call is no clean end. D4: only STOP is promoted by a call."""
    assert stop_reason(raw, has_calls=False) == reason
    assert stop_reason(raw, has_calls=True) == ("tool_calls" if raw == "STOP" else reason)
