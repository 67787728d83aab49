"""`Handler`: executes tool calls.

Each call passes the same steps: look up the tool, validate the arguments, ask the guard for permission, execute
with a timeout, truncate the output, update the metrics, write the journal entry.

Every failure of a call becomes an error result for the model. `execute` raises only when it is cancelled itself,
or when the journal cannot be written: an unrecorded execution must not go unnoticed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dragoman.config import check_strict_extra
from dragoman.ir import ToolCall, ToolResult
from dragoman.notes import Note
from dragoman.schema import check_args, check_args_strictly, repair_args
from dragoman.tools.cache import ResultCache
from dragoman.tools.definition import Context, ToolDefinition, ToolOutput
from dragoman.tools.errors import ToolError, ToolFailed, ToolRefused
from dragoman.tools.hooks import (
    ALLOWED_WITHOUT_GUARD,
    NOT_DECIDED,
    Decision,
    ExecutionRecord,
    Guard,
    Journal,
    Outcome,
)
from dragoman.tools.metrics import UNKNOWN_TOOL, ToolMetrics, count_call
from dragoman.tools.registry import Registry
from dragoman.tools.results import cap_output, error_output, size_of, to_output, to_result
from dragoman.tools.running import ExecutorTimeout, run_with_timeout

DEFAULT_TIMEOUT_S = 30.0
DEFAULT_MAX_OUTPUT_BYTES = 256 * 1024
_MAX_PROBLEMS = 5
_DEFAULT_CONTEXT = Context()


class ExecutionResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result, how the call ended, and what decided about it."""

    result: ToolResult
    outcome: Outcome
    duration_s: float
    decision: Decision = NOT_DECIDED
    cached: bool = False
    notes: tuple[Note, ...] = ()  # repairs of the arguments, or why strict validation was not possible


class _CallState(msgspec.Struct, kw_only=True):
    """The state of one call while it is executed; the outcome is "cancelled" until something else is known."""

    output: ToolOutput = ToolOutput()
    outcome: Outcome = "cancelled"
    decision: Decision = NOT_DECIDED
    args: bytes = b"{}"
    cached: bool = False
    notes: tuple[Note, ...] = ()

    def end(self, outcome: Outcome, message: str) -> None:
        self.outcome, self.output = outcome, error_output(message)


class Handler:
    """Executes calls of the tools in a registry.

    `guard` decides whether a call may run; without one every call is allowed. `journal` records every execution.
    `strict` rejects arguments that the default mode would repair, and needs the `strict` extra. `cache_bytes` is
    the size of the cache for deterministic tools. `clock` measures durations; `now` returns seconds since the
    epoch.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES,
        guard: Guard | None = None,
        journal: Journal | None = None,
        strict: bool = False,
        cache_bytes: int = 0,
        max_parallel: int = 16,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        if strict:
            check_strict_extra("Handler(strict=True)")
        self.registry = registry
        self.metrics: dict[str, ToolMetrics] = {}
        self._timeout_s = timeout_s
        self._max_output_bytes = max_output_bytes
        self.guard = guard
        self._journal = journal
        self._strict = strict
        self._cache = ResultCache(cache_bytes)
        self._max_parallel = max_parallel
        self._clock = clock
        self._now = now

    async def execute(self, call: ToolCall, context: Context = _DEFAULT_CONTEXT) -> ToolResult:
        """Execute one call and return its result; see the module's docstring for what it raises."""
        return (await self.run(call, context)).result

    async def execute_all(
        self, calls: Sequence[ToolCall], context: Context = _DEFAULT_CONTEXT
    ) -> list[ToolResult]:
        """Execute calls concurrently, at most `max_parallel` at a time; return results in the calls' order."""
        room = asyncio.Semaphore(self._max_parallel)

        async def one(call: ToolCall) -> ToolResult:
            async with room:
                return await self.execute(call, context)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(call)) for call in calls]
        return [task.result() for task in tasks]

    async def run(self, call: ToolCall, context: Context = _DEFAULT_CONTEXT) -> ExecutionResult:
        """Execute one call, as `execute` does, and return the result with outcome, duration and decision."""
        state = _CallState(args=call.args)
        began_s, at_s = self._clock(), self._now()
        definition = self.registry.get(call.name)
        try:
            if definition is None:
                state.end("unknown", self.registry.explain_unknown(call.name))
            else:
                await self._attempt(definition, call, context, state)
        finally:
            duration_s = self._clock() - began_s
            self._count(call.name if definition else UNKNOWN_TOOL, state, duration_s)
            self._record(call.name, context, state, at_s, duration_s)
        return ExecutionResult(
            result=to_result(state.output, call),
            outcome=state.outcome,
            duration_s=duration_s,
            decision=state.decision,
            cached=state.cached,
            notes=state.notes,
        )

    async def _attempt(
        self, definition: ToolDefinition, call: ToolCall, context: Context, state: _CallState
    ) -> None:
        problems = self._read_args(definition, call, state)
        if problems:
            words = "; ".join(problems[:_MAX_PROBLEMS])
            state.end("invalid", f"The arguments of {call.name} do not fit its schema: {words}")
            return
        args = msgspec.json.decode(state.args, type=dict[str, Any])
        state.decision = await self._decide(definition, args, context)
        if not state.decision.allowed:
            state.end("refused", state.decision.reason or f"{call.name} was not allowed.")
            return
        known = self._cache.get(definition, args)
        if known is not None:
            state.output, state.outcome, state.cached = known, "ok", True
            return
        await self._perform(definition, args, context, state)
        self._cache.put(definition, args, state.output)

    def _read_args(self, definition: ToolDefinition, call: ToolCall, state: _CallState) -> tuple[str, ...]:
        if self._strict:
            problems, state.notes = check_args_strictly(call.args, definition.schema, where=call.name)
            return problems
        state.args, state.notes = repair_args(call.args, definition.schema, where=call.name)
        return check_args(state.args, definition.schema)

    async def _decide(self, definition: ToolDefinition, args: dict[str, Any], context: Context) -> Decision:
        if self.guard is None:
            return ALLOWED_WITHOUT_GUARD
        try:
            return await self.guard.decide(definition, args, context)
        except Exception as error:  # a guard that raises denies the call
            reason = f"The permission for {definition.name} could not be checked: {_describe(error)}"
            return Decision(allowed=False, reason=reason, by="a broken guard")

    async def _perform(
        self, definition: ToolDefinition, args: dict[str, Any], context: Context, state: _CallState
    ) -> None:
        timeout_s = definition.timeout_s or self._timeout_s
        try:
            if definition.execute is None:
                raise ToolFailed(f"{definition.name} is only declared here: nobody can run it.")
            value = await run_with_timeout(definition.execute, args, context, timeout_s=timeout_s)
            output = to_output(value)
            state.outcome = "failed" if output.is_error else "ok"
            state.output = cap_output(output, self._max_output_bytes)
        except ExecutorTimeout:
            state.end("timeout", f"{definition.name} was stopped: it took longer than {timeout_s:g} s.")
        except ToolError as error:
            state.end("refused" if isinstance(error, ToolRefused) else "failed", str(error))
        except Exception as error:  # reported to the model as an error result
            state.end("failed", _describe(error))
        if state.output.is_error:
            state.output = cap_output(state.output, self._max_output_bytes)

    def _count(self, name: str, state: _CallState, duration_s: float) -> None:
        metrics = self.metrics.setdefault(name, ToolMetrics())
        size = size_of(state.output)
        count_call(metrics, state.outcome, is_error=state.outcome != "ok", seconds=duration_s, size=size)
        metrics.cached += state.cached

    def _record(self, name: str, context: Context, state: _CallState, at_s: float, duration_s: float) -> None:
        if self._journal is None:
            return
        entry = ExecutionRecord(
            session=context.session,
            caller=context.caller,
            tool=name,
            args=state.args,
            is_error=state.outcome != "ok",
            result_bytes=size_of(state.output),
            duration_s=duration_s,
            decision=state.decision,
            at_s=at_s,
            outcome=state.outcome,
            cached=state.cached,
            request=context.request,
            profile=context.profile,
        )
        self._journal.record(entry)


def _describe(error: BaseException) -> str:
    words = str(error).strip()
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


__all__ = [
    "Decision",
    "ExecutionRecord",
    "ExecutionResult",
    "Guard",
    "Handler",
    "Journal",
    "Outcome",
]
