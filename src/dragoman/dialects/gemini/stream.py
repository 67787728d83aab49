"""Google's answer to events: the one place that understands a `GenerateContentResponse`.

A whole answer is a stream of one chunk.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec

from dragoman.dialects.gemini.errors import decode_error_body
from dragoman.dialects.gemini.finish import stop_reason
from dragoman.dialects.gemini.frames import FrameDecoder, Frames
from dragoman.dialects.gemini.ids import client_id
from dragoman.dialects.gemini.partial import PartialArgs
from dragoman.dialects.gemini.wire import (
    NATIVE_FIELDS,
    NATIVE_PARTS,
    NOTHING,
    Candidate,
    Chunk,
    FunctionCall,
    Part,
    decode_chunk,
    decode_feedback,
)
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
    Native,
    Signature,
    Signed,
    Started,
    TextDelta,
    ThoughtDelta,
    Usage,
)
from dragoman.notes import Note
from dragoman.schema import NameMap

_NULL = b"null"

_COUNTED = (
    "promptTokenCount",
    "toolUsePromptTokenCount",
    "cachedContentTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
)
#: What `Usage` and the totals tell already; anything else of the counts is for Gemini's own clients.
_TOLD = frozenset(
    {
        "promptTokenCount",
        "cachedContentTokenCount",
        "candidatesTokenCount",
        "thoughtsTokenCount",
        "totalTokenCount",
    }
)
_MAX_SNAPSHOTS = 1_000
_DIGITS = 18
_ANY_NUMBER = bytes.maketrans(b"123456789", b"000000000")
_NO_SHAPE = b"-"  # no JSON
_NUMBERED = re.compile(rb'[A-Za-z_"]\d')  # a name or a text with a digit in it, which is no number
_decode_counts = msgspec.json.Decoder(dict[str, Any] | None).decode
_decode_args = msgspec.json.Decoder(dict[str, Any]).decode
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode

#: All of a part that may be native, in one look.
_parts_of = attrgetter(*NATIVE_PARTS)
_NO_PARTS = (NOTHING,) * len(NATIVE_PARTS)


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
        self._framing = FrameDecoder()
        self._frames: Frames = self._framing
        self._started = False
        self._over = False
        self._calls = 0
        self._open: OpenCall | None = None
        self._made: set[tuple[str, bytes]] = set()  # calls by Google's own ids
        self._snapshots: dict[bytes, bytes] = {}  # of the counts, by their shapes
        self._shape = _NO_SHAPE  # of the last one, if another can have it too
        self._counts: dict[str, Any] = {}
        self._finish: Finished | None = None
        self.has_finish = False
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
        return [*events, *self._end(self._finish)]

    def _read(self, frames: list[bytes]) -> list[Event]:
        events: list[Event] = []
        frame = b""
        try:
            for frame in () if self._over else frames:
                self._chunk(decode_chunk(frame), events)
        except UpstreamError as error:
            events += self._fail(error)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            events += self._fail(_garbage(frame))
        return events

    def _chunk(self, chunk: Chunk, events: list[Event]) -> None:
        if not self._started:
            self._started = True
            self._frames = self._framing.settled()
            events.append(Started(chunk.model_version or "", chunk.response_id or ""))
        if chunk.error is not NOTHING and bytes(chunk.error) != _NULL:
            raise decode_error_body(0, b'{"error":%b}' % bytes(chunk.error))
        for candidate in chunk.candidates or ():
            if not candidate.index:
                self._candidate(candidate, events)
        if chunk.prompt_feedback is not NOTHING:
            self._feedback(bytes(chunk.prompt_feedback), events)
        counts = bytes(chunk.usage_metadata)
        shape = counts.translate(_ANY_NUMBER)
        if shape == self._shape:
            self._snapshots[self._shape] = counts  # its hash is known
        elif counts:
            self._reshape(shape, counts)

    def _feedback(self, raw: bytes, events: list[Event]) -> None:
        feedback = decode_feedback(raw)
        if feedback is not None and feedback.block_reason:
            events.append(_native(raw, "promptFeedback"))
            detail = feedback.block_reason_message or f"the prompt was blocked: {feedback.block_reason}"
            self._finish = Finished(reason="blocked", raw=feedback.block_reason, detail=detail)
            self.has_finish = True

    def _candidate(self, candidate: Candidate, events: list[Event]) -> None:
        for part in (candidate.content.parts if candidate.content else None) or ():
            if part.text and not (part.thought or part.thought_signature or part.function_call):
                events.append(TextDelta(part.text))  # nearly every part of a stream
            else:
                self._part(part, events)
        if candidate.has_native():
            fields = ((field, getattr(candidate, name)) for name, field in NATIVE_FIELDS.items())
            events += [_native(found, field) for field, found in fields if found is not NOTHING]
        raw = candidate.finish_reason
        if raw and raw != "FINISH_REASON_UNSPECIFIED":
            reason = stop_reason(raw, has_calls=False)
            self._finish = Finished(reason=reason, raw=raw, detail=candidate.finish_message or "")
            self.has_finish = True

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
        if _parts_of(part) != _NO_PARTS:
            events.append(_native_part(part))
            return
        if part.text:
            events.append(TextDelta(part.text))
        if signature:
            events.append(Signed(signature, ON_TEXT if part.text else AFTER_TEXT))

    def _call(self, call: FunctionCall, signature: Signature | None, events: list[Event]) -> None:
        """A call is told when it is whole: text and usage may come while its arguments stream."""
        args = bytes(call.args)
        if call.name and not (call.id and self._open is not None and self._open.upstream == call.id):
            events += self._end_call()
            if self._single_call and self._calls:
                self.notes.append(Note("dropped", call.name, "the client takes one tool call at a time"))
                return
            self._calls += 1
            own = self._new_id()
            identity = client_id(own, call.id) if call.id else own
            name = self._names.from_wire(call.name)
            self._open = OpenCall(identity, name, PartialArgs(), upstream=call.id or "")
        if self._open is None:
            if args:
                raise UpstreamGarbage("the upstream sent a function call without a name", kind="overloaded")
            return
        self._open.signature = self._open.signature or signature
        if call.partial_args:
            self._open.partial.feed(call.partial_args)
        if not call.will_continue:
            events += self._end_call(args if args != _NULL else b"")

    def _end_call(self, args: bytes = b"") -> list[Event]:
        """A call that comes again, id and all, is one that a proxy has repeated: it is made once."""
        call, self._open = self._open, None
        if call is None:
            return []
        whole = call.whole(args)
        if call.upstream:
            told = call.upstream, _encode_sorted((call.name, whole))
            if told in self._made:
                self.notes.append(Note("dropped", call.name, "the upstream told this call twice"))
                return []
            self._made.add(told)
        return call.events(args)

    def _end(self, finish: Finished) -> list[Event]:
        """Only STOP ends a call that is still open; what a limit cut is not passed on as whole (pain D4)."""
        if finish.reason != "end":
            if self._open is not None:
                self.notes.append(Note("dropped", self._open.name, f"cut off by {finish.raw}"))
            return [*self._usage(), finish]
        calls = self._end_call()
        reason = stop_reason(finish.raw, has_calls=self._calls > 0)
        return [*calls, *self._usage(), msgspec.structs.replace(finish, reason=reason)]

    def _reshape(self, shape: bytes, counts: bytes) -> None:
        """Counts that do not only differ in their numbers from the last ones; those are read that no later one repeats.

        Few of hundreds, and reading is dear.
        """
        numbered = _NUMBERED.search(shape)
        self._shape, key = (_NO_SHAPE, counts) if numbered else (shape, shape)
        self._snapshots.pop(key, None)  # it stands behind the others now
        self._snapshots[key] = counts
        if len(self._snapshots) > _MAX_SNAPSHOTS:
            self._count()

    def _count(self) -> None:
        """Any count may be absent from a chunk; what was said before still holds. An odd one costs no answer."""
        for counts in self._snapshots.values():
            self._counts |= _read_counts(counts)
        self._snapshots = {}

    def _usage(self) -> list[Event]:
        """Told once, at the end: every chunk repeats the counts so far."""
        self._count()
        if not self._counts:
            return []
        prompt, from_tools, cached, written, thought = map(_number, map(self._counts.get, _COUNTED))
        usage = Usage(
            input_tokens=prompt + from_tools,
            cached_tokens=cached,
            output_tokens=written + thought,
            thought_tokens=thought,
        )
        if self._counts.keys() <= _TOLD:
            return [usage]
        return [Native(json=msgspec.json.encode(self._counts), field="usageMetadata"), usage]

    def _fail(self, error: UpstreamError) -> list[Event]:
        if self._over:
            return []
        self._over = True
        # Its frames hold the list that it goes into.
        return [*self._usage(), Failed(error.with_traceback(None))]


class OpenCall(msgspec.Struct):
    """A call whose arguments may still be coming."""

    id: str
    name: str
    partial: PartialArgs
    signature: Signature | None = None
    upstream: str = ""  # Google's own id

    def whole(self, args: bytes) -> dict[str, Any]:
        try:
            return _decode_args(args or self.partial.close())
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise UpstreamGarbage(
                f"the arguments of {self.name} are not an object", kind="overloaded"
            ) from None

    def events(self, args: bytes) -> list[Event]:
        started = CallStarted(id=self.id, name=self.name, signature=self.signature)
        return [started, CallDelta(args or self.partial.close()), CallEnded()]


def _read_counts(raw: bytes) -> dict[str, Any]:
    try:
        found = _decode_counts(raw) or {}
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    if None in found.values():
        return {name: count for name, count in found.items() if count is not None}
    return found


def _number(count: object) -> int:
    """Google writes large numbers as text."""
    if isinstance(count, int):
        return count
    if isinstance(count, str) and count.isascii() and count.isdigit():
        return int(count[:_DIGITS])
    return 0


def _native_part(part: Part) -> Native:
    fields = zip(NATIVE_PARTS.values(), _parts_of(part), strict=True)
    native = {field: found for field, found in fields if found is not NOTHING}
    if part.thought_signature:
        native["thoughtSignature"] = part.thought_signature
    return _native(msgspec.json.encode(native))


def _native(raw: bytes | msgspec.Raw, field: str = "") -> Native:
    """On one line: a whole answer is pretty-printed, a stream's frame must not be."""
    return Native(json=msgspec.json.format(bytes(raw), indent=-1), field=field)


def _garbage(frame: bytes) -> UpstreamError:
    """Not a response: perhaps an error in a list, perhaps a page of HTML."""
    error = decode_error_body(0, frame)
    if error.status:
        return error
    return UpstreamGarbage("the upstream sent something that is not a Gemini response", kind="internal")
