"""Google's answer to events: the one place that understands a `GenerateContentResponse`.

A whole answer is a stream of one chunk.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dragoman.dialects.gemini.errors import decode_error_body
from dragoman.dialects.gemini.finish import stop_reason
from dragoman.dialects.gemini.frames import FrameDecoder
from dragoman.dialects.gemini.ids import client_id
from dragoman.dialects.gemini.partial import PartialArgs
from dragoman.dialects.gemini.wire import Candidate, Chunk, FunctionCall, Part, UsageMetadata, decode_chunk
from dragoman.errors import UpstreamCut, UpstreamError, UpstreamGarbage
from dragoman.ir import (
    AFTER_TEXT,
    ON_TEXT,
    ON_THOUGHT,
    CallDelta,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    Signature,
    Signed,
    Started,
    TextDelta,
    ThoughtDelta,
    Usage,
)
from dragoman.notes import Note
from dragoman.schema import NameMap


class GeminiStream:
    """`feed` bytes, get events in the order of `ir.events`; `close` always ends the stream.

    The end is told when the bytes end: usage and signatures may come behind the finish reason.
    """

    def __init__(
        self, names: NameMap, origin: str, new_id: Callable[[], str], *, single_call: bool = False
    ) -> None:
        self._names = names
        self._origin = origin
        self._new_id = new_id
        self._single_call = single_call
        self._frames = FrameDecoder()
        self._started = False
        self._over = False
        self._calls = 0
        self._partial: PartialArgs | None = None
        self._finish: Finished | None = None
        self.notes: list[Note] = []

    def feed(self, data: bytes) -> list[Event]:
        try:
            return self._read(self._frames.feed(data))
        except UpstreamError as error:
            return self._fail(error)

    def close(self) -> list[Event]:
        try:
            events = self._read(self._frames.close())
        except UpstreamError as error:
            return self._fail(error)
        if self._over:
            return events
        if self._finish is None:
            cut = UpstreamCut("the answer stopped before its end", kind="overloaded")
            return [*events, *self._fail(cut)]
        self._over = True
        return [*events, *self._end_partial(), self._finish]

    def _read(self, frames: list[bytes]) -> list[Event]:
        events: list[Event] = []
        for frame in frames:
            if self._over:
                break
            try:
                chunk = decode_chunk(frame)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                return [*events, *self._fail(_garbage(frame))]
            self._chunk(chunk, events)
        return events

    def _chunk(self, chunk: Chunk, events: list[Event]) -> None:
        if not self._started:
            self._started = True
            events.append(Started(chunk.model_version or "", chunk.response_id or ""))
        if bytes(chunk.error):
            events += self._fail(decode_error_body(0, bytes(b'{"error":%b}' % bytes(chunk.error))))
            return
        for candidate in chunk.candidates or ():
            if not candidate.index:
                self._candidate(candidate, events)
        feedback = chunk.prompt_feedback
        if feedback is not None and feedback.block_reason:
            detail = feedback.block_reason_message or f"the prompt was blocked: {feedback.block_reason}"
            self._finish = Finished(reason="blocked", raw=feedback.block_reason, detail=detail)
        if chunk.usage_metadata is not None and chunk.usage_metadata.prompt_token_count is not None:
            events.append(_usage(chunk.usage_metadata))

    def _candidate(self, candidate: Candidate, events: list[Event]) -> None:
        for part in (candidate.content.parts if candidate.content else None) or ():
            self._part(part, events)
        if candidate.finish_reason and candidate.finish_reason != "FINISH_REASON_UNSPECIFIED":
            raw = candidate.finish_reason
            reason = stop_reason(raw, has_calls=self._calls > 0)
            self._finish = Finished(reason=reason, raw=raw, detail=candidate.finish_message or "")

    def _part(self, part: Part, events: list[Event]) -> None:
        signature = Signature(part.thought_signature, self._origin) if part.thought_signature else None
        if part.function_call is not None:
            self._call(part.function_call, signature, events)
            return
        if part.thought:
            if part.text:
                events.append(ThoughtDelta(part.text))
            if signature:
                events.append(Signed(signature, ON_THOUGHT))
            return
        if part.text:
            events.append(TextDelta(part.text))
        if signature:
            events.append(Signed(signature, ON_TEXT if part.text else AFTER_TEXT))

    def _call(self, call: FunctionCall, signature: Signature | None, events: list[Event]) -> None:
        if call.name:
            events += self._end_partial()
            if self._single_call and self._calls:
                self.notes.append(Note("dropped", call.name, "the client takes one tool call at a time"))
                return
            self._calls += 1
            own = self._new_id()
            identity = client_id(own, call.id) if call.id else own
            name = self._names.from_wire(call.name)
            events.append(CallStarted(id=identity, name=name, signature=signature))
            self._partial = PartialArgs()
        if self._partial is None:
            return
        self._partial.feed(call.partial_args or [])
        if not call.will_continue:
            args = bytes(call.args)
            events += self._end_partial(args if args and args != b"null" else None)

    def _end_partial(self, args: bytes | None = None) -> list[Event]:
        if self._partial is None:
            return []
        whole = args or self._partial.close()
        self._partial = None
        return [CallDelta(whole), CallEnded()]

    def _fail(self, error: UpstreamError) -> list[Event]:
        if self._over:
            return []
        self._over = True
        return [Failed(error)]


def _usage(usage: UsageMetadata) -> Usage:
    thoughts = usage.thoughts_token_count or 0
    return Usage(
        input_tokens=(usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0),
        cached_tokens=usage.cached_content_token_count or 0,
        output_tokens=(usage.candidates_token_count or 0) + thoughts,
        thought_tokens=thoughts,
    )


def _garbage(frame: bytes) -> UpstreamError:
    """Not a response: perhaps an error in a list, perhaps a page of HTML."""
    error = decode_error_body(0, frame)
    if error.status:
        return error
    return UpstreamGarbage("the upstream sent something that is not a Gemini response", kind="internal")
