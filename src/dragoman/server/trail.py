"""The trail of one request, noted as it happens: times and sizes always, bodies only where they are captured."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dragoman.dialects.base import Target
from dragoman.errors import DragomanError
from dragoman.exchange import Exchange
from dragoman.facts import Facts
from dragoman.ir import Message, Text, ToolCall, ToolResult, Usage
from dragoman.notes import Note
from dragoman.observe.record import Attempt, Record, Stages, ToolOutcome, ToolRun
from dragoman.rounds import Rounds
from dragoman.server.own import Outcome

#: What a client says of its wishes outside the body; nothing that opens a door.
_TELLING = (
    "anthropic-beta",
    "anthropic-version",
    "content-type",
    "x-amz-target",
    "x-amzn-kiro-agent-mode",
    "x-claude-code-session-id",
    "x-dragoman-session",
)
_DOORS = frozenset({"key"})
_CALLS_WAITED_FOR = 10_000
_NO_USAGE = Usage()

#: Of a request that was refused before it was understood.
_NO_FACTS = Facts()


class Capture:
    """Bodies up to so many bytes each."""

    def __init__(self, max_bytes: int, headers: Mapping[str, str], query: Mapping[str, str]) -> None:
        self._max_bytes = max_bytes
        self._headers = {name: headers[name] for name in _TELLING if name in headers}
        self._query = {name: value for name, value in query.items() if name not in _DOORS}
        self._left: dict[str, int] = {}
        self._pieces: dict[str, list[bytes]] = {}
        self._attempts = 0
        self.cut = False

    def add(self, stage: str, data: bytes) -> None:
        left = self._left.get(stage, self._max_bytes)
        self.cut = self.cut or len(data) > left
        if left and data:
            self._pieces.setdefault(stage, []).append(data[:left])
        self._left[stage] = max(0, left - len(data))

    def begin_attempt(self, body: bytes) -> None:
        self._attempts += 1
        self.add(f"request {self._attempts}", body)

    def hear(self, data: bytes) -> None:
        self.add(f"answer {self._attempts}", data)

    def stages(self) -> Stages:
        pairs = ((self._get(f"request {n}"), self._get(f"answer {n}")) for n in range(1, self._attempts + 1))
        return Stages(
            client_request=self._get("client request"),
            headers=self._headers,
            query=self._query,
            upstream=tuple(pairs),
            client_answer=self._get("client answer"),
            cut=self.cut,
        )

    def _get(self, stage: str) -> bytes:
        return b"".join(self._pieces.get(stage, ()))


class Waiting:
    """Calls that clients run, and since when: the result comes with another request, if it comes to this process."""

    def __init__(self, most: int = _CALLS_WAITED_FOR) -> None:
        self._most = most
        self._since: dict[str, float] = {}

    def begin(self, call_ids: Iterable[str], now: float) -> None:
        for call_id in call_ids:
            self._since[call_id] = now
        while len(self._since) > self._most:
            del self._since[next(iter(self._since))]

    def end(self, call_id: str, now: float) -> int | None:
        """How many milliseconds it took; a second result of the same call is none."""
        since = self._since.pop(call_id, None)
        return None if since is None else max(0, int((now - since) * 1000))


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """What is noted of a head, without secrets: the same for every request that has it."""

    method: str
    path: str
    client: str = ""  # the beginning of its User-Agent
    trace: str = ""  # its `traceparent`


class Trail:
    """Times are taken from one clock that never goes back."""

    capture: Capture | None = None
    dialect = ""
    caller = ""
    model = ""
    status = 0
    bytes_in = 0
    bytes_out = 0
    left = False
    quiet = False  # somebody looks at us: nothing to note, or watching would be all there is to watch
    waited_s = 0.0  # for Google
    _asked = 0.0  # when the attempt that runs began
    _first_byte = 0.0
    _attempts: tuple[Attempt, ...] = ()
    wasted = _NO_USAGE  # by attempts that came to nothing: Google counts them too
    _own_calls: tuple[str, ...] = ()
    _runs: tuple[ToolRun, ...] = ()
    _exchange: Exchange | None = None
    _error = ""
    _ended = 0.0
    _asked_for = ("", "", False)  # session, model, whether as a stream
    _facts = _NO_FACTS
    _notes: tuple[Note, ...] = ()
    _results: tuple[ToolOutcome, ...] = ()

    def __init__(self, request_id: str, noted: Noted, waiting: Waiting) -> None:
        self.id = request_id
        self._noted = noted
        self._waiting = waiting
        self._started_s = time.time()
        self._started = time.monotonic()

    def took(self, body: bytes) -> None:
        """The client's whole body."""
        self.bytes_in = len(body)
        if self.capture is not None:
            self.capture.add("client request", body)

    def follow(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def sent(self, body: bytes) -> None:
        """An attempt begins."""
        self._asked = time.monotonic()
        if self._attempts and self._attempts[-1].error:
            self.wasted = self.wasted.plus(self._attempts[-1].usage)
        if self.capture is not None:
            self.capture.begin_attempt(body)

    def attempted(self, target: Target, key: str, status: int, error: DragomanError | None) -> None:
        self.model = target.model
        exchange = self._exchange
        facts = exchange.facts if exchange is not None else _NO_FACTS
        attempt = Attempt(
            model=target.model,
            key=key,
            status=status,
            error=error.kind if error is not None else "",
            ms=int((time.monotonic() - self._asked) * 1000),
            at_ms=self._since_start(self._asked),
            answered_model=facts.model,
            stop=facts.stop,
            usage=facts.usage
            if exchange is None or exchange.rounds is None
            else _used(exchange.rounds, facts),
        )
        self._attempts += (attempt,)

    def ran(self, names: list[str]) -> None:
        """Tools of the gateway's own."""
        self._own_calls += tuple(names)

    def ended(self, calls: Sequence[ToolCall], outcomes: Sequence[Outcome]) -> None:
        """What came of them."""
        for call, outcome in zip(calls, outcomes, strict=True):
            result = outcome.result
            run = ToolRun(
                name=call.name,
                failed=result is not None and result.is_error,
                later=outcome.later,
                size=_size(result) if result is not None else 0,
                ms=int((outcome.ended_s - outcome.began_s) * 1000),
                at_ms=self._since_start(outcome.began_s),
            )
            self._runs += (run,)

    def failed(self, error: DragomanError) -> None:
        self._error = error.kind

    def gave(self, data: bytes) -> None:
        """Bytes for the client."""
        if not self._first_byte:
            self._first_byte = time.monotonic()
        self.bytes_out += len(data)
        if self.capture is not None:
            self.capture.add("client answer", data)

    @property
    def streams(self) -> bool:
        """An answer that has begun and goes on."""
        return self._exchange is not None and self._exchange.request.stream and self._first_byte > 0

    @property
    def overhead_ms(self) -> float:
        """Of the time until now, what was not waiting for Google."""
        return (time.monotonic() - self._started - self.waited_s) * 1000

    @property
    def is_usual(self) -> bool:
        """It was answered, to the end."""
        return not self._error and not self.left

    def end(self) -> None:
        """Now. What was asked and answered is let go of: whoever reads the trail may come later."""
        self._ended = now = time.monotonic()
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            request, facts = exchange.request, exchange.facts
            self._asked_for = (request.session, request.model, request.stream)
            self._facts, self._notes = facts, exchange.notes
            self._results = _results(request.messages, self._waiting, self._started)
            self._waiting.begin(facts.call_ids, now)

    def close(self) -> tuple[Record, Stages | None]:
        """Of a trail that has ended."""
        now, started, first_byte = self._ended, self._started, self._first_byte
        noted, facts, (session, asked_model, stream) = self._noted, self._facts, self._asked_for
        record = Record(
            id=self.id,
            started_s=self._started_s,
            method=noted.method,
            path=noted.path,
            client=noted.client,
            dialect=self.dialect,
            caller=self.caller,
            session=session,
            asked_model=asked_model,
            model=self.model,
            answered_model=facts.model,
            stream=stream,
            status=self.status,
            error=self._error,
            stop=facts.stop,
            usage=facts.usage if self.wasted is _NO_USAGE else facts.usage.plus(self.wasted),
            notes=self._notes,
            calls=tuple(facts.calls),
            own_calls=self._own_calls,
            runs=self._runs,
            results=self._results,
            attempts=self._attempts,
            first_byte_ms=int((first_byte - started) * 1000) if first_byte else 0,
            wait_ms=int(self.waited_s * 1000),
            total_ms=int((now - started) * 1000),
            overhead_us=max(0, int((now - started - self.waited_s) * 1_000_000)),
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            left=self.left,
            trace=noted.trace,
        )
        return record, self.capture.stages() if self.capture is not None else None

    def _since_start(self, moment: float) -> int:
        return max(0, int((moment - self._started) * 1000))


def _used(rounds: Rounds, facts: Facts) -> Usage:
    """Of this attempt alone: what came before it was counted before."""
    before = rounds.usage
    names = Usage.__struct_fields__
    return Usage(**{name: getattr(facts.usage, name) - getattr(before, name) for name in names})


def _results(messages: tuple[Message, ...], waiting: Waiting, now: float) -> tuple[ToolOutcome, ...]:
    """What came with the last turn; the others were told of before."""
    last = messages[-1].parts if messages and messages[-1].role == "user" else ()
    results = [part for part in last if isinstance(part, ToolResult)]
    if not results:
        return ()
    near = messages[-3:-1]  # who brings results calls nothing
    names = {part.id: part.name for message in near for part in message.parts if isinstance(part, ToolCall)}
    outcomes = [
        ToolOutcome(
            one.name or names.get(one.call_id, ""),
            one.is_error,
            _size(one),
            waiting.end(one.call_id, now),
        )
        for one in results
    ]
    return tuple(outcomes)


def _size(result: ToolResult) -> int:
    size = len(result.response)
    for part in result.content:
        size += len(part.text if isinstance(part, Text) else part.data)
    return size
