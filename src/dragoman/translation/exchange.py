"""Translate one request and its answer, without I/O: client bytes to Google's format, Google's bytes back.

    exchange = Exchange(anthropic, new_token=new_id)
    exchange.decode(body)                      parse the request; `.missing_keys` lists the keys to look up in the store
    upstream_body = exchange.encode(target)    build the upstream request body
    client_bytes = exchange.open()             (streams only) bytes to send before the upstream answers
    client_bytes = exchange.receive(chunk)     translate a chunk of the upstream answer; any slicing is fine
    client_bytes = exchange.finish()           the remaining bytes; the whole body if the client does not stream

Call `encode` again to retry with another key, model or back end, as long as the client has received no content.
With `keep` a streamed answer is also collected, so that `whole_body` can return it in one piece for session storage.
With a `scope`, keys that were looked up for one turn are not missing again in the next turn of the same scope.

Gateway tools (tools that the gateway runs itself) are added with `add_tool_loop`. The client never sees calls to them.
After `end`, `gateway_calls` lists the calls to run and `add_results` takes their results; while
`needs_another_round` is true, call `encode` for the next round.
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
from dragoman.translation.tool_loop import ToolLoop


class TranslationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options that change a translation."""

    strict_tool_validation: bool = False
    enable_tool_calling: bool = True


class ResponseSummary(msgspec.Struct, kw_only=True):
    """Summary of the answer received so far, for logs and metrics."""

    model: str = ""
    response_id: str = ""
    usage: Usage = Usage()  # total of all rounds
    calls: list[str] = []  # names of the client's tools that were called
    call_ids: list[str] = []
    stop: str = ""
    rounds: int = 1

    def add_call(self, name: str, call_id: str) -> None:
        self.calls.append(name)
        self.call_ids.append(call_id)


class _AnswerHandler:
    """Updates `facts`, `memories`, `finished` and `failure` from the events of an answer.

    A tool call is accepted only if its arguments are valid (or strict validation is off). After a failure all
    further events are ignored.
    """

    def __init__(self, client: ClientDialect, settings: TranslationOptions) -> None:
        self._client = client
        self._settings = settings
        self.request: Request = Request(model="", messages=())
        self.tool_loop: ToolLoop | None = None
        self._begin_round()

    def _begin_round(self) -> None:
        """Reset the state of the answer, for the first round, the next one, or another attempt."""
        self._text: list[TextDelta | CitedText] = []  # the text since the last event of another kind
        self._answer_notes: list[Note] = []
        self._fields: dict[str, Native] = {}
        self.summary = ResponseSummary()
        if self.tool_loop is not None:
            self.tool_loop.begin_round()
            self.summary = ResponseSummary(
                usage=self.tool_loop.usage, rounds=self.tool_loop.completed_rounds + 1
            )
        self.store_entries: list[tuple[str, str]] = []
        self.has_content = False
        self.finished: Finished | None = None
        self.failure: DragomanError | None = None

    def _handle_all(self, events: list[Event]) -> Sequence[Event]:
        """Process events and return those for the client."""
        # Fast path: nearly every chunk is a single piece of text.
        if len(events) == 1 and self.failure is None and isinstance(events[0], TextDelta):
            self._on_text(events[0])
            return events
        told: list[Event] = []
        for event in events:
            if self.failure is not None:
                break
            heard = _HANDLERS[type(event)](self, event)
            if heard is not None:
                told.append(heard)
        return told

    def _handle(self, event: Event) -> Event | None:
        """Process one event; return it, or its replacement, if the client gets it now."""
        return _HANDLERS[type(event)](self, event) if self.failure is None else None

    def _on_text(self, event: TextDelta | CitedText) -> Event:
        self._text.append(event)
        self.has_content = True
        return event

    def _on_other(self, event: ThoughtDelta | ServerResult) -> Event:
        self._text = []
        return event

    def _on_usage(self, event: Usage) -> Event:
        self.summary.usage = event if self.tool_loop is None else self.tool_loop.usage.plus(event)
        return event

    def _on_started(self, event: Started) -> Event:
        self.summary.model, self.summary.response_id = event.model, event.response_id
        return event

    def _on_finished(self, event: Finished) -> None:
        """Store the end; `Exchange.finish` sends it to the client."""
        self.finished = event
        self.summary.stop = event.raw

    def _on_failed(self, event: Failed) -> None:
        self.failure = event.error

    def _on_signed(self, event: SignatureDelta) -> Event:
        """Store the signature of a text under the text's key; a thought's signature never signs the text before it
        (known problem A2)."""
        if self._text and event.target != ON_THOUGHT:
            text = "".join([said.text for said in self._text])
            key = text_key(last_user_message(self.request.messages), text)
            self.store_entries.append((key, seal(event.signature, event.target)))
        return event

    def _on_server_call(self, call: ServerCall) -> Event:
        """Store the signature of a server-side tool call, because not every client can send it back."""
        self._text = []
        self.has_content = True
        if call.signature is not None:
            self.store_entries.append((call.id, seal(call.signature, call.id)))
        if call.kind not in self._client.server_kinds:
            why = f"{call.kind} was used; this dialect has no words for that"
            self._answer_notes.append(Note("dropped", "answer", why))
        return call

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
                self._fields[native.field] = native
            return None
        self.has_content = True
        return native

    def _on_tool_call(self, call: ToolCall) -> Event | None:
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
        self.summary.add_call(call.name, call.id)
        if call.signature is not None:
            self.store_entries.append((call.id, seal(call.signature, call.id)))
        return call if args is call.args else msgspec.structs.replace(call, args=args)

    def _check_arguments(self, call: ToolCall) -> bytes:
        """Return the repaired arguments. Raise `InvalidArguments` in strict mode if they are invalid."""
        tool = find_tool(self.request.tools, call.name)
        if tool is None and self.tool_loop is not None:
            tool = self.tool_loop.undeclared_tool(call.name)
        args, notes = repair_call(tool, call.args, strict=self._settings.strict_tool_validation)
        self._answer_notes += notes
        return args


#: The handler of each event type: returns the event for the client, or None. Every type of `Event` has an entry.
_HANDLERS: dict[type[Event], Callable[[_AnswerHandler, Any], Event | None]] = {
    Started: _AnswerHandler._on_started,
    TextDelta: _AnswerHandler._on_text,
    CitedText: _AnswerHandler._on_text,
    ThoughtDelta: _AnswerHandler._on_other,
    SignatureDelta: _AnswerHandler._on_signed,
    ToolCall: _AnswerHandler._on_tool_call,
    ServerCall: _AnswerHandler._on_server_call,
    ServerResult: _AnswerHandler._on_other,
    Native: _AnswerHandler._on_native,
    Usage: _AnswerHandler._on_usage,
    Finished: _AnswerHandler._on_finished,
    Failed: _AnswerHandler._on_failed,
}


class Exchange(_AnswerHandler):
    """One request and its answer; the module docstring shows the order of calls.

    `facts`, `notes` and `memories` (key and value pairs for the store) are filled while the answer is received.
    """

    def __init__(
        self,
        client: ClientDialect,
        upstream: UpstreamDialect = gemini,
        *,
        new_token: Callable[[], str],
        settings: TranslationOptions = TranslationOptions(),  # noqa: B008 (frozen)
        created_s: int = 0,
        elapsed_ms: Callable[[], int] = int,
        keep: bool = False,
        scope: str | None = None,
    ) -> None:
        super().__init__(client, settings)
        self._escape_separators: Callable[[bytes], bytes] = (
            escape_line_separators if client.stream_type == SSE_TYPE else bytes
        )
        self.upstream = upstream
        self._new_token = new_token
        # Not a method: the reader stores it, and a reference cycle would keep the request alive until the
        # garbage collector runs.
        self._new_call_id = lambda: f"{client.call_prefix}_{new_token()}"
        self._created_s = created_s
        self._elapsed_ms = elapsed_ms
        self._keep = keep
        self._scope = scope
        self._echo: Any = None
        self._context_tokens = 0
        self.headers: HeaderList = ()
        self._answer_id = ""
        self._stream: ClientStream | None = None
        self._reader: UpstreamStream | None = None
        self._decode_notes: tuple[Note, ...] = ()
        self._encode_notes: tuple[Note, ...] = ()
        self._signatures = NO_SIGNATURES
        self.missing_keys = self._signatures.missing_keys
        self.client_events: list[
            Event
        ] = []  # events for the client; filled for whole answers and with `keep`
        self._events_of_earlier_rounds = 0  # how many of them belong to completed rounds

    @property
    def notes(self) -> tuple[Note, ...]:
        """Everything that was dropped or changed, in both directions."""
        reader = self._reader.notes if self._reader is not None else ()
        ours = self.tool_loop.notes if self.tool_loop is not None else ()
        return (*self._decode_notes, *ours, *self._encode_notes, *self._answer_notes, *reader)

    def decode(self, body: bytes, headers: Headers | None = None) -> Request:
        """Parse the client's request. Raise `InvalidRequest` if it is malformed."""
        decoded = self._client.decode_request(body, headers or {})
        request, notes = decoded.request, decoded.notes
        if (request.tools or request.server_tools) and not self._settings.enable_tool_calling:
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

    def add_tool_loop(self, rounds: ToolLoop) -> None:
        """Add gateway tools to the decoded request."""
        self.tool_loop, self.request = rounds, rounds.request

    def encode(
        self, target: Target, recalled: Mapping[str, SealedSignature] | None = None, *, feedback: str = ""
    ) -> bytes:
        """Return the upstream body and reset the state of the answer.

        `recalled` are the stored signatures for `wanted`, None if the store could not be read. `feedback` is a
        message to the model that says what was wrong with its last attempt.
        """
        request = self.request
        messages = self._signatures.sign(recalled)
        if self.tool_loop is not None:
            self.request = self.tool_loop.request
            request = self.tool_loop.next_request(messages)
            messages = request.messages
        messages, notes = repair(messages, ends_with_user=self.upstream.ends_with_user(target))
        if target.history_as_text:
            messages, notes = history_as_text(messages), (*notes, HISTORY_AS_TEXT)
        if feedback:
            messages += (Message(role="user", parts=(Text(text=feedback),)),)
        request = msgspec.structs.replace(request, messages=messages)
        encoded = self.upstream.encode_request(request, target, self._new_call_id)
        self._encode_notes = (*notes, *encoded.notes)
        self._reader = encoded.reader()
        self._context_tokens = self.upstream.context_tokens(target)
        del self.client_events[self._events_of_earlier_rounds :]
        self._begin_round()
        return encoded.body

    def encode_count(self, target: Target) -> bytes:
        """Return the body of a token counting request."""
        messages, _ = repair(self.request.messages, ends_with_user=False)
        return self.upstream.encode_count(msgspec.structs.replace(self.request, messages=messages), target)

    def estimate(self) -> int:
        return estimate_tokens(self.request)

    def open(self) -> bytes:
        """Open the client's stream and return its first bytes; empty if the client does not stream."""
        if not self.request.stream:
            return b""
        self._stream = self._client.stream(self._answer())
        return self._escape_separators(self._stream.open())

    def ping(self) -> bytes:
        """Return a keep-alive for an open stream."""
        return self._stream.ping() if self._stream is not None else b""

    @property
    def has_finish(self) -> bool:
        """Whether the upstream has sent its finish reason."""
        return (self._reader or _not_encoded()).has_finish

    def receive(self, data: bytes) -> bytes:
        """Translate a chunk of the upstream answer; return the bytes for the client, which may be empty."""
        return self._accept((self._reader or _not_encoded()).feed(data))

    def end(self) -> bytes:
        """Process the end of the upstream answer: set `finished` or `failure`, but do not close the client's
        stream yet."""
        if self.finished is not None or self.failure is not None:
            return b""
        return self._accept((self._reader or _not_encoded()).close())

    def finish(self) -> bytes:
        """End the answer: return the end of the stream, the whole body, or the error if the answer failed."""
        rest = self.end()
        if self.finished is None:
            return rest + self.fail(
                self.failure or UpstreamIncomplete("the answer has no end", kind="overloaded")
            )
        if self._fields:
            rest += b"".join(map(self._forward, self._fields.values()))
        if self.tool_loop is not None:
            self.store_entries += self.tool_loop.store_entries()
        rest += self._forward(self.finished)
        return rest if self._stream is not None else self.whole_body()

    @property
    def gateway_calls(self) -> tuple[ToolCall, ...]:
        """Calls of this round that the gateway must run; empty if the answer was cut off or failed."""
        whole = self.finished is not None and self.finished.reason == "tool_calls" and self.failure is None
        return self.tool_loop.calls if self.tool_loop is not None and whole else ()

    @property
    def needs_another_round(self) -> bool:
        """Whether another round with the model follows; call `encode` for it."""
        return self.tool_loop is not None and self.tool_loop.completed_rounds >= self.summary.rounds

    def send_events(self, events: Sequence[Event]) -> bytes:
        """Send events to the client that do not come from the model; a retry of the round does not undo them."""
        opening = (
            self.tool_loop.opening_events(events, self._client.server_kinds)
            if self.tool_loop is not None
            else ()
        )
        out = self._emit((*opening, *events))
        self._events_of_earlier_rounds = len(self.client_events)
        return out

    def add_results(
        self,
        results: Sequence[ToolResult | None],
        *,
        reveal: Iterable[Tool] = (),
        enough: str = "",
        spent: Usage = Usage(),  # noqa: B008 (frozen)
    ) -> None:
        """Add the results of `own_calls`, in the same order.

        A result is None if the call waits for the client. `reveal` are tools to declare from the next round on.
        `enough`, if not empty, is the reason why the next round is the last. `spent` are the tokens that the
        tools used themselves.
        """
        if self.tool_loop is not None:
            self.summary.usage = self.summary.usage.plus(spent)
            self.tool_loop.add_results(results, self.summary.usage, reveal=reveal, enough=enough, spent=spent)
            self.request = self.tool_loop.request
            self._events_of_earlier_rounds = len(self.client_events)

    def whole_body(self) -> bytes:
        """Return the finished answer as one body; for a stream only with `keep`."""
        return self._client.encode_response(collect(self.client_events), self._answer())

    def fail(self, error: DragomanError) -> bytes:
        """Encode an error for the client: an event if the stream is open, otherwise a body."""
        stream = self._stream
        return (
            self._client.encode_error(error).body
            if stream is None
            else self._escape_separators(stream.fail(error))
        )

    @property
    def answer_id(self) -> str:
        """The id of the answer in the client's dialect; generated on first use."""
        self._answer_id = self._answer_id or f"{self._client.message_prefix}_{self._new_token()}"
        return self._answer_id

    def _answer(self) -> Answer:
        return Answer(
            id=self.answer_id,
            model=self.request.model,
            input_tokens=0 if self.summary.usage.input_tokens else self.estimate(),
            with_thinking=self.request.thinking.mode == "on",
            created_s=self._created_s,
            context_tokens=self._context_tokens,
            elapsed_ms=self._elapsed_ms,
            echo=self._echo,
        )

    def _accept(self, events: list[Event]) -> bytes:
        """Process events of the model and return the bytes for the client.

        With gateway tools each event is forwarded before the next is processed, because both steps change the
        state of the round.
        """
        if not events:
            return b""
        if self.tool_loop is not None:
            heard = (one for event in events if (one := self._handle(event)) is not None)
            return b"".join(map(self._forward, heard))
        return self._emit(self._handle_all(events))

    def _forward(self, event: Event) -> bytes:
        return self._emit((event,) if self.tool_loop is None else self.tool_loop.forward(event))

    def _emit(self, events: Collection[Event]) -> bytes:
        """Encode events for the client's stream, or collect them for the whole answer."""
        stream = self._stream
        if stream is None or self._keep:
            self.client_events += events
        if stream is None:
            return b""
        if len(events) == 1:  # the common case
            (event,) = events
            return self._escape_separators(stream.feed(event))
        return self._escape_separators(b"".join(map(stream.feed, events)))


def _not_encoded() -> NoReturn:
    raise RuntimeError("encode comes before receive and finish")
