"""One call in both directions without any I/O: a client's bytes to Google's and Google's back.

    exchange = Exchange(anthropic)
    exchange.decode(body)                      what the client wants; `.wanted` names what the store may know
    upstream_body = exchange.encode(target)    ready to send
    client_bytes = exchange.open()             (streams only) may leave at once
    client_bytes = exchange.receive(chunk)     for every chunk of the answer, sliced anyhow
    client_bytes = exchange.finish()           the rest; a whole answer comes all here

`encode` may be called again before any content was given out: for another attempt, model or back end.
With `keep` a streamed answer is collected too: `whole` gives it in one piece, as sessions store it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, assert_never

import msgspec

from dragoman.counting import estimate_tokens
from dragoman.dialects import gemini
from dragoman.dialects.base import (
    SSE_TYPE,
    Answer,
    ClientDialect,
    ClientStream,
    Headers,
    Target,
    UpstreamDialect,
    UpstreamStream,
)
from dragoman.errors import DragomanError, UpstreamCut, UpstreamError
from dragoman.ir import (
    ON_THOUGHT,
    CallDelta,
    CallEnded,
    CallStarted,
    Collector,
    Event,
    Failed,
    Finished,
    Message,
    Native,
    Request,
    Sealed,
    Signed,
    Started,
    Text,
    TextDelta,
    ThoughtDelta,
    Usage,
)
from dragoman.notes import Note
from dragoman.repair import apply_signatures, last_user, repair, text_key, wanted_keys
from dragoman.schema import PLACEHOLDER, check_args, mend_args
from dragoman.sse import on_its_lines


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The switches that change a translation."""

    strict_tool_validation: bool = False
    enable_tool_calling: bool = True


class Facts(msgspec.Struct, kw_only=True):
    """What is known of the answer so far."""

    model: str = ""
    response_id: str = ""
    usage: Usage = Usage()
    calls: int = 0
    stop: str = ""


class InvalidArguments(UpstreamError):
    """The model's arguments do not fit the tool's schema, and strict mode forbids to pass them on."""


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
        keep: bool = False,
    ) -> None:
        self._client = client
        self.upstream = upstream
        self._new_token = new_token
        self._settings = settings
        self._created_s = created_s
        self._keep = keep
        self._echo: Any = None
        self._answer_id = ""
        self._stream: ClientStream | None = None
        self._reader: UpstreamStream | None = None
        self._decode_notes: tuple[Note, ...] = ()
        self._encode_notes: tuple[Note, ...] = ()
        self.request: Request = Request(model="", messages=())
        self.wanted: dict[str, tuple[int, int]] = {}
        self._begin_answer()

    def _begin_answer(self) -> None:
        """Nothing is known of an answer yet, nor of an earlier attempt at it."""
        self._collector = Collector()
        self._call = CallStarted(id="", name="")
        self._args: list[bytes] = []
        self._text: list[str] = []
        self._answer_notes: list[Note] = []
        self._fields: dict[str, Native] = {}
        self.facts = Facts()
        self.memories: list[tuple[str, str]] = []
        self.has_content = False
        self.finished: Finished | None = None
        self.failure: DragomanError | None = None

    @property
    def notes(self) -> tuple[Note, ...]:
        reader = self._reader.notes if self._reader is not None else ()
        return (*self._decode_notes, *self._encode_notes, *self._answer_notes, *reader)

    def decode(self, body: bytes, headers: Headers | None = None) -> Request:
        decoded = self._client.decode_request(body, headers or {})
        request = decoded.request
        notes = decoded.notes
        if request.tools and not self._settings.enable_tool_calling:
            request = msgspec.structs.replace(request, tools=())
            notes += (Note("dropped", "tools", "tool calling is switched off here"),)
        self.request, self._decode_notes, self._echo = request, notes, decoded.echo
        self.wanted = wanted_keys(request.messages)
        return request

    def encode(
        self, target: Target, recalled: Mapping[str, Sealed] | None = None, *, feedback: str = ""
    ) -> bytes:
        """The upstream body; `feedback` tells the model what was wrong with its last attempt."""
        signed = apply_signatures(self.request.messages, self.wanted, recalled or {})
        messages, notes = repair(signed, ends_with_user=self.upstream.ends_with_user(target))
        if feedback:
            messages += (Message(role="user", parts=(Text(text=feedback),)),)
        request = msgspec.structs.replace(self.request, messages=messages)
        encoded = self.upstream.encode_request(request, target, self._new_call_id)
        self._encode_notes = (*notes, *encoded.notes)
        self._reader = encoded.reader()
        self._begin_answer()
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

    def receive(self, data: bytes) -> bytes:
        return self._take(self._answer_reader().feed(data))

    def end(self) -> bytes:
        """The upstream closed: learn how it ended (`finished` or `failure`) without saying so yet."""
        if self.finished is not None or self.failure is not None:
            return b""
        return self._take(self._answer_reader().close())

    def finish(self) -> bytes:
        rest = self.end()
        if self.finished is None:
            return rest + self.fail(self.failure or UpstreamCut("the answer has no end", kind="overloaded"))
        for native in self._fields.values():
            rest += self._give(native)
        rest += self._give(self.finished)
        return rest if self._stream is not None else self.whole()

    def whole(self) -> bytes:
        """The finished answer in one piece, also for a stream if the exchange was told to `keep` it."""
        return self._client.encode_response(self._collector.close(), self._answer())

    def fail(self, error: DragomanError) -> bytes:
        """The dialect's own error: an event in an open stream, a body otherwise."""
        if self._stream is None:
            return self._client.encode_error(error).body
        return self._framed(self._stream.fail(error))

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
            echo=self._echo,
        )

    def _answer_reader(self) -> UpstreamStream:
        if self._reader is None:
            raise RuntimeError("encode comes before receive and finish")
        return self._reader

    def _new_call_id(self) -> str:
        return f"{self._client.call_prefix}_{self._new_token()}"

    def _take(self, events: list[Event]) -> bytes:
        out = b""
        for event in events:
            if self.failure is not None:
                break
            match event:
                case TextDelta():  # first, because there are most of them
                    self.has_content = True
                    self._text.append(event.text)
                    out += self._give(event)
                case Failed():
                    self.failure = event.error
                case Finished():
                    self.finished = event
                    self.facts.stop = event.raw
                case CallStarted():
                    self._call, self._args = event, []
                case CallDelta():
                    self._args.append(event.json)
                case CallEnded():
                    out += self._give_call(self._call, b"".join(self._args))
                case Native():
                    out += self._give_native(event)
                case _:
                    self._learn(event)
                    out += self._give(event)
        return out

    def _give(self, event: Event) -> bytes:
        if self._stream is None or self._keep:
            self._collector.feed(event)
        return self._framed(self._stream.feed(event)) if self._stream is not None else b""

    def _framed(self, data: bytes) -> bytes:
        return on_its_lines(data) if self._client.stream_type == SSE_TYPE else data

    def _learn(self, event: ThoughtDelta | Signed | Usage | Started) -> None:
        match event:
            case ThoughtDelta():
                self._text = []
            case Signed():
                # A thought's signature is no text's, even right behind one (pain A2).
                if self._text and event.target != ON_THOUGHT:
                    key = text_key(last_user(self.request.messages), "".join(self._text))
                    self._remember(key, Sealed(event.signature, event.target))
            case Usage():
                self.facts.usage = event
            case Started():
                self.facts.model, self.facts.response_id = event.model, event.response_id
            case _:
                assert_never(event)

    def _give_native(self, native: Native) -> bytes:
        """For those who speak Gemini's own dialect; the others are told in a note."""
        if not self._client.keeps_native:
            if not native.field:
                why = "a part only Gemini's own clients can take"
                self._answer_notes.append(Note("dropped", "answer", why))
            return b""
        if native.field:  # told at the end, so that nothing stays of an attempt that failed
            self._fields[native.field] = native
            return b""
        self.has_content = True
        return self._give(native)

    def _remember(self, key: str, sealed: Sealed) -> None:
        self.memories.append((key, sealed.seal()))

    def _give_call(self, call: CallStarted, args: bytes) -> bytes:
        try:
            args = self._checked(call, args)
        except InvalidArguments as error:
            self.failure = error
            return b""
        self.has_content = True
        self._text = []
        self.facts.calls += 1
        if call.signature is not None:
            self._remember(call.id, Sealed(call.signature, call.id))
        return b"".join(self._give(event) for event in (call, CallDelta(args), CallEnded()))

    def _checked(self, call: CallStarted, args: bytes) -> bytes:
        """Arguments against the tool's own schema: mended where that is safe, refused in strict mode."""
        tool = next((tool for tool in self.request.tools if tool.name == call.name), None)
        if tool is None:
            return args
        if self._settings.strict_tool_validation:
            if PLACEHOLDER.encode() in args:  # our own placeholder is no argument of the model's
                args, _ = mend_args(args, tool.schema, where=call.name)
            problems = check_args(args, tool.schema)
            if problems:
                why = f"the arguments of {call.name} do not fit its schema: {'; '.join(problems[:5])}"
                raise InvalidArguments(why, kind="overloaded")
            return args
        args, notes = mend_args(args, tool.schema, where=call.name)
        self._answer_notes += notes
        return args
