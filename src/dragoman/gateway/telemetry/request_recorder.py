"""The recorder of one request: times and sizes always, bodies only if they are captured.

It collects what happens while the request runs, and builds the `RequestRecord` that observers get at its end.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from dragoman.dialects.base import Target
from dragoman.errors import DragomanError
from dragoman.gateway.gateway_tools.protocol import ToolOutcome
from dragoman.ir import Message, Text, ToolCall, ToolResult, Usage
from dragoman.notes import Note
from dragoman.observe.record import Attempt, ClientToolResult, RequestRecord, RequestStages, ToolRun
from dragoman.translation.exchange import Exchange, ResponseSummary

#: Request headers that a capture keeps, because they affect the translation; none contains credentials.
_CAPTURED_HEADERS = (
    "anthropic-beta",
    "anthropic-version",
    "content-type",
    "x-amz-target",
    "x-amzn-kiro-agent-mode",
    "x-claude-code-session-id",
    "x-dragoman-session",
)
_SECRET_QUERY_FIELDS = frozenset({"key"})
_MAX_PENDING_CALLS = 10_000
_NO_USAGE = Usage()

#: The summary of a request that was rejected before it was decoded.
_NO_SUMMARY = ResponseSummary()


class BodyCapture:
    """The captured bodies of one request: the client's, the upstream ones of each attempt, and the response.

    Each is cut after `max_bytes`; `cut` tells whether any was.
    """

    def __init__(self, max_bytes: int, headers: Mapping[str, str], query: Mapping[str, str]) -> None:
        self._max_bytes = max_bytes
        self._headers = {name: headers[name] for name in _CAPTURED_HEADERS if name in headers}
        self._query = {name: value for name, value in query.items() if name not in _SECRET_QUERY_FIELDS}
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

    def add_upstream_bytes(self, data: bytes) -> None:
        self.add(f"answer {self._attempts}", data)

    def stages(self) -> RequestStages:
        pairs = ((self._get(f"request {n}"), self._get(f"answer {n}")) for n in range(1, self._attempts + 1))
        return RequestStages(
            client_request=self._get("client request"),
            headers=self._headers,
            query=self._query,
            upstream=tuple(pairs),
            client_answer=self._get("client answer"),
            cut=self.cut,
        )

    def _get(self, stage: str) -> bytes:
        return b"".join(self._pieces.get(stage, ()))


class PendingToolCalls:
    """Tool calls that clients are running, with their start times.

    The result arrives with a later request, which may reach another process; then no duration is known.
    """

    def __init__(self, limit: int = _MAX_PENDING_CALLS) -> None:
        self._limit = limit
        self._started: dict[str, float] = {}

    def begin(self, call_ids: Iterable[str], now: float) -> None:
        for call_id in call_ids:
            self._started[call_id] = now
        while len(self._started) > self._limit:
            del self._started[next(iter(self._started))]

    def end(self, call_id: str, now: float) -> int | None:
        """Return the milliseconds since the call; None if it is unknown or has had its result before."""
        since = self._started.pop(call_id, None)
        return None if since is None else max(0, int((now - since) * 1000))


class RequestRecorder:
    """The recorder of one request. Call `end()` when the request is over, and `build_record()` for the record.

    `client` is the beginning of the User-Agent header, and `trace` the `traceparent` header; no argument may contain
    secrets. Durations are measured with the monotonic clock.
    """

    capture: BodyCapture | None = None
    dialect = ""
    caller = ""
    model = ""
    status = 0
    bytes_in = 0
    bytes_out = 0
    client_disconnected = False
    is_unrecorded = False  # not recorded: the dashboard's own requests, which would fill its list
    upstream_wait_s = 0.0  # time spent waiting for the upstream
    _attempt_started = 0.0  # start of the current attempt
    _first_byte = 0.0
    _attempts: tuple[Attempt, ...] = ()
    wasted_usage = _NO_USAGE  # tokens of failed attempts, which Google bills too
    _gateway_calls: tuple[str, ...] = ()
    _tool_runs: tuple[ToolRun, ...] = ()
    _exchange: Exchange | None = None
    _error = ""
    _ended = 0.0
    _request_fields = ("", "", False)  # session, model, stream
    _summary = _NO_SUMMARY
    _notes: tuple[Note, ...] = ()
    _results: tuple[ClientToolResult, ...] = ()

    def __init__(
        self,
        request_id: str,
        pending_tool_calls: PendingToolCalls,
        *,
        method: str,
        path: str,
        client: str = "",
        trace: str = "",
    ) -> None:
        self.id = request_id
        self._method = method
        self._path = path
        self._client = client
        self._trace = trace
        self._pending_tool_calls = pending_tool_calls
        self._started_s = time.time()
        self._started = time.monotonic()

    def on_request_body(self, body: bytes) -> None:
        """Record the client's whole body."""
        self.bytes_in = len(body)
        if self.capture is not None:
            self.capture.add("client request", body)

    def on_exchange(self, exchange: Exchange) -> None:
        """Set the exchange whose summary and notes are recorded."""
        self._exchange = exchange

    def on_attempt_start(self, body: bytes) -> None:
        """Record the start of an upstream attempt."""
        self._attempt_started = time.monotonic()
        if self._attempts and self._attempts[-1].error:
            self.wasted_usage = self.wasted_usage.plus(self._attempts[-1].usage)
        if self.capture is not None:
            self.capture.begin_attempt(body)

    def on_attempt_end(self, target: Target, key: str, status: int, error: DragomanError | None) -> None:
        """Record the end of an upstream attempt."""
        self.model = target.model
        exchange = self._exchange
        summary = exchange.summary if exchange is not None else _NO_SUMMARY
        attempt = Attempt(
            model=target.model,
            key=key,
            status=status,
            error=error.kind if error is not None else "",
            ms=int((time.monotonic() - self._attempt_started) * 1000),
            at_ms=self._since_start(self._attempt_started),
            answered_model=summary.model,
            stop=summary.stop,
            usage=exchange.attempt_usage if exchange is not None else _NO_USAGE,
        )
        self._attempts += (attempt,)

    def on_tool_start(self, names: list[str]) -> None:
        """Record the start of gateway tool calls."""
        self._gateway_calls += tuple(names)

    def on_tool_end(self, calls: Sequence[ToolCall], outcomes: Sequence[ToolOutcome]) -> None:
        """Record the outcomes of gateway tool calls."""
        for call, outcome in zip(calls, outcomes, strict=True):
            result = outcome.result
            run = ToolRun(
                name=call.name,
                failed=result is not None and result.is_error,
                later=outcome.is_external,
                size=_result_size(result) if result is not None else 0,
                ms=int((outcome.ended_s - outcome.began_s) * 1000),
                at_ms=self._since_start(outcome.began_s),
            )
            self._tool_runs += (run,)

    def on_error(self, error: DragomanError) -> None:
        self._error = error.kind

    def on_response_bytes(self, data: bytes) -> None:
        """Record bytes that are sent to the client."""
        if not self._first_byte:
            self._first_byte = time.monotonic()
        self.bytes_out += len(data)
        if self.capture is not None:
            self.capture.add("client answer", data)

    @property
    def is_streaming(self) -> bool:
        """Whether the response is a stream that has been opened."""
        return self._exchange is not None and self._exchange.request.stream and self._first_byte > 0

    @property
    def overhead_ms(self) -> float:
        """Milliseconds since the start without the time spent waiting for the upstream."""
        return (time.monotonic() - self._started - self.upstream_wait_s) * 1000

    @property
    def is_successful(self) -> bool:
        """Whether the request was answered completely and without an error."""
        return not self._error and not self.client_disconnected

    def end(self) -> None:
        """Stop the clock and release request and response, because `build_record()` may be called much later."""
        self._ended = now = time.monotonic()
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            request, summary = exchange.request, exchange.summary
            self._request_fields = (request.session, request.model, request.stream)
            self._summary, self._notes = summary, exchange.notes
            self._results = _tool_results(request.messages, self._pending_tool_calls, self._started)
            self._pending_tool_calls.begin(summary.call_ids, now)

    def build_record(self) -> tuple[RequestRecord, RequestStages | None]:
        """Return the record, and the captured bodies if there are any. Call `end()` first."""
        now, started, first_byte = self._ended, self._started, self._first_byte
        summary, (session, asked_model, stream) = self._summary, self._request_fields
        record = RequestRecord(
            id=self.id,
            started_s=self._started_s,
            method=self._method,
            path=self._path,
            client=self._client,
            dialect=self.dialect,
            caller=self.caller,
            session=session,
            asked_model=asked_model,
            model=self.model,
            answered_model=summary.model,
            stream=stream,
            status=self.status,
            error=self._error,
            stop=summary.stop,
            usage=summary.usage if self.wasted_usage is _NO_USAGE else summary.usage.plus(self.wasted_usage),
            notes=self._notes,
            calls=tuple(summary.calls),
            own_calls=self._gateway_calls,
            runs=self._tool_runs,
            results=self._results,
            attempts=self._attempts,
            first_byte_ms=int((first_byte - started) * 1000) if first_byte else 0,
            wait_ms=int(self.upstream_wait_s * 1000),
            total_ms=int((now - started) * 1000),
            overhead_us=max(0, int((now - started - self.upstream_wait_s) * 1_000_000)),
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            left=self.client_disconnected,
            trace=self._trace,
        )
        return record, self.capture.stages() if self.capture is not None else None

    def _since_start(self, moment: float) -> int:
        return max(0, int((moment - self._started) * 1000))


def _tool_results(
    messages: tuple[Message, ...], pending_calls: PendingToolCalls, now: float
) -> tuple[ClientToolResult, ...]:
    """Return the tool results in the last message; earlier ones were recorded with earlier requests."""
    last = messages[-1].parts if messages and messages[-1].role == "user" else ()
    results = [part for part in last if isinstance(part, ToolResult)]
    if not results:
        return ()
    before = messages[-3:-1]  # the calls are in one of the two messages before the results
    names = {part.id: part.name for message in before for part in message.parts if isinstance(part, ToolCall)}
    outcomes = [
        ClientToolResult(
            result.name or names.get(result.call_id, ""),
            result.is_error,
            _result_size(result),
            pending_calls.end(result.call_id, now),
        )
        for result in results
    ]
    return tuple(outcomes)


def _result_size(result: ToolResult) -> int:
    size = len(result.response)
    for part in result.content:
        size += len(part.text if isinstance(part, Text) else part.data)
    return size
