"""What is known of one request when it is over: facts, never words of the user's; and, if captured, its four stages."""

from __future__ import annotations

from typing import Protocol

import msgspec

from dragoman.ir import Usage
from dragoman.notes import Note


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the upstream. `key` is a name, not a secret; `error` a kind, empty if it went well."""

    model: str
    key: str = ""
    status: int = 0
    error: str = ""
    ms: int = 0
    at_ms: int = 0  # since the request began
    answered_model: str = ""  # as Google names it: behind an alias stands a version
    stop: str = ""
    usage: Usage = Usage()


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """`model` is what really ran, empty where none was asked. `error` is a kind.

    `wait_ms` is what we waited for Google; what is left of `total_ms` is ours and the reader's.
    """

    id: str
    started_s: float
    method: str
    path: str
    client: str  # the beginning of its User-Agent
    dialect: str = ""
    caller: str = ""  # a scope: tells callers apart without naming them
    session: str = ""
    asked_model: str = ""
    model: str = ""
    answered_model: str = ""  # of the last attempt
    stream: bool = False
    status: int = 0
    error: str = ""
    stop: str = ""
    usage: Usage = Usage()
    notes: tuple[Note, ...] = ()
    calls: tuple[str, ...] = ()  # names of the client's tools that the model called
    own_calls: tuple[str, ...] = ()  # of tools that the gateway ran
    runs: tuple[ToolRun, ...] = ()  # what came of them, as far as they ended
    results: tuple[ToolOutcome, ...] = ()  # that came with this request
    attempts: tuple[Attempt, ...] = ()
    first_byte_ms: int = 0
    wait_ms: int = 0
    total_ms: int = 0
    overhead_us: int = 0  # the same rest, finer: it is often less than a millisecond
    bytes_in: int = 0
    bytes_out: int = 0
    left: bool = False  # the client went before the end
    trace: str = ""  # the client's `traceparent`


class ToolOutcome(msgspec.Struct, frozen=True):
    """What came back for a call of the model's: of which tool, whether it failed, how much it said.

    `ms` is the time from the end of the answer that called to the request that brought the result, if both were ours.
    """

    name: str
    failed: bool
    size: int
    ms: int | None = None


class ToolRun(msgspec.Struct, frozen=True, kw_only=True):
    """One call that the gateway ran itself. `later`: others answer it, with another request."""

    name: str
    failed: bool = False
    later: bool = False
    size: int = 0
    ms: int = 0
    at_ms: int = 0  # since the request began


class Stages(msgspec.Struct, frozen=True, kw_only=True):
    """The bodies of a request on its way, each cut at a limit: `upstream` has a pair for every attempt."""

    client_request: bytes = b""
    headers: dict[str, str] = {}  # of the client, as far as they say what it wants
    query: dict[str, str] = {}
    upstream: tuple[tuple[bytes, bytes], ...] = ()
    client_answer: bytes = b""
    cut: bool = False


class Observer(Protocol):
    """Told of every request, on the event loop: it notes and returns, and writes in batches elsewhere."""

    def finished(self, record: Record, stages: Stages | None) -> None: ...

    async def close(self) -> None: ...
