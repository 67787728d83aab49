"""What an answer's events tell the gateway itself, and which of them are for the client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard, assert_never

from dragoman.dialects.base import ClientDialect
from dragoman.errors import DragomanError
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
    Native,
    Request,
    ServerCall,
    ServerResult,
    Signed,
    Started,
    TextDelta,
    ThoughtDelta,
    Usage,
    seal,
)
from dragoman.mending import InvalidArguments, find_tool, mend_call
from dragoman.notes import Note
from dragoman.repair import last_user, text_key
from dragoman.rounds import Rounds

_NO_CALL = CallStarted(id="", name="")


class Hearing:
    """The half of an exchange that learns: `facts`, `memories`, how it `finished`, or its `failure`.

    A call is heard when it is whole and its arguments are right; behind a failure nothing is.
    """

    def __init__(self, client: ClientDialect, settings: Settings) -> None:
        self._client = client
        self._settings = settings
        self.request: Request = Request(model="", messages=())
        self.rounds: Rounds | None = None
        self._begin_round()

    def _begin_round(self) -> None:
        """Nothing is known of the answer yet, or of its next round, nor of an earlier attempt at it."""
        self._call = _NO_CALL
        self._args: list[bytes] = []
        self._text: list[TextDelta | Cited] = []  # behind the last thing that was no text
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

    def _hear_all(self, events: list[Event]) -> Sequence[Event]:
        """As `_hear`, of many."""
        if _is_text(events) and self.failure is None:  # nearly every chunk
            self._text += events
            self.has_content = self.has_content or bool(events)
            return events
        return [told for event in events for told in self._hear(event)]

    def _hear(self, event: Event) -> tuple[Event, ...]:
        """What an event means to us, and what of it is for the client now; nothing behind a failure.

        Not a `match`: its class patterns cost several times as much, and here is every event that is no plain text.
        """
        if self.failure is not None:
            return ()
        if isinstance(event, TextDelta):
            self._text.append(event)
            self.has_content = True
        elif isinstance(event, ThoughtDelta):
            self._text = []
        elif isinstance(event, CallStarted):
            self._call, self._args = event, []
            return ()
        elif isinstance(event, CallDelta):
            self._args.append(event.json)
            return ()
        elif isinstance(event, CallEnded):
            return self._hear_call(self._call, b"".join(self._args))
        else:
            return self._learn(event)
        return (event,)

    def _learn(
        self, event: Usage | Started | Finished | Signed | Native | Cited | ServerCall | ServerResult | Failed
    ) -> tuple[Event, ...]:
        match event:
            case Usage():
                self.facts.usage = event if self.rounds is None else self.rounds.usage.plus(event)
            case Started():
                self.facts.model, self.facts.response_id = event.model, event.response_id
            case Native():
                return self._hear_native(event)
            case Finished():  # told when the answer is finished
                self.finished = event
                self.facts.stop = event.raw
                return ()
            case Signed():
                # A thought's signature is no text's, even right behind one (pain A2).
                if self._text and event.target != ON_THOUGHT:
                    text = "".join([said.text for said in self._text])
                    key = text_key(last_user(self.request.messages), text)
                    self.memories.append((key, seal(event.signature, event.target)))
            case Cited():
                self._text.append(event)
                self.has_content = True
            case ServerCall():
                self._learn_served(event)
            case ServerResult():
                self._text = []
            case Failed():
                self.failure = event.error
                return ()
            case _:
                assert_never(event)
        return (event,)

    def _learn_served(self, call: ServerCall) -> None:
        """What a service wants back of a tool it ran is kept like a signature; a client may have no place for it."""
        self._text = []
        self.has_content = True
        if call.signature is not None:
            self.memories.append((call.id, seal(call.signature, call.id)))
        if call.kind not in self._client.server_kinds:
            why = f"{call.kind} was used; this dialect has no words for that"
            self._answer_notes.append(Note("dropped", "answer", why))

    def _hear_native(self, native: Native) -> tuple[Event, ...]:
        """For those who speak Gemini's own dialect; the others are told in a note."""
        if not self._client.keeps_native:
            if not native.field:
                if self.rounds is not None:  # the model is told what it said
                    self.rounds.hear(native)
                why = "a part only Gemini's own clients can take"
                self._answer_notes.append(Note("dropped", "answer", why))
            return ()
        if native.field:  # told at the end, so that nothing stays of an attempt that failed
            if native.field != "usageMetadata" or self.facts.rounds == 1:  # Google counts one round
                self._fields[native.field] = native
            return ()
        self.has_content = True
        return (native,)

    def _hear_call(self, call: CallStarted, args: bytes) -> tuple[Event, ...]:
        if self.rounds is not None and self.rounds.takes(call.name, args):
            self.has_content = self.rounds.take(call, args) or self.has_content
            return ()
        try:
            args = self._checked(call, args)
        except InvalidArguments as error:
            self.failure = error
            return ()
        self.has_content = True
        self._text = []
        self.facts.called(call.name, call.id)
        if call.signature is not None:
            self.memories.append((call.id, seal(call.signature, call.id)))
        return (call, CallDelta(args), CallEnded())

    def _checked(self, call: CallStarted, args: bytes) -> bytes:
        tool = find_tool(self.request.tools, call.name)
        if tool is None and self.rounds is not None:
            tool = self.rounds.unseen(call.name)
        args, notes = mend_call(tool, args, strict=self._settings.strict_tool_validation)
        self._answer_notes += notes
        return args


def _is_text(events: list[Event]) -> TypeGuard[list[TextDelta]]:
    for event in events:  # noqa: SIM110 (mostly there is one, and to make a generator takes longer)
        if not isinstance(event, TextDelta):
            return False
    return True
