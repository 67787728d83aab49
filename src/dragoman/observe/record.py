"""The facts about a finished request, without text of the user; and its four stages if it is captured."""

from __future__ import annotations

from typing import Protocol

import msgspec

from dragoman.ir import Usage
from dragoman.notes import Note


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One request to Google.

    `key` is the name of the API key, not its secret. `error` is an error kind, empty on success.
    """

    model: str
    key: str = ""
    status: int = 0
    error: str = ""
    ms: int = 0
    at_ms: int = 0  # since the request began
    answered_model: str = ""  # the version that Google reports, for example for an alias
    stop: str = ""
    usage: Usage = Usage()


class RequestRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about one request.

    `model` is the model that was used, empty if there was no upstream request. `error` is an error kind.
    `wait_ms` is the time spent waiting for Google; the rest of `total_ms` is the gateway's own time and that
    of a client that reads slowly.
    """

    id: str
    started_s: float
    method: str
    path: str
    client: str  # the beginning of its User-Agent
    dialect: str = ""
    caller: str = ""  # a scope: distinguishes callers without naming them
    session: str = ""
    asked_model: str = ""
    model: str = ""
    answered_model: str = ""  # that of the last attempt
    stream: bool = False
    status: int = 0
    error: str = ""
    stop: str = ""
    usage: Usage = Usage()
    notes: tuple[Note, ...] = ()
    calls: tuple[str, ...] = ()  # the client's tools that the model called
    own_calls: tuple[str, ...] = ()  # tools that the gateway ran
    runs: tuple[ToolRun, ...] = ()  # their outcomes, as far as they have ended
    results: tuple[ClientToolResult, ...] = ()  # tool results that this request brought
    attempts: tuple[Attempt, ...] = ()
    first_byte_ms: int = 0
    wait_ms: int = 0
    total_ms: int = 0
    overhead_us: int = 0  # `total_ms` without `wait_ms`, in microseconds, as it is often below a millisecond
    bytes_in: int = 0
    bytes_out: int = 0
    left: bool = False  # the client disconnected before the end
    trace: str = ""  # the client's `traceparent`


class ClientToolResult(msgspec.Struct, frozen=True):
    """The result of a tool call that a client sent: the tool, whether it failed, and its size.

    `ms` is the time from the end of the answer with the call to the request with the result, if this process
    saw both.
    """

    name: str
    failed: bool
    size: int
    ms: int | None = None


class ToolRun(msgspec.Struct, frozen=True, kw_only=True):
    """One call that the gateway ran itself.

    `later` means that an external caller supplies its result in another request.
    """

    name: str
    failed: bool = False
    later: bool = False
    size: int = 0
    ms: int = 0
    at_ms: int = 0  # since the request began


class RequestStages(msgspec.Struct, frozen=True, kw_only=True):
    """The bodies of a request at each stage, cut at a limit; `upstream` has one pair per attempt."""

    client_request: bytes = b""
    headers: dict[str, str] = {}  # the client's headers that affect the translation
    query: dict[str, str] = {}
    upstream: tuple[tuple[bytes, bytes], ...] = ()
    client_answer: bytes = b""
    cut: bool = False


class Observer(Protocol):
    """Receives every finished request, on the event loop.

    `on_request_end` must return quickly; I/O belongs in a batch or a thread.
    """

    def on_request_end(self, record: RequestRecord, stages: RequestStages | None) -> None: ...

    async def close(self) -> None: ...
