"""The receiving half of an `Exchange`: process the model's events and select those that the client gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dragoman.dialects.base import ClientDialect
from dragoman.errors import DragomanError
from dragoman.facts import Facts, Settings
from dragoman.ir import (
    ON_THOUGHT,
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
    ToolCall,
    Usage,
    seal,
)
from dragoman.mending import InvalidArguments, find_tool, mend_call
from dragoman.notes import Note
from dragoman.repair import last_user, text_key
from dragoman.rounds import Rounds


class Hearing:
    """Updates `facts`, `memories`, `finished` and `failure` from the events of an answer.

    A tool call is accepted only if its arguments are valid (or strict validation is off). After a failure all
    further events are ignored.
    """

    def __init__(self, client: ClientDialect, settings: Settings) -> None:
        self._client = client
        self._settings = settings
        self.request: Request = Request(model="", messages=())
        self.rounds: Rounds | None = None
        self._begin_round()

    def _begin_round(self) -> None:
        """Reset the state of the answer, for the first round, the next one, or another attempt."""
        self._text: list[TextDelta | Cited] = []  # the text since the last event of another kind
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
        """Process events and return those for the client."""
        # Fast path: nearly every chunk is a single piece of text.
        if len(events) == 1 and self.failure is None and isinstance(events[0], TextDelta):
            self._on_text(events[0])
            return events
        told: list[Event] = []
        for event in events:
            if self.failure is not None:
                break
            heard = _HEARS[type(event)](self, event)
            if heard is not None:
                told.append(heard)
        return told

    def _hear(self, event: Event) -> Event | None:
        """Process one event; return it, or its replacement, if the client gets it now."""
        return _HEARS[type(event)](self, event) if self.failure is None else None

    def _on_text(self, event: TextDelta | Cited) -> Event:
        self._text.append(event)
        self.has_content = True
        return event

    def _on_other(self, event: ThoughtDelta | ServerResult) -> Event:
        self._text = []
        return event

    def _on_usage(self, event: Usage) -> Event:
        self.facts.usage = event if self.rounds is None else self.rounds.usage.plus(event)
        return event

    def _on_started(self, event: Started) -> Event:
        self.facts.model, self.facts.response_id = event.model, event.response_id
        return event

    def _on_finished(self, event: Finished) -> None:
        """Store the end; `Exchange.finish` sends it to the client."""
        self.finished = event
        self.facts.stop = event.raw

    def _on_failed(self, event: Failed) -> None:
        self.failure = event.error

    def _on_signed(self, event: Signed) -> Event:
        """Store the signature of a text under the text's key; a thought's signature never signs the text before it
        (pain A2)."""
        if self._text and event.target != ON_THOUGHT:
            text = "".join([said.text for said in self._text])
            key = text_key(last_user(self.request.messages), text)
            self.memories.append((key, seal(event.signature, event.target)))
        return event

    def _on_server_call(self, call: ServerCall) -> Event:
        """Store the signature of a server-side tool call, because not every client can send it back."""
        self._text = []
        self.has_content = True
        if call.signature is not None:
            self.memories.append((call.id, seal(call.signature, call.id)))
        if call.kind not in self._client.server_kinds:
            why = f"{call.kind} was used; this dialect has no words for that"
            self._answer_notes.append(Note("dropped", "answer", why))
        return call

    def _on_native(self, native: Native) -> Event | None:
        """Pass Gemini-only content to Gemini clients; for other clients drop it with a note."""
        if not self._client.keeps_native:
            if not native.field:
                if self.rounds is not None:  # the next round must repeat it to the model
                    self.rounds.hear(native)
                why = "a part only Gemini's own clients can take"
                self._answer_notes.append(Note("dropped", "answer", why))
            return None
        if native.field:  # sent at the end, so that a failed attempt leaves nothing in the stream
            if native.field != "usageMetadata" or self.facts.rounds == 1:  # it covers a single round only
                self._fields[native.field] = native
            return None
        self.has_content = True
        return native

    def _on_tool_call(self, call: ToolCall) -> Event | None:
        if self.rounds is not None and self.rounds.takes(call.name, call.args):
            self.has_content = self.rounds.take(call) or self.has_content
            return None
        try:
            args = self._check_arguments(call)
        except InvalidArguments as error:
            self.failure = error
            return None
        self.has_content = True
        self._text = []
        self.facts.called(call.name, call.id)
        if call.signature is not None:
            self.memories.append((call.id, seal(call.signature, call.id)))
        return call if args is call.args else msgspec.structs.replace(call, args=args)

    def _check_arguments(self, call: ToolCall) -> bytes:
        """Return the repaired arguments. Raise `InvalidArguments` in strict mode if they are invalid."""
        tool = find_tool(self.request.tools, call.name)
        if tool is None and self.rounds is not None:
            tool = self.rounds.unseen(call.name)
        args, notes = mend_call(tool, call.args, strict=self._settings.strict_tool_validation)
        self._answer_notes += notes
        return args


#: The handler of each event type: returns the event for the client, or None. Every type of `Event` has an entry.
_HEARS: dict[type[Event], Callable[[Hearing, Any], Event | None]] = {
    Started: Hearing._on_started,
    TextDelta: Hearing._on_text,
    Cited: Hearing._on_text,
    ThoughtDelta: Hearing._on_other,
    Signed: Hearing._on_signed,
    ToolCall: Hearing._on_tool_call,
    ServerCall: Hearing._on_server_call,
    ServerResult: Hearing._on_other,
    Native: Hearing._on_native,
    Usage: Hearing._on_usage,
    Finished: Hearing._on_finished,
    Failed: Hearing._on_failed,
}
