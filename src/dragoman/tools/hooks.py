"""Who may stop an execution before it begins, and who writes it down afterwards."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import msgspec

from dragoman.tools.definition import Context, ToolDefinition

#: How an execution ended.
Outcome = Literal["ok", "failed", "refused", "timeout", "cancelled", "unknown", "invalid"]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a call may run, why, and who said so (a rule, a person, nobody)."""

    allowed: bool
    reason: str = ""
    by: str = ""


class Guard(Protocol):
    async def decide(
        self, definition: ToolDefinition, args: dict[str, Any], context: Context
    ) -> Decision: ...


class Execution(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the journal."""

    session: str
    caller: str
    tool: str
    args: bytes
    is_error: bool
    result_bytes: int
    duration_s: float
    decision: Decision
    at_s: float  # seconds since the epoch, at the beginning
    outcome: Outcome = "ok"
    cached: bool = False
    request: str = ""
    profile: str = ""


class Journal(Protocol):
    def record(self, entry: Execution) -> None: ...


UNGUARDED = Decision(allowed=True, by="no guard")
NOT_ASKED = Decision(allowed=False, by="not asked")
