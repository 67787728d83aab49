"""Translate one request and its answer, without I/O: client bytes to Google's format, Google's bytes back.

    exchange = Exchange(anthropic, new_id=new_id)
    exchange.decode(body)                      parse the request; `missing_keys` lists the keys to look up in the store
    upstream_body = exchange.encode(target)    build the upstream request body
    client_bytes = exchange.open()             (streams only) bytes to send before the upstream answers
    client_bytes = exchange.receive(chunk)     translate a chunk of the upstream answer; any slicing is fine
    client_bytes = exchange.finish()           the remaining bytes; the whole body if the client does not stream

Call `encode` again to retry with another key, model or back end, as long as the client has received no content.

Gateway tools (tools that the gateway runs itself) are added with `add_tool_loop`. The client never sees calls to them.
After `end`, `gateway_calls` lists the calls to run and `add_results` takes their results; while
`needs_another_round` is true, call `encode` for the next round.

A caller that has a `Request` of its own and no client to translate for uses `encode_for_target` alone, and reads the
events of the answer from its decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NoReturn

import msgspec

from dragoman.dialects import gemini
from dragoman.dialects.base import (
    SSE_TYPE,
    Answer,
    ClientDialect,
    ClientStream,
    Encoded,
    HeaderList,
    Headers,
    Target,
    UpstreamDialect,
    UpstreamStream,
)
from dragoman.errors import DragomanError, UpstreamIncomplete
from dragoman.http.sse import escape_line_separators
from dragoman.ir import (
    ON_THOUGHT,
    CitedText,
    Event,
    Failed,
    Finished,
    Message,
    Native,
    Request,
    SealedSignature,
    ServerCall,
    ServerResult,
    SignatureDelta,
    Started,
    Text,
    TextDelta,
    ThoughtDelta,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
    collect,
    seal,
)
from dragoman.notes import Note
from dragoman.translation.argument_repair import InvalidArguments, find_tool, repair_call
from dragoman.translation.repair import (
    HISTORY_AS_TEXT,
    NO_SIGNATURES,
    SignatureRestorer,
    history_as_text,
    last_user_message,
    repair,
    text_key,
)
from dragoman.translation.token_estimate import estimate_tokens
from dragoman.translation.tool_loop import NO_USAGE, ToolLoop


class TranslationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options that change a translation."""

    strict_tool_validation: bool = False
    enable_tool_calling: bool = True


class ResponseSummary(msgspec.Struct, kw_only=True):
    """Summary of the answer received so far, for logs and metrics."""

    model: str = ""
    response_id: str = ""
    usage: Usage = NO_USAGE  # total of all rounds
    calls: list[str] = []  # names of the client's tools that were called
    call_ids: list[str] = []
    stop: str = ""  # the vendor's finish reason
    rounds: int = 1


def encode_for_target(
    upstream: UpstreamDialect,
    request: Request,
    target: Target,
    new_call_id: Callable[[], str],
    *,
    feedback: str = "",
) -> Encoded:
    """Repair the request's history as the target requires and encode the request.

    `feedback` is a message to the model that says what was wrong with its last attempt (known problem D2).
    """
    messages, notes = repair(request.messages, ends_with_user=upstream.ends_with_user(target))
    if target.history_as_text:
        messages, notes = history_as_text(messages), (*notes, HISTORY_AS_TEXT)
    if feedback:
        messages += (Message(role="user", parts=(Text(text=feedback),)),)
    request = msgspec.structs.replace(request, messages=messages)
    encoded = upstream.encode_request(request, target, new_call_id)
    return msgspec.structs.replace(encoded, notes=(*notes, *encoded.notes))


class Exchange:
    """One request and its answer; the module docstring shows the order of calls.

    `new_id` returns the random part of ids; `created_s` and `elapsed_ms` are the times that some dialects report. They
    are arguments so that a translation is a function of its input. With `keep_events` the events of a streamed answer
    are collected too, so that `whole_body` can return it in one piece for storage. With a `scope`, keys that were
    looked up for one turn are not missing again in the next turn of the same scope.

    `missing_keys` are the store keys of the thought signatures that the client did not send back although Gemini
    requires them (known problem A3, https://ai.google.dev/gemini-api/docs/thought-signatures).

    While the answer is received, `summary` and `notes` describe it, `store_entries` are key and value pairs to store
    before the client gets the bytes, and `has_content` says whether the model has produced anything. The answer ends
    with either `finished` or `failure`.
    """

    def __init__(
        self,
        client: ClientDialect,
        upstream: UpstreamDialect = gemini,
        *,
        new_id: Callable[[], str],
        options: TranslationOptions = TranslationOptions(),  # noqa: B008 (frozen)
        created_s: int = 0,
        elapsed_ms: Callable[[], int] = int,
        keep_events: bool = False,
        scope: str | None = None,
    ) -> None:
        self._client = client
        self.upstream = upstream
        self._new_id = new_id
        # Not a method: the decoder stores it, and a reference cycle would keep the request alive until the
        # garbage collector runs.
        self._new_call_id = lambda: f"{client.call_prefix}_{new_id()}"
        self._options = options
        self._created_s = created_s
        self._elapsed_ms = elapsed_ms
        self._keep_events = keep_events
        self._scope = scope
        self._escape_separators: Callable[[bytes], bytes] = (
            escape_line_separators if client.stream_type == SSE_TYPE else bytes
        )
        # The request.
        self.request: Request = Request(model="", messages=())
        self.headers: HeaderList = ()  # response headers that the client's dialect requires
        self.tool_loop: ToolLoop | None = None
        self._echo: Any = None
        self._signatures = NO_SIGNATURES
        self.missing_keys = self._signatures.missing_keys
        self._decode_notes: tuple[Note, ...] = ()
        # The current attempt.
        self._encode_notes: tuple[Note, ...] = ()
        self._decoder: UpstreamStream | None = None
        self._context_tokens = 0
        # The answer.
        self._answer_id = ""
        self._stream: ClientStream | None = None
        # Collected if the client does not stream, and with `keep_events`.
        self.client_events: list[Event] = []
        self._settled_events = 0  # how many of them a retry does not undo
        self._begin_round()

    def _begin_round(self) -> None:
        """Reset the state of the answer, for the first round, the next one, or another attempt."""
        self._text: list[TextDelta | CitedText] = []  # the text since the last event of another kind
        self._answer_notes: list[Note] = []
        self._native_fields: dict[str, Native] = {}
        self.attempt_usage = NO_USAGE  # without that of completed rounds
        self.summary = ResponseSummary()
        if self.tool_loop is not None:
            self.tool_loop.begin_round()
            self.summary.usage = self.tool_loop.usage
            self.summary.rounds = self.tool_loop.completed_rounds + 1
        self.store_entries: list[tuple[str, str]] = []
        self.has_content = False
        self.finished: Finished | None = None
        self.failure: DragomanError | None = None

    def decode(self, body: bytes, headers: Headers | None = None) -> Request:
        """Parse the client's request. Raise `InvalidRequest` if it is malformed."""
        decoded = self._client.decode_request(body, headers or {})
        request, notes = decoded.request, decoded.notes
        if (request.tools or request.server_tools) and not self._options.enable_tool_calling:
            request = msgspec.structs.replace(request, tools=(), server_tools=())
            notes += (Note("dropped", "tools", "tool calling is switched off here"),)
        self.request, self._decode_notes = request, notes
        self._echo, self.headers = decoded.echo, decoded.headers
        self._signatures = SignatureRestorer(request.messages, self._scope)
        self.missing_keys = self._signatures.missing_keys
        return request

    def replace_messages(self, messages: tuple[Message, ...], notes: tuple[Note, ...]) -> None:
        """Replace the messages by a revised version of them (inlined files, for example) and add its notes."""
        if messages is not self.request.messages:
            self.request = msgspec.structs.replace(self.request, messages=messages)
            self._signatures = SignatureRestorer(messages)
            self.missing_keys = self._signatures.missing_keys
        self._decode_notes += notes

    def add_tool_loop(self, tool_loop: ToolLoop) -> None:
        """Add gateway tools to the decoded request."""
        self.tool_loop, self.request = tool_loop, tool_loop.request

    def encode(
        self, target: Target, signatures: Mapping[str, SealedSignature] | None = None, *, feedback: str = ""
    ) -> bytes:
        """Return the upstream body and reset the state of the answer.

        `signatures` are the stored values of `missing_keys`, None if the store could not be read. `feedback` is a
        message to the model that says what was wrong with its last attempt.
        """
        request, messages = self.request, self._signatures.sign(signatures)
        if self.tool_loop is not None:
            self.request = self.tool_loop.request
            request = self.tool_loop.next_request(messages)
        else:
            request = msgspec.structs.replace(request, messages=messages)
        encoded = encode_for_target(self.upstream, request, target, self._new_call_id, feedback=feedback)
        self._encode_notes = encoded.notes
        self._decoder = encoded.reader()
        self._context_tokens = self.upstream.context_tokens(target)
        del self.client_events[self._settled_events :]
        self._begin_round()
        return encoded.body

    def encode_count(self, target: Target) -> bytes:
        """Return the body of a token counting request."""
        messages, _ = repair(self.request.messages, ends_with_user=False)
        return self.upstream.encode_count(msgspec.structs.replace(self.request, messages=messages), target)

    def estimate(self) -> int:
        """Return an estimate of the prompt's tokens."""
        return estimate_tokens(self.request)

    def open(self) -> bytes:
        """Open the client's stream and return its first bytes; empty if the client does not stream."""
        if not self.request.stream:
            return b""
        self._stream = self._client.stream(self._answer())
        return self._escape_separators(self._stream.open())

    def ping(self) -> bytes:
        """Return a keep-alive for an open stream: clients abort while Gemini thinks (known problem E4)."""
        return self._stream.ping() if self._stream is not None else b""

    def receive(self, data: bytes) -> bytes:
        """Translate a chunk of the upstream answer; return the bytes for the client, which may be empty."""
        return self._process((self._decoder or _not_encoded()).feed(data))

    @property
    def has_finish(self) -> bool:
        """Whether the upstream has sent its finish reason."""
        return (self._decoder or _not_encoded()).has_finish

    def end(self) -> bytes:
        """Process the end of the upstream answer: set `finished` or `failure`, but do not close the client's
        stream yet."""
        if self.finished is not None or self.failure is not None:
            return b""
        return self._process((self._decoder or _not_encoded()).close())

    @property
    def gateway_calls(self) -> tuple[ToolCall, ...]:
        """Calls of this round that the gateway must run; empty if the answer was cut off or failed."""
        complete = self.finished is not None and self.finished.reason == "tool_calls" and self.failure is None
        return self.tool_loop.calls if self.tool_loop is not None and complete else ()

    def send_events(self, events: Sequence[Event]) -> bytes:
        """Send events to the client that do not come from the model; a retry of the round does not undo them."""
        first: tuple[Event, ...] = ()
        if self.tool_loop is not None:
            first = self.tool_loop.opening_events(events, self._client.server_kinds)
        out = self._emit((*first, *events))
        self._settled_events = len(self.client_events)
        return out

    def add_results(
        self,
        results: Sequence[ToolResult | None],
        *,
        found_tools: Iterable[Tool] = (),
        stop_reason: str = "",
        tool_usage: Usage = NO_USAGE,
    ) -> None:
        """Add the results of `gateway_calls`, in the same order.

        A result is None if the call waits for the client. `found_tools` are declared from the next round on.
        `stop_reason`, if not empty, says why the next round must be the last. `tool_usage` are the tokens that the
        tools used themselves.
        """
        if self.tool_loop is None:
            return
        self.summary.usage = self.summary.usage.plus(tool_usage)
        self.tool_loop.add_results(
            results, found_tools=found_tools, stop_reason=stop_reason, tool_usage=tool_usage
        )
        self.request = self.tool_loop.request
        self._settled_events = len(self.client_events)

    @property
    def needs_another_round(self) -> bool:
        """Whether another round with the model follows; call `encode` for it."""
        return self.tool_loop is not None and self.tool_loop.completed_rounds >= self.summary.rounds

    def finish(self) -> bytes:
        """End the answer: return the end of the stream, the whole body, or the error if the answer failed."""
        rest = self.end()
        if self.finished is None:
            no_end = UpstreamIncomplete("the answer has no end", kind="overloaded")
            return rest + self.fail(self.failure or no_end)
        rest += b"".join(map(self._forward, self._native_fields.values()))
        if self.tool_loop is not None:
            self.store_entries += self.tool_loop.store_entries()
        rest += self._forward(self.finished)
        return rest if self._stream is not None else self.whole_body()

    def whole_body(self) -> bytes:
        """Return the finished answer as one body; for a stream only with `keep_events`."""
        return self._client.encode_response(collect(self.client_events), self._answer())

    def fail(self, error: DragomanError) -> bytes:
        """Encode an error for the client: an event if the stream is open, otherwise a body."""
        if self._stream is None:
            return self._client.encode_error(error).body
        return self._escape_separators(self._stream.fail(error))

    @property
    def notes(self) -> tuple[Note, ...]:
        """Everything that was dropped or changed, in both directions."""
        tool_loop = self.tool_loop.notes if self.tool_loop is not None else ()
        decoder = self._decoder.notes if self._decoder is not None else ()
        return (*self._decode_notes, *tool_loop, *self._encode_notes, *self._answer_notes, *decoder)

    @property
    def answer_id(self) -> str:
        """The id of the answer in the client's dialect; generated on first use."""
        self._answer_id = self._answer_id or f"{self._client.message_prefix}_{self._new_id()}"
        return self._answer_id

    def _answer(self) -> Answer:
        return Answer(
            id=self.answer_id,
            model=self.request.model,
            input_tokens=0 if self.summary.usage.input_tokens else self.estimate(),  # known problem H1
            with_thinking=self.request.thinking.mode == "on",
            created_s=self._created_s,
            context_tokens=self._context_tokens,
            elapsed_ms=self._elapsed_ms,
            echo=self._echo,
        )

    def _process(self, events: list[Event]) -> bytes:
        """Process events of the model and return the bytes for the client; ignore what follows a failure.

        Each event is forwarded before the next is processed, because both steps change the state of the tool loop.
        """
        out: list[bytes] = []
        for event in events:
            if self.failure is not None:
                break
            forwarded = _HANDLERS[type(event)](self, event)
            if forwarded is not None:
                out.append(self._forward(forwarded))
        return b"".join(out)

    def _forward(self, event: Event) -> bytes:
        return self._emit((event,) if self.tool_loop is None else self.tool_loop.forward(event))

    def _emit(self, events: Collection[Event]) -> bytes:
        """Encode events for the client's stream, or collect them for the whole answer."""
        stream = self._stream
        if stream is None or self._keep_events:
            self.client_events += events
        if stream is None:
            return b""
        return self._escape_separators(b"".join(map(stream.feed, events)))

    def _on_started(self, event: Started) -> Event:
        self.summary.model, self.summary.response_id = event.model, event.response_id
        return event

    def _on_text(self, event: TextDelta | CitedText) -> Event:
        self._text.append(event)
        self.has_content = True
        return event

    def _on_other(self, event: ThoughtDelta | ServerResult) -> Event:
        self._text = []
        return event

    def _on_signature(self, event: SignatureDelta) -> Event:
        """Store the signature of a text under the text's key, because a text has no id and few clients keep it.

        A thought's signature never signs the text before it (known problem A2).
        """
        if self._text and event.target != ON_THOUGHT:
            text = "".join([piece.text for piece in self._text])
            key = text_key(last_user_message(self.request.messages), text)
            self.store_entries.append((key, seal(event.signature, event.target)))
        return event

    def _on_tool_call(self, call: ToolCall) -> Event | None:
        """Hold back a gateway tool's call; forward the client's if its arguments are valid or could be repaired."""
        if self.tool_loop is not None and self.tool_loop.handles(call.name, call.args):
            self.has_content = self.tool_loop.accept_call(call) or self.has_content
            return None
        try:
            args = self._check_arguments(call)
        except InvalidArguments as error:
            self.failure = error
            return None
        self.has_content = True
        self._text = []
        self.summary.calls.append(call.name)
        self.summary.call_ids.append(call.id)
        self._store_signature(call)
        return call if args is call.args else msgspec.structs.replace(call, args=args)

    def _check_arguments(self, call: ToolCall) -> bytes:
        """Return the repaired arguments. Raise `InvalidArguments` in strict mode if they are invalid."""
        tool = find_tool(self.request.tools, call.name)
        if tool is None and self.tool_loop is not None:
            tool = self.tool_loop.undeclared_tool(call.name)
        args, notes = repair_call(tool, call.args, strict=self._options.strict_tool_validation)
        self._answer_notes += notes
        return args

    def _on_server_call(self, call: ServerCall) -> Event:
        self.has_content = True
        self._text = []
        self._store_signature(call)
        if call.kind not in self._client.server_kinds:
            why = f"{call.kind} was used; this dialect has no words for that"
            self._answer_notes.append(Note("dropped", "answer", why))
        return call

    def _store_signature(self, call: ToolCall | ServerCall) -> None:
        """Store a call's signature under the call's id: not every client can send it back (known problem A11)."""
        if call.signature is not None:
            self.store_entries.append((call.id, seal(call.signature, call.id)))

    def _on_native(self, native: Native) -> Event | None:
        """Pass Gemini-only content to Gemini clients; for other clients drop it with a note."""
        if not self._client.keeps_native:
            if not native.field:
                if self.tool_loop is not None:  # the next round must repeat it to the model
                    self.tool_loop.record_event(native)
                why = "a part only Gemini's own clients can take"
                self._answer_notes.append(Note("dropped", "answer", why))
            return None
        if native.field:  # sent at the end, so that a failed attempt leaves nothing in the stream
            if native.field != "usageMetadata" or self.summary.rounds == 1:  # it covers a single round only
                self._native_fields[native.field] = native
            return None
        self.has_content = True
        return native

    def _on_usage(self, event: Usage) -> Event:
        self.attempt_usage = event
        self.summary.usage = event if self.tool_loop is None else self.tool_loop.usage.plus(event)
        return event

    def _on_finished(self, event: Finished) -> None:
        """Store the end; `finish` sends it to the client."""
        self.finished = event
        self.summary.stop = event.raw

    def _on_failed(self, event: Failed) -> None:
        self.failure = event.error


#: The handler of each event type: returns the event for the client, or None. Every type of `Event` has an entry.
_HANDLERS: dict[type[Event], Callable[[Exchange, Any], Event | None]] = {
    Started: Exchange._on_started,
    TextDelta: Exchange._on_text,
    CitedText: Exchange._on_text,
    ThoughtDelta: Exchange._on_other,
    SignatureDelta: Exchange._on_signature,
    ToolCall: Exchange._on_tool_call,
    ServerCall: Exchange._on_server_call,
    ServerResult: Exchange._on_other,
    Native: Exchange._on_native,
    Usage: Exchange._on_usage,
    Finished: Exchange._on_finished,
    Failed: Exchange._on_failed,
}


def _not_encoded() -> NoReturn:
    raise RuntimeError("encode comes before receive and finish")
