"""`Interceptor`: adds a session's tools to a program's requests and removes their calls from the responses.

It does no network I/O; `addon` does that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from dragoman.dialects.base import Target
from dragoman.dialects.gemini import origin_of
from dragoman.dialects.gemini.tools import declare
from dragoman.gateway.gateway_tools.session_state import (
    SessionCall,
    SessionToolset,
    ToolSession,
    group_steps,
    missing_results,
    open_call_ids,
)
from dragoman.ir import ToolCall, ToolResult
from dragoman.schema import NameMap
from dragoman.tools.convert import gemini
from dragoman.tools.inject import (
    CallResult,
    CallStep,
    CapturedCall,
    ToolContext,
    adapt_to_model,
    captured_calls,
    continues_from,
    modify_request,
    question_of,
    withhold,
)

Json = dict[str, Any]

#: Runs calls immediately and returns their results in order. Without a runner, results arrive through the session.
CallRunner = Callable[[Sequence[ToolCall]], Awaitable[Sequence[ToolResult]]]

MAX_ROUNDS = 16
_POLL_S = 0.1


class PreparedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to Google: `body` is what is sent, `asked` the hash of the program's question."""

    target: Target
    body: Json
    question_hash: str
    names: NameMap
    declared: frozenset[str]
    used_calls: tuple[SessionCall, ...] = ()
    rounds: int = 0


class Interceptor:
    """Applies one session to a program's traffic.

    `wait_s` is how long a follow-up waits for results; `now` returns seconds since the epoch.
    """

    def __init__(
        self,
        session: ToolSession,
        *,
        wait_s: float,
        now: Callable[[], float],
        runner: CallRunner | None = None,
    ) -> None:
        self._session = session
        self._wait_s = wait_s
        self._now = now
        self._runner = runner

    async def prepare(self, target: Target, body: Json) -> PreparedRequest | None:
        """Return the request to send, or None if the session does not exist.

        A follow-up to calls without results waits for them, and raises a `DragomanError` after `wait_s`.
        """
        held = await self._session.get_toolset()
        if held is None:
            return None
        shown = await self._wait_for_results(body)
        declarations = declare(held.tools, target)
        tools: tuple[Json, ...] = tuple(msgspec.json.decode(declarations.json))
        context = adapt_to_model(_context(held, tools, shown, target), body, target)
        return PreparedRequest(
            target=target,
            body=modify_request(body, context),
            question_hash=question_of(body),
            names=declarations.names,
            declared=frozenset(tool["name"] for tool in context.tools),
            used_calls=tuple(call for step in shown for call in step),
        )

    async def receive(self, prepared: PreparedRequest, chunks: list[Json]) -> list[Json] | PreparedRequest:
        """Return the response for the program, or the next request if the model's calls were run here."""
        target = prepared.target
        question = question_of(prepared.body) if self._runner else prepared.question_hash
        calls = captured_calls(chunks, prepared.declared, question=question, origin=origin_of(target))
        if calls and self._runner is not None:
            results = await self._runner([_tool_call(call, prepared.names) for call in calls])
            if not calls[0].beside and prepared.rounds < MAX_ROUNDS:
                return _next_request(prepared, calls, results)
            await self._capture(prepared, calls)
            await self._session.add_results(results)
        elif calls:
            await self._capture(prepared, calls)
        await self._session.mark_delivered(prepared.used_calls)
        return withhold(chunks, calls) if calls else chunks

    async def _wait_for_results(self, body: Json) -> list[list[SessionCall]]:
        """Return the steps that this request continues from, once all their results have arrived."""
        deadline = asyncio.get_running_loop().time() + self._wait_s
        while True:
            steps = [
                step for step in group_steps(await self._session.calls()) if all(one.captured for one in step)
            ]
            shown = [step for step in steps if continues_from(body, _captured_calls(step))]
            calls = [call for step in shown for call in step]
            waiting = open_call_ids(calls)
            if not waiting:
                await self._session.merge_results(calls)
                return shown
            if asyncio.get_running_loop().time() >= deadline:
                raise missing_results(self._session.name, calls)
            await asyncio.sleep(_POLL_S)

    async def _capture(self, prepared: PreparedRequest, calls: tuple[CapturedCall, ...]) -> None:
        kept = [
            SessionCall(
                id=call.id,
                name=prepared.names.from_wire(call.name),
                args=call.args,
                created_s=int(self._now()),
                step=calls[0].id,
                captured=call,
            )
            for call in calls
        ]
        await self._session.add_calls(kept)


def _context(
    held: SessionToolset, tools: tuple[Json, ...], shown: list[list[SessionCall]], target: Target
) -> ToolContext:
    steps = [_step(step, target) for step in shown]
    fresh = bool(shown) and not all(call.delivered for call in shown[-1])
    last = steps.pop() if fresh else CallStep(())
    return ToolContext(
        tools=tools,
        tool_config=held.tool_config,
        keep_client_tools=held.keep_client_tools,
        last_calls=last.calls,
        pending_results=last.results,
        earlier=tuple(steps),
    )


def _step(calls: list[SessionCall], target: Target) -> CallStep:
    results = (_call_result(call.result, target) for call in calls if call.result is not None)
    return CallStep(_captured_calls(calls), tuple(results))


def _captured_calls(calls: Sequence[SessionCall]) -> tuple[CapturedCall, ...]:
    return tuple(call.captured for call in calls if call.captured is not None)


def _call_result(result: ToolResult, target: Target) -> CallResult:
    """Convert a result to Google's format; files that the model does not accept are described in text."""
    (content,) = gemini.encode_results([result], target=target)
    wire = content["parts"][0]["functionResponse"]
    return CallResult(id=result.call_id, response=wire["response"], parts=tuple(wire.get("parts", ())))


def _tool_call(call: CapturedCall, names: NameMap) -> ToolCall:
    return ToolCall(id=call.id, name=names.from_wire(call.name), args=msgspec.json.encode(call.args))


def _next_request(
    prepared: PreparedRequest, calls: tuple[CapturedCall, ...], results: Sequence[ToolResult]
) -> PreparedRequest:
    """Return the next request of an answer: the same one with the calls and their results appended."""
    pending = tuple(_call_result(result, prepared.target) for result in results)
    context = adapt_to_model(
        ToolContext(last_calls=calls, pending_results=pending), prepared.body, prepared.target
    )
    body = modify_request(prepared.body, context)
    return msgspec.structs.replace(prepared, body=body, rounds=prepared.rounds + 1)
