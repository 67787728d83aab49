"""One call in both directions without any I/O: a client's bytes to Google's and Google's back.

    exchange = Exchange(anthropic)
    exchange.decode(body)                      what the client wants; `.wanted` names what the store may know
    upstream_body = exchange.encode(target)    ready to send
    client_bytes = exchange.open()             (streams only) may leave at once
    client_bytes = exchange.receive(chunk)     for every chunk of the answer, sliced anyhow
    client_bytes = exchange.finish()           the rest; a whole answer comes all here

`encode` may be called again before any content was given out: for another attempt, model or back end.
With `keep` a streamed answer is collected too: `whole` gives it in one piece, as sessions store it. With a `scope`
what was `recalled` for one turn is not `wanted` again for the next one of the same scope.

Tools that the gateway runs itself are added with `offer`. Their calls never reach the client: an answer that was
received to its `end` may leave `own_calls`; `settle` takes their results, and while it `goes_on`, `encode` is next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, assert_never

import msgspec

from dragoman.counting import estimate_tokens
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
from dragoman.errors import DragomanError, UpstreamCut
from dragoman.facts import Facts, Settings
from dragoman.ir import (
    ON_THOUGHT,
    CallDelta,
    CallEnded,
    CallStarted,
    Cited,
    Event,
    Failed,
    Finished,
    Message,
    Native,
    Request,
    Sealed,
    ServerCall,
    ServerResult,
    Signed,
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
from dragoman.mending import InvalidArguments, find_tool, mend_call
from dragoman.notes import Note
from dragoman.repair import NOTHING_TO_SIGN, TOLD, Signing, last_user, repair, tell_history, text_key
from dragoman.rounds import Rounds
from dragoman.sse import on_its_lines


class Exchange:
    """See the module's docstring; `facts`, `notes` and `memories` grow as the call goes on."""

    def __init__(
        self,
        client: ClientDialect,
        upstream: UpstreamDialect = gemini,
        *,
        new_token: Callable[[], str],
        settings: Settings = Settings(),  # noqa: B008 (frozen)
        created_s: int = 0,
        elapsed_ms: Callable[[], int] = int,
        keep: bool = False,
        scope: str | None = None,
    ) -> None:
        self._client = client
        self._framed: Callable[[bytes], bytes] = on_its_lines if client.stream_type == SSE_TYPE else bytes
        self.upstream = upstream
        self._new_token = new_token
        # Not a method of ours: the reader keeps it, and a circle would keep the request until it is collected.
        self._new_call_id = lambda: f"{client.call_prefix}_{new_token()}"
        self._settings = settings
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
        self.request: Request = Request(model="", messages=())
        self._signing = NOTHING_TO_SIGN
        self.wanted = self._signing.wanted
        self.rounds: Rounds | None = None
        self.given: list[Event] = []  # of an answer that is collected
        self._given_before = 0  # in the rounds that are over
        self._begin_round()

    def _begin_round(self) -> None:
        """Nothing is known of the answer yet, or of its next round, nor of an earlier attempt at it."""
        del self.given[self._given_before :]
        self._call = CallStarted(id="", name="")
        self._args: list[bytes] = []
        self._text: list[str] = []
        self._answer_notes: list[Note] = []
        self._fields: dict[str, Native] = {}
        self.facts = Facts()
        if self.rounds is not None:
            self.rounds.begin()
            self.facts = Facts(usage=self.rounds.usage, rounds=self.rounds.number + 1)
        self.memories: list[tuple[str, str]] = []
        self.has_content = False
        self.finished: Finished | None = None
        self.failure: DragomanError | None = None

    @property
    def notes(self) -> tuple[Note, ...]:
        reader = self._reader.notes if self._reader is not None else ()
        ours = self.rounds.notes if self.rounds is not None else ()
        return (*self._decode_notes, *ours, *self._encode_notes, *self._answer_notes, *reader)

    def decode(self, body: bytes, headers: Headers | None = None) -> Request:
        decoded = self._client.decode_request(body, headers or {})
        request, notes = decoded.request, decoded.notes
        if (request.tools or request.server_tools) and not self._settings.enable_tool_calling:
            request = msgspec.structs.replace(request, tools=(), server_tools=())
            notes += (Note("dropped", "tools", "tool calling is switched off here"),)
        self.request, self._decode_notes = request, notes
        self._echo, self.headers = decoded.echo, decoded.headers
        self._signing = Signing(request.messages, self._scope)
        self.wanted = self._signing.wanted
        return request

    def revise(self, messages: tuple[Message, ...], notes: tuple[Note, ...]) -> None:
        """The same messages with other parts at the same places, and what there is to say about it."""
        if messages is not self.request.messages:
            self.request = msgspec.structs.replace(self.request, messages=messages)
            self._signing = Signing(messages)
            self.wanted = self._signing.wanted
        self._decode_notes += notes

    def offer(self, rounds: Rounds) -> None:
        """Tools that the gateway runs itself, for the request that was decoded."""
        self.rounds, self.request = rounds, rounds.request

    def encode(
        self, target: Target, recalled: Mapping[str, Sealed] | None = None, *, feedback: str = ""
    ) -> bytes:
        """The upstream body; `feedback` tells the model what was wrong with its last attempt."""
        request = self.request
        messages = self._signing.sign(recalled)
        if self.rounds is not None:
            self.request = self.rounds.request
            request = self.rounds.ask(messages)
            messages = request.messages
        messages, notes = repair(messages, ends_with_user=self.upstream.ends_with_user(target))
        if target.told_history:
            messages, notes = tell_history(messages), (*notes, TOLD)
        if feedback:
            messages += (Message(role="user", parts=(Text(text=feedback),)),)
        request = msgspec.structs.replace(request, messages=messages)
        encoded = self.upstream.encode_request(request, target, self._new_call_id)
        self._encode_notes = (*notes, *encoded.notes)
        self._reader = encoded.reader()
        self._context_tokens = self.upstream.context_tokens(target)
        self._begin_round()
        return encoded.body

    def encode_count(self, target: Target) -> bytes:
        messages, _ = repair(self.request.messages, ends_with_user=False)
        return self.upstream.encode_count(msgspec.structs.replace(self.request, messages=messages), target)

    def estimate(self) -> int:
        return estimate_tokens(self.request)

    def open(self) -> bytes:
        """The opening of a stream; nothing for a whole answer."""
        if not self.request.stream:
            return b""
        self._stream = self._client.stream(self._answer())
        return self._framed(self._stream.open())

    def ping(self) -> bytes:
        return self._stream.ping() if self._stream is not None else b""

    @property
    def has_finish(self) -> bool:
        return (self._reader or _unasked()).has_finish

    def receive(self, data: bytes) -> bytes:
        return self._take((self._reader or _unasked()).feed(data))

    def end(self) -> bytes:
        """The upstream closed: learn how it ended (`finished` or `failure`) without saying so yet."""
        if self.finished is not None or self.failure is not None:
            return b""
        return self._take((self._reader or _unasked()).close())

    def finish(self) -> bytes:
        rest = self.end()
        if self.finished is None:
            return rest + self.fail(self.failure or UpstreamCut("the answer has no end", kind="overloaded"))
        rest += self._framed(b"".join(map(self._give, self._fields.values())))
        if self.rounds is not None:
            self.memories += self.rounds.memory()
        rest += self._framed(self._give(self.finished))
        return rest if self._stream is not None else self.whole()

    @property
    def own_calls(self) -> tuple[ToolCall, ...]:
        """Calls of this round that the gateway must answer; none in an answer that broke off."""
        whole = self.finished is not None and self.finished.reason == "tool_calls" and self.failure is None
        return self.rounds.calls if self.rounds is not None and whole else ()

    @property
    def goes_on(self) -> bool:
        """Whether another round follows, which must be encoded now."""
        return self.rounds is not None and self.rounds.number >= self.facts.rounds

    def show(self, events: Sequence[Event]) -> bytes:
        """Something for the client that the model did not say; it stays, whatever becomes of this round."""
        opening = self.rounds.open(events, self._client.server_kinds) if self.rounds is not None else ()
        out = self._framed(b"".join(map(self._pass, (*opening, *events))))
        self._given_before = len(self.given)
        return out

    def settle(
        self,
        results: Sequence[ToolResult | None],
        *,
        reveal: Iterable[Tool] = (),
        enough: str = "",
        spent: Usage = Usage(),  # noqa: B008 (frozen)
    ) -> None:
        """The results of `own_calls` in their order (none: the client was asked something), the tools that are declared
        from now on, why it must be the last time, if it must, and what our tools used themselves."""
        if self.rounds is not None:
            self.facts.usage = self.facts.usage.plus(spent)
            self.rounds.settle(results, self.facts.usage, reveal=reveal, enough=enough, spent=spent)
            self.request = self.rounds.request
            self._given_before = len(self.given)

    def whole(self) -> bytes:
        """The finished answer in one piece, also for a stream if the exchange was told to `keep` it."""
        return self._client.encode_response(collect(self.given), self._answer())

    def fail(self, error: DragomanError) -> bytes:
        """The dialect's own error: an event in an open stream, a body otherwise."""
        stream = self._stream
        return self._client.encode_error(error).body if stream is None else self._framed(stream.fail(error))

    @property
    def answer_id(self) -> str:
        """The id the client will know the answer by."""
        self._answer_id = self._answer_id or f"{self._client.message_prefix}_{self._new_token()}"
        return self._answer_id

    def _answer(self) -> Answer:
        return Answer(
            id=self.answer_id,
            model=self.request.model,
            input_tokens=0 if self.facts.usage.input_tokens else self.estimate(),
            with_thinking=self.request.thinking.mode == "on",
            created_s=self._created_s,
            context_tokens=self._context_tokens,
            elapsed_ms=self._elapsed_ms,
            echo=self._echo,
        )

    def _take(self, events: list[Event]) -> bytes:
        out: list[bytes] = []
        give = self._pass if self.rounds is None else self._give
        if self._stream is not None and self.rounds is None and not self._keep:
            give = self._stream.feed  # the shortest way: for every chunk
        for event in events:
            if self.failure is not None:
                break
            match event:
                case TextDelta() | Cited():  # first, because there are most of them
                    self.has_content = True
                    self._text.append(event.text)
                    out.append(give(event))
                case CallStarted():
                    self._call, self._args = event, []
                case CallDelta():
                    self._args.append(event.json)
                case CallEnded():
                    out.append(self._give_call(self._call, b"".join(self._args)))
                case Finished():
                    self.finished = event
                    self.facts.stop = event.raw
                case Native():
                    out.append(self._give_native(event))
                case Failed():
                    self.failure = event.error
                case _:
                    self._learn(event)
                    out.append(give(event))
        return self._framed(b"".join(out))

    def _give(self, event: Event) -> bytes:
        if self.rounds is None:
            return self._pass(event)
        return b"".join(map(self._pass, self.rounds.give(event)))

    def _pass(self, event: Event) -> bytes:
        """As `_give`, without a round in between."""
        stream = self._stream
        if stream is None or self._keep:
            self.given.append(event)
        return stream.feed(event) if stream is not None else b""

    def _learn(self, event: ThoughtDelta | Signed | Usage | Started | ServerCall | ServerResult) -> None:
        match event:
            case ThoughtDelta() | ServerResult():
                self._text = []
            case ServerCall():
                self._learn_served(event)
            case Signed():
                # A thought's signature is no text's, even right behind one (pain A2).
                if self._text and event.target != ON_THOUGHT:
                    key = text_key(last_user(self.request.messages), "".join(self._text))
                    self.memories.append((key, seal(event.signature, event.target)))
            case Usage():
                self.facts.usage = event if self.rounds is None else self.rounds.usage.plus(event)
            case Started():
                self.facts.model, self.facts.response_id = event.model, event.response_id
            case _:
                assert_never(event)

    def _learn_served(self, call: ServerCall) -> None:
        """What a service wants back of a tool it ran is kept like a signature; a client may have no place for it."""
        self._text = []
        self.has_content = True
        if call.signature is not None:
            self.memories.append((call.id, seal(call.signature, call.id)))
        if call.kind not in self._client.server_kinds:
            why = f"{call.kind} was used; this dialect has no words for that"
            self._answer_notes.append(Note("dropped", "answer", why))

    def _give_native(self, native: Native) -> bytes:
        """For those who speak Gemini's own dialect; the others are told in a note."""
        if not self._client.keeps_native:
            if not native.field:
                if self.rounds is not None:  # the model is told what it said
                    self.rounds.hear(native)
                why = "a part only Gemini's own clients can take"
                self._answer_notes.append(Note("dropped", "answer", why))
            return b""
        if native.field:  # told at the end, so that nothing stays of an attempt that failed
            if native.field != "usageMetadata" or self.facts.rounds == 1:  # Google counts one round
                self._fields[native.field] = native
            return b""
        self.has_content = True
        return self._give(native)

    def _give_call(self, call: CallStarted, args: bytes) -> bytes:
        if self.rounds is not None and self.rounds.takes(call.name, args):
            self.has_content = self.rounds.take(call, args) or self.has_content
            return b""
        try:
            args = self._checked(call, args)
        except InvalidArguments as error:
            self.failure = error
            return b""
        self.has_content = True
        self._text = []
        self.facts.called(call.name, call.id)
        if call.signature is not None:
            self.memories.append((call.id, seal(call.signature, call.id)))
        return self._give(call) + self._give(CallDelta(args)) + self._give(CallEnded())

    def _checked(self, call: CallStarted, args: bytes) -> bytes:
        tool = find_tool(self.request.tools, call.name)
        if tool is None and self.rounds is not None:
            tool = self.rounds.unseen(call.name)
        args, notes = mend_call(tool, args, strict=self._settings.strict_tool_validation)
        self._answer_notes += notes
        return args


def _unasked() -> NoReturn:
    raise RuntimeError("encode comes before receive and finish")
