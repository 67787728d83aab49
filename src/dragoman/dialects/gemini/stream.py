"""Decode a `GenerateContentResponse` into events; an answer that is not streamed is a stream of one chunk.

Function arguments may arrive as JSON paths with values (Vertex, `streamFunctionCallArguments`): see `PartialArgs`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from operator import attrgetter
from typing import Any

import msgspec

from dragoman.dialects.gemini.errors import decode_error_body
from dragoman.dialects.gemini.stream_framing import FrameDecoder, Frames
from dragoman.dialects.gemini.wire import (
    NATIVE_FIELDS,
    NATIVE_PARTS,
    NOTHING,
    Candidate,
    Chunk,
    FunctionCall,
    Part,
    PartialArg,
    client_id,
    decode_chunk,
    decode_feedback,
    decode_text_chunk,
)
from dragoman.errors import UpstreamError, UpstreamIncomplete, UpstreamProtocolError
from dragoman.ir import (
    AFTER_TEXT,
    ON_TEXT,
    ON_THOUGHT,
    Event,
    Failed,
    Finished,
    Native,
    Signature,
    SignatureDelta,
    Started,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
)
from dragoman.notes import Note
from dragoman.schema import NameMap

_REASON: dict[str, StopReason] = {
    "STOP": "end",
    "MAX_TOKENS": "max_tokens",
    "CONTINUATION": "max_tokens",
    "SAFETY": "blocked",
    "RECITATION": "blocked",
    "LANGUAGE": "blocked",
    "BLOCKLIST": "blocked",
    "PROHIBITED_CONTENT": "blocked",
    "SPII": "blocked",
    "IMAGE_SAFETY": "blocked",
    "IMAGE_PROHIBITED_CONTENT": "blocked",
    "IMAGE_RECITATION": "blocked",
    "ESCALATION": "blocked",
    "MODEL_ARMOR": "blocked",
    "MALFORMED_FUNCTION_CALL": "malformed",
    "MALFORMED_RESPONSE": "malformed",
    "UNEXPECTED_TOOL_CALL": "malformed",
    "TOO_MANY_TOOL_CALLS": "malformed",
    "MISSING_THOUGHT_SIGNATURE": "malformed",
    "OTHER": "malformed",
    "NO_IMAGE": "malformed",
    "IMAGE_OTHER": "malformed",
}


def stop_reason(raw: str, *, has_calls: bool) -> StopReason:
    """Return the neutral reason; STOP becomes `tool_calls` if the answer has calls.

    Google ends tool calls with STOP too. No other reason becomes `tool_calls`, so that a call that was cut off
    is not taken for complete (known problems D3, D4).
    """
    reason = _REASON.get(raw, "other")
    return "tool_calls" if reason == "end" and has_calls else reason


_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")
_ESCAPE = re.compile(r"\\(.)")
MAX_LIST_INDEX = 100_000
MAX_STEPS = 100

Step = str | int


class PartialArgs:
    """Sets every value at its path; a string for a path that has one already is appended to it."""

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}

    def feed(self, pieces: list[PartialArg]) -> None:
        for piece in pieces:
            path = _read_path(piece.json_path)
            if path:
                self._put(path, piece)

    def close(self) -> bytes:
        """Return the arguments as JSON."""
        return msgspec.json.encode(self._root)

    def _put(self, path: list[Step], piece: PartialArg) -> None:
        node: Any = self._root
        for step, following in pairwise(path):
            below = _get(node, step)
            if not isinstance(below, dict | list):
                below = [] if isinstance(following, int) else {}
                _set(node, step, below)
            node = below
        value = _value(piece)
        if value is not msgspec.UNSET:
            before = _get(node, path[-1])
            joined = isinstance(value, str) and isinstance(before, str)
            _set(node, path[-1], before + value if joined else value)


def _read_path(path: str) -> list[Step]:
    """Split `$.a.b[0]['c']` into its steps.

    Raise `UpstreamGarbage` for any other syntax: skipping the path would lose an argument (known problem C10).
    """
    steps: list[Step] = []
    place = 1
    while place < len(path) and len(steps) < MAX_STEPS:
        found = _STEP.match(path, place)
        if found is None or int(found[2] or 0) >= MAX_LIST_INDEX:
            break
        name, number, single, double = found.groups()
        steps.append(int(number) if number else name or _ESCAPE.sub(r"\1", single or double or ""))
        place = found.end()
    if not path.startswith("$") or place < len(path):
        raise UpstreamProtocolError(
            f"the upstream streams an argument to a place we cannot read: {path[:80]}"
        )
    return steps


def _value(piece: PartialArg) -> Any:
    for value in (piece.string_value, piece.bool_value, piece.number_value):
        if value is not None:
            return int(value) if isinstance(value, float) and value.is_integer() else value
    return msgspec.UNSET if piece.null_value is msgspec.UNSET else None


def _get(node: Any, step: Step) -> Any:
    if not isinstance(node, list):
        return node.get(str(step))
    if not isinstance(step, int):
        raise UpstreamProtocolError(f"the upstream streams an argument {step!r} into a list")
    return node[step] if step < len(node) else None


def _set(node: Any, step: Step, value: Any) -> None:
    """Set `value` at `step`; the caller has called `_get`, which checks that the step fits the node."""
    if isinstance(node, list):
        node.extend([None] * (int(step) + 1 - len(node)))
        node[int(step)] = value
    else:
        node[str(step)] = value


_NULL = b"null"

#: Members of `usageMetadata` that `Usage` covers; with any other, Gemini clients get the whole object.
_USAGE_FIELDS = frozenset(
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
_NO_SHAPE = b"-"  # not valid JSON, so it equals no shape
_NUMBERED = re.compile(rb'[A-Za-z_"]\d')  # a digit inside a name or a string, not in a number
_decode_counts = msgspec.json.Decoder(dict[str, Any] | None).decode
_decode_args = msgspec.json.Decoder(dict[str, Any]).decode
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode

#: Reads all native fields of a part with one call.
_parts_of = attrgetter(*NATIVE_PARTS)
_NO_PARTS = (NOTHING,) * len(NATIVE_PARTS)


class GeminiStream:
    """Decodes the bytes of an answer into events, in the order that `ir.events` defines.

    The last event is `Finished` or `Failed`. `Finished` is returned only by `close`, because usage and signatures
    may follow the chunk with the finish reason.
    """

    has_finish = False
    _started = False
    _text_only = False  # the next chunk is expected to contain nothing but text
    _ended = False
    _calls = 0
    _open: OpenCall | None = None
    _shape = _NO_SHAPE  # shape of the last counts, if it identifies them (see `_store_counts`)
    _finish: Finished | None = None

    def __init__(
        self, names: NameMap, origin: str, new_id: Callable[[], str], *, single_call: bool = False
    ) -> None:
        self._names = names
        self._origin = origin
        self._new_id = new_id
        self._single_call = single_call
        self._framing = FrameDecoder()
        self._frames: Frames = self._framing
        #: Google's id -> the call, or the canonical forms of all calls that used this id.
        self._calls_by_id: dict[str, ToolCall | set[bytes]] = {}
        self._snapshots: dict[bytes, bytes] = {}  # shape -> the last counts of that shape
        self._counts: dict[str, Any] = {}
        self.notes: list[Note] = []

    def feed(self, data: bytes) -> list[Event]:
        try:
            frames = self._frames.feed(data)
        except UpstreamError as error:
            return self._fail(error)
        return self._read(frames) if frames else []

    def close(self) -> list[Event]:
        try:
            frames = self._frames.close()
        except UpstreamError as error:
            return self._fail(error)
        events = self._read(frames)
        if self._ended:
            return events
        if self._finish is None:
            cut = UpstreamIncomplete("the answer stopped before its end", kind="overloaded")
            return [*events, *self._fail(cut)]
        self._ended = True
        self._end(self._finish, events)
        return events

    def _read(self, frames: list[bytes]) -> list[Event]:
        events: list[Event] = []
        frame = b""
        try:
            for frame in () if self._ended else frames:
                if not self._text_only or not self._words(frame, events):
                    self._chunk(decode_chunk(frame), events)
        except UpstreamError as error:
            events += self._fail(error)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            events += self._fail(_unreadable(frame))
        return events

    def _words(self, frame: bytes, events: list[Event]) -> bool:
        """Decode a chunk of nothing but text and counts, the usual one; return False if it contains more."""
        try:
            chunk = decode_text_chunk(frame)
        except msgspec.DecodeError:
            self._text_only = False
            return False
        for candidate in chunk.candidates:
            if not candidate.index:
                for part in candidate.content.parts:
                    if part.text:
                        say = ThoughtDelta if part.thought else TextDelta
                        events.append(say(part.text))
        self._note_counts(bytes(chunk.usage_metadata))
        return True

    def _chunk(self, chunk: Chunk, events: list[Event]) -> None:
        if not self._started:
            self._start(chunk, events)
        if chunk.error is not NOTHING and bytes(chunk.error) != _NULL:
            raise decode_error_body(0, b'{"error":%b}' % bytes(chunk.error))
        for candidate in chunk.candidates or ():
            if not candidate.index:
                self._candidate(candidate, events)
        if chunk.prompt_feedback is not NOTHING:
            self._feedback(bytes(chunk.prompt_feedback), events)
        self._note_counts(bytes(chunk.usage_metadata))

    def _note_counts(self, counts: bytes) -> None:
        """Keep the raw `usageMetadata` of a chunk; only the last of each shape is parsed, at the end."""
        shape = counts.translate(_ANY_NUMBER)
        if shape == self._shape:
            self._snapshots[self._shape] = counts  # `self._shape` has its hash cached, `shape` does not
        elif counts:
            self._store_counts(shape, counts)

    def _start(self, chunk: Chunk, events: list[Event]) -> None:
        self._started = self._text_only = True
        self._frames = self._framing.settled()
        events.append(Started(chunk.model_version or "", chunk.response_id or ""))

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
                events.append(TextDelta(part.text))  # fast path: most parts of a stream
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
                events.append(SignatureDelta(signature, ON_THOUGHT))
            return
        if _parts_of(part) != _NO_PARTS:
            events.append(_native_part(part))
            return
        if part.text:
            events.append(TextDelta(part.text))
        if signature:
            events.append(SignatureDelta(signature, ON_TEXT if part.text else AFTER_TEXT))

    def _call(self, call: FunctionCall, signature: Signature | None, events: list[Event]) -> None:
        """Add a piece of a call; emit it when complete. Text and usage may arrive between its pieces."""
        args = bytes(call.args)
        if call.name and not (call.id and self._open is not None and self._open.upstream == call.id):
            if self._open is not None:
                self._end_call(self._open, events)
            if self._single_call and self._calls:
                self.notes.append(Note("dropped", call.name, "the client takes one tool call at a time"))
                return
            self._calls += 1
            own = self._new_id()
            identity = client_id(own, call.id) if call.id else own
            name = self._names.from_wire(call.name)
            self._open = OpenCall(identity, name, call.id or "")
        opened = self._open
        if opened is None:
            if args:
                raise UpstreamProtocolError(
                    "the upstream sent a function call without a name", kind="overloaded"
                )
            return
        opened.signature = opened.signature or signature
        if call.partial_args:
            opened.feed(call.partial_args)
        if not call.will_continue:
            self._end_call(opened, events, args if args != _NULL else b"")

    def _end_call(self, opened: OpenCall, events: list[Event], args: bytes = b"") -> None:
        """Emit the call, unless it repeats an earlier one with the same id: some proxies send calls twice."""
        self._open = None
        call = opened.whole(args)
        if opened.upstream and self._is_repeated(call, opened.upstream):
            self.notes.append(Note("dropped", call.name, "the upstream told this call twice"))
        else:
            events.append(call)

    def _is_repeated(self, call: ToolCall, upstream: str) -> bool:
        """Whether a call with the same id, name and arguments came before; arguments are parsed only if the id did."""
        earlier = self._calls_by_id.setdefault(upstream, call)
        if earlier is call:
            return False
        if isinstance(earlier, ToolCall):
            earlier = self._calls_by_id[upstream] = {_canonical(earlier)}
        canonical = _canonical(call)
        repeated = canonical in earlier
        earlier.add(canonical)
        return repeated

    def _end(self, finish: Finished, events: list[Event]) -> None:
        """Emit the end. Only STOP completes an open call; a call cut off by a limit is dropped (known problem D4)."""
        if finish.reason == "end":
            if self._open is not None:
                self._end_call(self._open, events)
            if self._calls:
                reason = stop_reason(finish.raw, has_calls=True)
                finish = Finished(reason=reason, raw=finish.raw, detail=finish.detail)
        elif self._open is not None:
            self.notes.append(Note("dropped", self._open.name, f"cut off by {finish.raw}"))
        events += self._usage()
        events.append(finish)

    def _store_counts(self, shape: bytes, counts: bytes) -> None:
        """Keep counts whose shape, their JSON with all digits replaced by 0, differs from that of the last ones.

        Counts of one shape have the same members, so the last of them replaces the others and few of hundreds
        are parsed. If a name or a string contains a digit, the shape is ambiguous: the JSON itself is the key.
        """
        numbered = _NUMBERED.search(shape)
        self._shape, key = (_NO_SHAPE, counts) if numbered else (shape, shape)
        self._snapshots.pop(key, None)  # move it to the end: later counts override earlier ones
        self._snapshots[key] = counts
        if len(self._snapshots) > _MAX_SNAPSHOTS:
            self._merge_counts()

    def _merge_counts(self) -> None:
        """Parse and merge the kept counts: an absent member keeps its last value; invalid JSON is skipped."""
        for counts in self._snapshots.values():
            self._counts |= _read_counts(counts)
        self._snapshots = {}

    def _usage(self) -> list[Event]:
        """Return the usage events; they are emitted once, at the end, because every chunk repeats the counts."""
        self._merge_counts()
        if not self._counts:
            return []
        get = self._counts.get
        prompt, from_tools = get("promptTokenCount", 0), get("toolUsePromptTokenCount", 0)
        written, thought = get("candidatesTokenCount", 0), get("thoughtsTokenCount", 0)
        cached = get("cachedContentTokenCount", 0)
        if not type(prompt) is type(from_tools) is type(written) is type(thought) is type(cached) is int:
            odd = prompt, from_tools, written, thought, cached
            prompt, from_tools, written, thought, cached = map(_number, odd)
        usage = Usage(
            input_tokens=prompt + from_tools,
            cached_tokens=cached,
            output_tokens=written + thought,
            thought_tokens=thought,
        )
        if self._counts.keys() <= _USAGE_FIELDS:
            return [usage]
        return [Native(json=msgspec.json.encode(self._counts), field="usageMetadata"), usage]

    def _fail(self, error: UpstreamError) -> list[Event]:
        if self._ended:
            return []
        self._ended = True
        # The traceback would refer to the list that holds the event: a reference cycle.
        return [*self._usage(), Failed(error.with_traceback(None))]


class OpenCall(msgspec.Struct):
    """A call whose arguments may still be streaming."""

    id: str
    name: str
    upstream: str  # Google's own id
    signature: Signature | None = None
    partial: PartialArgs | None = None

    def feed(self, pieces: list[PartialArg]) -> None:
        self.partial = self.partial or PartialArgs()
        self.partial.feed(pieces)

    def whole(self, args: bytes) -> ToolCall:
        """Return the call with `args` or the streamed ones; raise `UpstreamGarbage` if they are no object."""
        args = args or (self.partial or PartialArgs()).close()
        try:
            _decode_args(args)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise UpstreamProtocolError(
                f"the arguments of {self.name} are not an object", kind="overloaded"
            ) from None
        return ToolCall(id=self.id, name=self.name, args=args, signature=self.signature)


def _canonical(call: ToolCall) -> bytes:
    """Return name and arguments in a form that does not depend on key order or white space."""
    return _encode_sorted((call.name, _decode_args(call.args)))


def _read_counts(raw: bytes) -> dict[str, Any]:
    try:
        found = _decode_counts(raw) or {}
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    if None in found.values():
        return {name: count for name, count in found.items() if count is not None}
    return found


def _number(count: object) -> int:
    """Return a count as an integer: Google writes 64-bit numbers as strings; anything else is 0."""
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
    """Return a `Native` event with its JSON on one line: answers may be pretty-printed, SSE data must not be."""
    return Native(json=msgspec.json.format(bytes(raw), indent=-1), field=field)


def _unreadable(frame: bytes) -> UpstreamError:
    """Return the error for a frame that is not a response: an error inside a list, or for example HTML."""
    error = decode_error_body(0, frame)
    if error.status:
        return error
    return UpstreamProtocolError("the upstream sent something that is not a Gemini response", kind="internal")
