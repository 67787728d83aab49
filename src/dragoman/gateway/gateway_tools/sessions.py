"""The provider of session tools, which are set through the admin API.

They are declared in the requests of their session. A call of one of them ends the answer: it is stored together with
the answer so far (`SessionCalls.suspend`), until its result is posted to the admin API and the next request of the
session continues the answer (`SessionCalls.resume`). What is stored is in `session_state`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dragoman.config import SessionsConfig
from dragoman.gateway.gateway_tools.protocol import ResumedAnswer, ToolOffer, ToolOutcome, ToolRequest
from dragoman.gateway.gateway_tools.session_state import (
    SESSION_HEADER,
    SessionCall,
    SessionToolset,
    SuspendedAnswer,
    ToolSession,
    decode_toolset,
    group_steps,
    missing_results,
    open_call_ids,
)
from dragoman.gateway.store_errors import require_store
from dragoman.ir import Message, Text, Tool, ToolCall, ToolChoice, ToolResult
from dragoman.store import SessionToolStore, StoreUnavailable
from dragoman.tools.convert import gemini
from dragoman.tools.inject import CapturedCall, placeholder, placeholder_ids
from dragoman.translation.repair import HiddenRounds, decode_hidden, hidden_places, text_key

_FIRST_POLL_S, _MAX_POLL_S = 0.02, 0.5
_log = logging.getLogger("dragoman")


class SessionToolProvider:
    """Offer the tools of the session that a request names."""

    def __init__(self, store: SessionToolStore, config: SessionsConfig) -> None:
        self._store = store
        self._config = config

    async def offer(self, tool_request: ToolRequest) -> ToolOffer | None:
        scope, name = tool_request.caller.scope, tool_request.request.session
        if not name:
            return None
        try:
            stored = await self._store.toolset(scope, name)
        except StoreUnavailable as error:
            _log.warning("%s; a session's tools are not offered", error)
            return None
        if stored is None:
            return None
        toolset = decode_toolset(stored)
        session = ToolSession(self._store, scope, name)
        is_named = bool(tool_request.headers.get(SESSION_HEADER))  # not merely derived from the request
        return ToolOffer(
            tools=tuple(map(_SessionTool, toolset.tools)),
            tool_choice=_tool_choice(toolset),
            keep_client_tools=toolset.keep_client_tools,
            external_results=SessionCalls(
                session, tool_request, self._config.follow_up_wait_s, is_named=is_named
            ),
        )

    async def close(self) -> None:
        """Do nothing: the gateway closes the store."""


class _SessionTool:
    """A tool whose result is supplied through the admin API."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool

    async def run(self, call: ToolCall, tool_request: ToolRequest) -> ToolOutcome:
        del call, tool_request
        return ToolOutcome(is_external=True)


def _tool_choice(toolset: SessionToolset) -> ToolChoice | None:
    """Return the tool choice of Google's toolConfig; None if it has none."""
    config = toolset.tool_config or {}
    if not {"functionCallingConfig", "function_calling_config"} & config.keys():
        return None
    return gemini.decode_choice(config)


class SessionCalls:
    """The stored calls of a session, as one request sees them.

    A request continues from calls that its history shows, either by their placeholder text or by the client's
    own calls beside them. A request that repeats the last question continues from the last calls. So does
    every request in a session that the client named itself (`is_named`); a session that was derived may contain
    several conversations.
    """

    def __init__(
        self, session: ToolSession, tool_request: ToolRequest, wait_s: float, *, is_named: bool
    ) -> None:
        self._session = session
        self._messages = tool_request.request.messages
        self._wait_s = wait_s
        self._is_named = is_named
        self._resumed_calls: list[SessionCall] = []

    async def resume(self) -> ResumedAnswer:
        loop = asyncio.get_running_loop()
        deadline, pause_s = loop.time() + self._wait_s, _FIRST_POLL_S
        while True:
            in_history, after_history = self._find_steps(await require_store(self._session.calls()))
            self._resumed_calls = [call for step in (*in_history.values(), *after_history) for call in step]
            if not open_call_ids(self._resumed_calls):
                await require_store(self._session.merge_results(self._resumed_calls))
                return _resume_steps(in_history, after_history)
            if loop.time() >= deadline:
                raise missing_results(self._session.name, self._resumed_calls)
            await asyncio.sleep(min(pause_s, deadline - loop.time()))
            pause_s = min(2 * pause_s, _MAX_POLL_S)

    def placeholder_text(self, calls: Sequence[ToolCall]) -> str:
        return placeholder([CapturedCall(id=call.id, name=call.name) for call in calls])

    async def suspend(self, calls: Sequence[ToolCall], key: str, record: HiddenRounds) -> None:
        suspended = SuspendedAnswer(key=key, record=record.encode(), question=_question_key(self._messages))
        first, *others = (
            SessionCall.from_call(call, step=calls[0].id, created_s=int(time.time())) for call in calls
        )
        await require_store(
            self._session.add_calls([msgspec.structs.replace(first, suspended=suspended), *others])
        )

    async def mark_delivered(self) -> None:
        await self._session.mark_delivered(self._resumed_calls)

    def _find_steps(
        self, calls: list[SessionCall]
    ) -> tuple[dict[str, list[SessionCall]], list[list[SessionCall]]]:
        """Return the steps that this request continues: by key of their place in its history, and after it."""
        steps = [step for step in group_steps(calls) if step[0].suspended is not None]
        places = _find_places(self._messages)
        in_history = {places[mark]: step for step in steps for mark in _step_marks(step) if mark in places}
        last = steps[-1] if steps else []
        if not last or all(call.delivered for call in last) or last in in_history.values():
            return in_history, []
        asked_again = last[0].suspended is not None and last[0].suspended.question == _question_key(
            self._messages
        )
        return in_history, [last] if self._is_named or asked_again else []


def _step_marks(step: Sequence[SessionCall]) -> tuple[str, ...]:
    """Return the marks of a step in a history: its id in the placeholder text, and the key of its place."""
    suspended = step[0].suspended
    return (step[0].id, suspended.key) if suspended is not None else ()


def _find_places(messages: tuple[Message, ...]) -> dict[str, str]:
    """Map the marks of session calls in a history to the key of the place that shows them."""
    places: dict[str, str] = {}
    for key, (start, end) in hidden_places(messages).items():
        places[key] = key
        for message in messages[start:end]:
            texts = (part.text for part in message.parts if isinstance(part, Text))
            places |= dict.fromkeys((mark for text in texts for mark in placeholder_ids(text)), key)
    return places


def _question_key(messages: tuple[Message, ...]) -> str:
    """Return a key of the last message, or "" if it is the model's."""
    return text_key(messages[-1], "") if messages and messages[-1].role != "model" else ""


def _resume_steps(
    in_history: Mapping[str, list[SessionCall]], after_history: Iterable[list[SessionCall]]
) -> ResumedAnswer:
    records = {key: _record_with_results(step) for key, step in in_history.items()}
    later_records = map(_record_with_results, after_history)
    return ResumedAnswer(
        in_history={key: record.encode() for key, record in records.items() if record is not None},
        after_history=tuple(record for record in later_records if record is not None),
    )


def _record_with_results(step: Sequence[SessionCall]) -> HiddenRounds | None:
    """Return the record of the answer that ended with these calls, with their results added."""
    suspended = step[0].suspended
    record = decode_hidden(suspended.record) if suspended is not None else None
    results: list[ToolResult] = [call.result for call in step if call.result is not None]
    return record.with_results(results) if record is not None else None
