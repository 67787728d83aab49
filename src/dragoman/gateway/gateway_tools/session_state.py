"""The stored state of session tools: their declarations, the calls, and the results.

The provider in `sessions`, the admin API and the `mitm` proxy read and write it. A call that the proxy
has captured has `captured` set.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal

import msgspec

from dragoman.errors import DragomanError, InvalidRequest
from dragoman.ir import Tool, ToolCall, ToolResult
from dragoman.store import CallData, SessionToolStore, Toolset
from dragoman.tools.inject import CapturedCall

#: The header in which a client names its session, for dialects that have no field for it.
SESSION_HEADER = "x-dragoman-session"
_MAX_NAME_CHARACTERS = 512

CallStatus = Literal["open", "answered", "delivered"]


class SessionToolset(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of a session; `tool_config` is Google's toolConfig object."""

    tools: tuple[Tool, ...] = ()
    keep_client_tools: bool = True
    tool_config: dict[str, Any] | None = None


class SuspendedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that stopped at session calls.

    `record` is the encoded `HiddenRounds` of the answer so far, `key` the key of the place in the client's
    history that shows them, and `question` a key of the message that was answered.
    """

    key: str
    record: str
    question: str


class SessionCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A captured call.

    The calls of one answer share the `step`, which is the id of the first of them; only that one has
    `suspended`. `captured` is the call as the proxy recorded it.
    """

    id: str
    name: str
    args: dict[str, Any] = {}
    created_s: int = 0
    step: str = ""
    result: ToolResult | None = None
    delivered: bool = False  # the model has answered to the result
    suspended: SuspendedAnswer | None = None
    captured: CapturedCall | None = None

    @property
    def status(self) -> CallStatus:
        if self.result is None:
            return "open"
        return "delivered" if self.delivered else "answered"

    @classmethod
    def from_call(cls, call: ToolCall, **fields: Any) -> SessionCall:
        return cls(id=call.id, name=call.name, args=call.arguments, **fields)


class _Tools(msgspec.Struct, frozen=True, kw_only=True):
    tools: tuple[Tool, ...]
    keep_client_tools: bool


_decode_tools = msgspec.json.Decoder(_Tools).decode
_decode_call = msgspec.json.Decoder(SessionCall).decode
_decode_result = msgspec.json.Decoder(ToolResult).decode


def decode_toolset(stored: Toolset) -> SessionToolset:
    tools = _decode_tools(stored.tools or b'{"tools":[],"keep_client_tools":true}')
    config = msgspec.json.decode(stored.config or b"null")
    return SessionToolset(tools=tools.tools, keep_client_tools=tools.keep_client_tools, tool_config=config)


class ToolSession:
    """One session of one caller. All methods raise `StoreUnavailable` if the store fails."""

    def __init__(self, store: SessionToolStore, scope: str, name: str) -> None:
        self._store = store
        self._key = (scope, name)
        self.name = name

    async def get_toolset(self) -> SessionToolset | None:
        stored = await self._store.toolset(*self._key)
        return None if stored is None else decode_toolset(stored)

    async def set_toolset(self, toolset: SessionToolset) -> None:
        tools = msgspec.json.encode(_Tools(tools=toolset.tools, keep_client_tools=toolset.keep_client_tools))
        await self._store.set_config(*self._key, msgspec.json.encode(toolset.tool_config))
        await self._store.set_tools(*self._key, tools)

    async def clear(self) -> bool:
        return await self._store.clear(*self._key)

    async def add_calls(self, calls: Sequence[SessionCall]) -> None:
        """Store the calls of one answer as the newest ones."""
        await self._store.register_calls(*self._key, _entries(calls))

    async def calls(self) -> list[SessionCall]:
        """Return all captured calls, oldest first, with the results that have been posted."""
        calls = [_decode_call(data) for _, data in await self._store.calls(*self._key)]
        if all(call.result is not None for call in calls):
            return calls
        results = await self._store.results(*self._key)
        return [_with_result(call, results) for call in calls]

    async def add_results(self, results: Iterable[ToolResult]) -> None:
        entries = [(result.call_id, msgspec.json.encode(result)) for result in results]
        await self._store.add_results(*self._key, entries)

    async def merge_results(self, calls: Iterable[SessionCall]) -> None:
        """Move the posted results of these calls into the stored calls.

        The calls are written before the results are removed, so that a failure in between loses nothing.
        """
        answered = [call for call in calls if call.status == "answered"]
        if answered:
            await self._store.register_calls(*self._key, _entries(answered), last=False)
            await self._store.take_results(*self._key, [call.id for call in answered])

    async def mark_delivered(self, calls: Iterable[SessionCall]) -> None:
        """Mark calls as delivered, because the model has answered to their results."""
        answered = (call for call in calls if call.status == "answered")
        delivered = [msgspec.structs.replace(call, delivered=True) for call in answered]
        if delivered:
            await self._store.register_calls(*self._key, _entries(delivered), last=False)


def check_session_name(name: str) -> None:
    if not 0 < len(name) <= _MAX_NAME_CHARACTERS:
        raise InvalidRequest(f"a session's name has 1 to {_MAX_NAME_CHARACTERS} characters", where="session")


def group_steps(calls: Iterable[SessionCall]) -> list[list[SessionCall]]:
    """Group calls by the answer that made them, oldest first."""
    steps: dict[str, list[SessionCall]] = {}
    for call in calls:
        steps.setdefault(call.step, []).append(call)
    return list(steps.values())


def open_call_ids(calls: Iterable[SessionCall]) -> list[str]:
    return [call.id for call in calls if call.status == "open"]


def missing_results(session: str, calls: Sequence[SessionCall]) -> DragomanError:
    """Return the error for a request that continues before all results were posted."""
    waiting = ", ".join(f"{call.name} ({call.id})" for call in calls if call.status == "open")
    why = (
        f"the session {session!r} waits for the results of {waiting}; post them to its results and ask again"
    )
    return DragomanError(why, kind="conflict", code="calls_open", retry_after_s=1)


def _with_result(call: SessionCall, results: dict[str, bytes]) -> SessionCall:
    if call.result is not None or call.id not in results:
        return call
    return msgspec.structs.replace(call, result=_decode_result(results[call.id]))


def _entries(calls: Collection[SessionCall]) -> list[CallData]:
    return [(call.id, msgspec.json.encode(call)) for call in calls]
