"""The receiving half of an `Exchange`: process the model's events and select those that the client gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dragoman.dialects.base import ClientDialect
from dragoman.errors import DragomanError
from dragoman.facts import ResponseSummary, TranslationOptions
from dragoman.ir import (
    ON_THOUGHT,
    CitedText,
    Event,
    Failed,
    Finished,
    Native,
    Request,
    ServerCall,
    ServerResult,
    SignatureDelta,
    Started,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
    seal,
)
from dragoman.mending import InvalidArguments, find_tool, repair_call
from dragoman.notes import Note
from dragoman.repair import last_user_message, text_key
from dragoman.rounds import ToolLoop


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
        (pain A2)."""
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
