"""Interfaces that a `Handler` calls: a `Guard` before an execution, a `Journal` after it."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import msgspec

from dragoman.tools.definition import Context, ToolDefinition

#: How an execution ended.
Outcome = Literal["ok", "failed", "refused", "timeout", "cancelled", "unknown", "invalid"]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a call may run, the reason, and what decided it (`by`: a rule, a person, a default)."""

    allowed: bool
    reason: str = ""
    by: str = ""


class Guard(Protocol):
    """Decides whether a call may run; an exception counts as a denial."""

    async def decide(
        self, definition: ToolDefinition, args: dict[str, Any], context: Context
    ) -> Decision: ...


class ExecutionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the journal."""

    session: str
    caller: str
    tool: str
    args: bytes
    is_error: bool
    result_bytes: int
    duration_s: float
    decision: Decision
    at_s: float  # start, in seconds since the epoch
    outcome: Outcome = "ok"
    cached: bool = False
    request: str = ""
    profile: str = ""


class Journal(Protocol):
    """Records executions; an exception is raised to the caller of the handler."""

    def record(self, entry: ExecutionRecord) -> None: ...


ALLOWED_WITHOUT_GUARD = Decision(allowed=True, by="no guard")
NOT_DECIDED = Decision(allowed=False, by="not asked")
