"""The stored state of session tools: their declarations, the captured calls, and the results."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal

import msgspec

from dragoman.errors import DragomanError, InvalidRequest
from dragoman.ir import Tool, ToolCall, ToolResult
from dragoman.store import Entry, SessionTools, Toolset
from dragoman.tools.inject import CapturedCall

#: The header in which a client names its session, for dialects that have no field for it.
SESSION_HEADER = "x-dragoman-session"
_LONGEST_NAME = 512

Status = Literal["open", "answered", "delivered"]


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of a session; `tool_config` is Google's toolConfig object."""

    tools: tuple[Tool, ...] = ()
    keep_client_tools: bool = True
    tool_config: dict[str, Any] | None = None


class Suspended(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that stopped at session calls.

    `record` is the encoded `Hidden` record of the real rounds, `key` the key of the place in the client's
    history that shows them, and `question` a key of the message that was answered.
    """

    key: str
    record: str
    question: str


class KeptCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    suspended: Suspended | None = None
    captured: CapturedCall | None = None

    @property
    def status(self) -> Status:
        if self.result is None:
            return "open"
        return "delivered" if self.delivered else "answered"

    @classmethod
    def of(cls, call: ToolCall, **more: Any) -> KeptCall:
        return cls(id=call.id, name=call.name, args=call.arguments, **more)


class _Tools(msgspec.Struct, frozen=True, kw_only=True):
    tools: tuple[Tool, ...]
    keep_client_tools: bool


_decode_tools = msgspec.json.Decoder(_Tools).decode
_decode_call = msgspec.json.Decoder(KeptCall).decode
_decode_result = msgspec.json.Decoder(ToolResult).decode


def read_toolset(found: Toolset) -> Held:
    kept = _decode_tools(found.tools or b'{"tools":[],"keep_client_tools":true}')
    config = msgspec.json.decode(found.config or b"null")
    return Held(tools=kept.tools, keep_client_tools=kept.keep_client_tools, tool_config=config)


class ToolSession:
    """One session of one caller. All methods raise `StoreUnavailable` if the store fails."""

    def __init__(self, store: SessionTools, scope: str, name: str) -> None:
        self._store = store
        self._where = (scope, name)
        self.name = name

    async def held(self) -> Held | None:
        found = await self._store.toolset(*self._where)
        return None if found is None else read_toolset(found)

    async def hold(self, held: Held) -> None:
        tools = msgspec.json.encode(_Tools(tools=held.tools, keep_client_tools=held.keep_client_tools))
        await self._store.set_config(*self._where, msgspec.json.encode(held.tool_config))
        await self._store.set_tools(*self._where, tools)

    async def forget(self) -> bool:
        return await self._store.clear(*self._where)

    async def capture(self, calls: Sequence[KeptCall]) -> None:
        """Store the calls of one answer as the newest ones."""
        await self._store.register_calls(*self._where, _entries(calls))

    async def calls(self) -> list[KeptCall]:
        """Return all captured calls, oldest first, with the results that have been posted."""
        calls = [_decode_call(data) for _, data in await self._store.calls(*self._where)]
        if all(call.result is not None for call in calls):
            return calls
        came = await self._store.results(*self._where)
        return [_answered(call, came) for call in calls]

    async def answer(self, results: Iterable[ToolResult]) -> None:
        entries = [(result.call_id, msgspec.json.encode(result)) for result in results]
        await self._store.add_results(*self._where, entries)

    async def take(self, calls: Iterable[KeptCall]) -> None:
        """Move the posted results of these calls into the stored calls.

        The calls are written before the results are removed, so that a failure in between loses nothing.
        """
        answered = [call for call in calls if call.status == "answered"]
        if answered:
            await self._store.register_calls(*self._where, _entries(answered), last=False)
            await self._store.take_results(*self._where, [call.id for call in answered])

    async def deliver(self, calls: Iterable[KeptCall]) -> None:
        """Mark calls as delivered, because the model has answered to their results."""
        answered = (call for call in calls if call.status == "answered")
        done = [msgspec.structs.replace(call, delivered=True) for call in answered]
        if done:
            await self._store.register_calls(*self._where, _entries(done), last=False)


def check_session_name(name: str) -> None:
    if not 0 < len(name) <= _LONGEST_NAME:
        raise InvalidRequest(f"a session's name has 1 to {_LONGEST_NAME} characters", where="session")


def steps_of(calls: Iterable[KeptCall]) -> list[list[KeptCall]]:
    """Group calls by the answer that made them, oldest first."""
    steps: dict[str, list[KeptCall]] = {}
    for call in calls:
        steps.setdefault(call.step, []).append(call)
    return list(steps.values())


def open_ids(calls: Iterable[KeptCall]) -> list[str]:
    return [call.id for call in calls if call.status == "open"]


def unanswered(session: str, calls: Sequence[KeptCall]) -> DragomanError:
    """Return the error for a request that continues before all results were posted."""
    waiting = ", ".join(f"{call.name} ({call.id})" for call in calls if call.status == "open")
    why = (
        f"the session {session!r} waits for the results of {waiting}; post them to its results and ask again"
    )
    return DragomanError(why, kind="conflict", code="calls_open", retry_after_s=1)


def _answered(call: KeptCall, came: dict[str, bytes]) -> KeptCall:
    if call.result is not None or call.id not in came:
        return call
    return msgspec.structs.replace(call, result=_decode_result(came[call.id]))


def _entries(calls: Collection[KeptCall]) -> list[Entry]:
    return [(call.id, msgspec.json.encode(call)) for call in calls]
