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

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NoReturn

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
from dragoman.facts import Settings
from dragoman.hearing import Hearing
from dragoman.ir import (
    Event,
    Message,
    Request,
    Sealed,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
    collect,
)
from dragoman.notes import Note
from dragoman.repair import NOTHING_TO_SIGN, TOLD, Signing, repair, tell_history
from dragoman.rounds import Rounds
from dragoman.sse import on_its_lines


class Exchange(Hearing):
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
        super().__init__(client, settings)
        self._framed: Callable[[bytes], bytes] = on_its_lines if client.stream_type == SSE_TYPE else bytes
        self.upstream = upstream
        self._new_token = new_token
        # Not a method of ours: the reader keeps it, and a circle would keep the request until it is collected.
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
        self._signing = NOTHING_TO_SIGN
        self.wanted = self._signing.wanted
        self.given: list[Event] = []  # of an answer that is collected
        self._given_before = 0  # in the rounds that are over

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
        del self.given[self._given_before :]
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
        if self._fields:
            rest += b"".join(map(self._give, self._fields.values()))
        if self.rounds is not None:
            self.memories += self.rounds.memory()
        rest += self._give(self.finished)
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
        out = self._tell((*opening, *events))
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
        """What the model said is heard first and told then; where there are rounds, which do both, event by event."""
        if not events:
            return b""
        if self.rounds is not None:
            heard = (one for event in events if (one := self._hear(event)) is not None)
            return b"".join(map(self._give, heard))
        return self._tell(self._hear_all(events))

    def _give(self, event: Event) -> bytes:
        return self._tell((event,) if self.rounds is None else self.rounds.give(event))

    def _tell(self, events: Collection[Event]) -> bytes:
        """In the client's stream, or when the answer is whole."""
        stream = self._stream
        if stream is None or self._keep:
            self.given += events
        if stream is None:
            return b""
        if len(events) == 1:  # nearly always
            (event,) = events
            return self._framed(stream.feed(event))
        return self._framed(b"".join(map(stream.feed, events)))


def _unasked() -> NoReturn:
    raise RuntimeError("encode comes before receive and finish")
