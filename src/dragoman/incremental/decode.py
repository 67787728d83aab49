"""Decode request bodies, without parsing and decoding again what an earlier body of the conversation had.

`decode_incrementally` is the entry point of all dialects. A dialect supplies a `BodySpec`: how to parse a body, decode
one item of the history, decode the envelope (everything around the history), and assemble the result.
`decode_naively` does the same without caches; it defines the result.

Every turn of a conversation sends the whole history and all tools. Comparing bytes is about twenty times as fast as
parsing JSON, so the reader cuts the known beginning of the history and the known tools out of the body, puts a
placeholder into each gap, and parses the rest. If the placeholders appear in the result as the first element of the
history and as the tools, the cut-out bytes were exactly these values. Otherwise the whole body is parsed.

If the envelope is known too, only the new elements of the history are parsed.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from dragoman.errors import InvalidRequest
from dragoman.incremental.envelope import RequestEnvelope
from dragoman.incremental.fingerprint_index import FingerprintIndex
from dragoman.incremental.history_prefix import (
    NO_PREFIX,
    HistoryPrefix,
    MergeItems,
    PrefixCache,
    locate_elements,
)
from dragoman.incremental.items import HISTORY_CACHE_BYTES, DecodedHistory, decode_items, decode_new_items
from dragoman.incremental.lru import LruCache, caches_enabled

W = TypeVar("W")
T = TypeVar("T")
E = TypeVar("E")
R = TypeVar("R")
V = TypeVar("V")

_INVALID_UTF8 = b"\xff"  # never occurs in UTF-8, so no client can forge a placeholder
_PLACEHOLDER = b'"%b dragoman knows what stood here"' % _INVALID_UTF8
_match_closing_bracket = re.compile(rb"[ \t\r\n]{0,16}\]").match
_TOOLS_KEY = b'"tools":'
_TOOLS_BYTES = 32 * 1024 * 1024
_ENVELOPE_CACHE_BYTES = 2 * HISTORY_CACHE_BYTES
#: Estimated memory of an envelope and its `derived` values; tools are cached elsewhere.
_ENVELOPE_MEMORY_PER_BYTE = 3
_new_number = itertools.count(1).__next__


class ToolsField(NamedTuple, Generic[W]):
    """How to get and set the tools of a parsed body."""

    get: Callable[[W], msgspec.Raw]
    put: Callable[[W, msgspec.Raw], None]


def _put_tools(wire: Any, tools: msgspec.Raw) -> None:
    wire.tools = tools


#: The tools are in the field `tools`, as in most dialects.
TOOLS_FIELD: ToolsField[Any] = ToolsField(operator.attrgetter("tools"), _put_tools)


def _get_nothing(*_: object) -> tuple[()]:
    return ()


@dataclass(frozen=True, eq=False, kw_only=True)
class BodySpec(Generic[W, T, E, R]):
    """What a dialect supplies to decode its bodies. All functions are pure; they are called in this order.

    - `parse` parses a body to `W`; the history and the tools stay JSON.
    - `check` refuses a parsed body before its items are decoded.
    - `elements` returns the elements of the history. `decode_item` decodes one, given its bytes and its path; the path
      of an error may be relative to the item. `decode_items` decodes many at once, or returns None if any is invalid.
      If there are no elements, `decode_other` returns the items, for a history that is not a list, or raises.
    - `merge_items` makes messages of the items, see `MergeItems`.
    - `decode_tools` decodes the tools that the envelope declares; `collect_changes` returns what the items change about
      the envelope, given the history and these tools. Equal changes have equal effects.
    - `decode_envelope` decodes everything but the history, given the parsed body, the tools, the changes, and what the
      caller of `decode_incrementally` knows from outside of the body.
    - `assemble` makes the result of the decoded envelope and history; it is called for every body.

    The rest is data:

    - `name` is the prefix of the names of the caches, and `item_name` names the cache of items, in metrics;
    - `key` is the JSON key of the history list, and `path` its path in errors, if it is another;
    - `tools` says where the tools are, if the dialect has them in the body;
    - `without_volatile` removes from elements what may change from turn to turn without meaning, such as cache points;
    - `volatile` matches such volatile text after the list, see `RequestEnvelope`;
    - `is_annotated` returns whether a decoded item carries more than messages, see `DecodedHistory`;
    - `has_stable_envelope` is false for dialects whose envelope is different in every request.
    """

    parse: Callable[[bytes], W]
    check: Callable[[W], object] = _get_nothing
    elements: Callable[[W], Sequence[msgspec.Raw]]
    decode_item: Callable[[bytes, str], T]
    decode_items: Callable[[list[bytes]], list[T] | None] | None = None
    decode_other: Callable[[W], tuple[T, ...]] = _get_nothing
    merge_items: MergeItems[T] = _get_nothing
    decode_tools: Callable[[W], Any] = _get_nothing
    collect_changes: Callable[[DecodedHistory[T], Any], Any] = _get_nothing
    decode_envelope: Callable[[W, Any, Any, Any], E]
    assemble: Callable[[E, DecodedHistory[T]], R]
    name: str
    item_name: str = "messages"
    key: str
    path: str = ""
    tools: ToolsField[W] | None = None
    without_volatile: Callable[[list[bytes]], list[bytes]] = list
    volatile: re.Pattern[bytes] | None = None
    is_annotated: Callable[[T], object] = _get_nothing
    has_stable_envelope: bool = True
    reader: IncrementalBodyReader[W, T] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reader", IncrementalBodyReader(self))


def decode_incrementally(spec: BodySpec[W, T, E, R], body: bytes, outside: object = None) -> R:
    """Decode a body like `decode_naively`, except for what is known from earlier bodies.

    `outside` is what the envelope depends on besides the body, such as a session id in the headers.
    Raise `InvalidRequest` if the body is invalid.
    """
    if not caches_enabled():
        return decode_naively(spec, body, outside)
    partial = spec.reader.read(body)
    if partial.new is None:
        spec.check(partial.wire)
    history = partial.history()
    tools = partial.derive("tools", None, lambda: spec.decode_tools(partial.wire))
    changes = spec.collect_changes(history, tools)
    envelope = partial.derive(
        "envelope",
        (outside, changes),
        lambda: spec.decode_envelope(partial.wire, tools, changes, outside),
    )
    return spec.assemble(envelope, history)


def decode_naively(spec: BodySpec[W, T, E, R], body: bytes, outside: object = None) -> R:
    """Return what `decode_incrementally` returns, without a cache."""
    wire = spec.parse(body)
    spec.check(wire)
    raws = spec.without_volatile(list(map(bytes, spec.elements(wire))))
    items = tuple(decode_new_items(spec.path or spec.key, raws, spec.decode_item)) or spec.decode_other(wire)
    annotated = tuple(index for index, item in enumerate(items) if spec.is_annotated(item))
    history = DecodedHistory(items, spec.merge_items((), (), items), annotated)
    tools = spec.decode_tools(wire)
    changes = spec.collect_changes(history, tools)
    return spec.assemble(spec.decode_envelope(wire, tools, changes, outside), history)


def look_ahead(spec: BodySpec[W, T, E, R], body: bytes, name: str, look: Callable[[W], V]) -> V:
    """Return `look(wire)` for the parsed body. If `body` is decoded next, it is not parsed again."""
    if not caches_enabled():
        return look(spec.parse(body))
    partial = spec.reader.read(body)
    spec.reader.ahead = body, partial
    return partial.derive(name, None, lambda: look(partial.wire))


class IncrementalBodyReader(Generic[W, T]):
    """Parse the bodies of one dialect and cache what later bodies may repeat."""

    def __init__(self, spec: BodySpec[W, T, Any, Any]) -> None:
        self.spec = spec
        self._lists = tuple(f'"{spec.key}":{space}['.encode() for space in ("", " "))
        self.items: LruCache[bytes, T] = LruCache(HISTORY_CACHE_BYTES, f"{spec.name} {spec.item_name}")
        self.prefixes: PrefixCache[T] = PrefixCache(spec.name, spec.without_volatile, spec.merge_items)
        self._envelopes: LruCache[int, RequestEnvelope[W]] = LruCache(
            _ENVELOPE_CACHE_BYTES, f"{spec.name} frames" if spec.has_stable_envelope else ""
        )
        self._tools: FingerprintIndex[bytes] = FingerprintIndex(_TOOLS_BYTES, f"{spec.name} tools")
        self._tools_from_end = 0  # offset of the tools in the last body, counted from its end
        self.ahead: tuple[bytes, PartialBody[W, T]] | None = None

    def read(self, body: bytes) -> PartialBody[W, T]:
        """Parse a body, except for what is known from earlier bodies.

        Raise `InvalidRequest` if the body is invalid.
        """
        ahead, self.ahead = self.ahead, None
        if ahead is not None and ahead[0] is body:
            return ahead[1]
        start = self._list_start(body)
        prefix: HistoryPrefix[T] = self.prefixes.find(body, start) if start >= 0 else NO_PREFIX
        envelope = self._envelopes.find(prefix.envelope) if prefix.envelope else None
        if envelope is not None and (new := envelope.new_elements(body, start, start + len(prefix.text))):
            return PartialBody(self, body, start, prefix, envelope, envelope.derived, new)
        tools_at, tools = self._known_tools(body, start + len(prefix.text))
        cuts = [(start, len(prefix.text))] if prefix.text else []
        if tools:
            cuts.insert(len(cuts) if start < tools_at else 0, (tools_at, len(tools)))
        wire = self._read_rest(body, cuts, prefix, tools) if cuts else None
        if wire is None:
            wire, prefix, tools = self.spec.parse(body), NO_PREFIX, b""
        if not tools and self.spec.tools is not None:
            tools = bytes(self.spec.tools.get(wire))
            self._tools.put(tools, tools)
        return PartialBody(self, body, start, prefix, wire, {})

    def cache_envelope(self, number: int, before: bytes, after: bytes, derived: dict[str, Any]) -> int:
        """Cache an envelope and return its number, or 0 if this dialect has none.

        A `number` other than 0 is that of an outdated envelope, which is replaced.
        """
        if not self.spec.has_stable_envelope:
            return 0
        number = number or _new_number()
        envelope: RequestEnvelope[W] = RequestEnvelope(before, after, derived, self.spec.volatile)
        self._envelopes.put(number, _ENVELOPE_MEMORY_PER_BYTE * (len(before) + len(after)), envelope)
        return number

    def _list_start(self, body: bytes) -> int:
        """Return the offset after the opening bracket of the history; -1 if there is no such list."""
        for opening in self._lists:
            at = body.find(opening)
            if at >= 0:
                return at + len(opening)
        return -1

    def _known_tools(self, body: bytes, end_of_history: int) -> tuple[int, bytes]:
        """Return offset and bytes of the tools, if their bytes are cached.

        Look where the last body had them, then after the history, then before it.
        """
        if self.spec.tools is None:
            return 0, b""
        at = max(0, len(body) - self._tools_from_end)
        if not body[max(0, at - len(_TOOLS_KEY) - 1) : at].strip().endswith(_TOOLS_KEY):
            at = _tools_start(body, max(0, end_of_history))
            at = at if at >= 0 else _tools_start(body, 0)
        for texts in self._tools.find(body, at) if at >= 0 else ():
            for text in texts:
                if body.startswith(text, at):
                    self._tools_from_end = len(body) - at
                    return at, text
        return 0, b""

    def _read_rest(
        self, body: bytes, cuts: list[tuple[int, int]], prefix: HistoryPrefix[T], tools: bytes
    ) -> W | None:
        """Parse the body without the `cuts`; None if the placeholders are not where they must be."""
        pieces: list[bytes] = []
        end = 0
        for at, size in cuts:
            pieces.append(body[end:at])
            end = at + size
        pieces.append(body[end:])
        if any(_INVALID_UTF8 in piece for piece in pieces):
            return None
        try:
            wire = self.spec.parse(_PLACEHOLDER.join(pieces))
            first = self.spec.elements(wire)[:1] if prefix.ends else ()
        except InvalidRequest:
            return None
        if prefix.ends and (not first or bytes(first[0]) != _PLACEHOLDER):
            return None
        if tools and self.spec.tools is not None:
            if bytes(self.spec.tools.get(wire)) != _PLACEHOLDER:
                return None
            self.spec.tools.put(wire, msgspec.Raw(tools))
        return wire


@dataclass(frozen=True, eq=False)
class PartialBody(Generic[W, T]):
    """A body whose history may be known in part.

    `derived` holds what is derived from the envelope. `new` are the new elements of the history if an earlier body had
    the same envelope: what was derived from it then is still in `derived`, and `wire` need not be parsed.
    """

    reader: IncrementalBodyReader[W, T]
    body: bytes
    start: int
    prefix: HistoryPrefix[T]
    envelope: W | RequestEnvelope[W]
    derived: dict[str, Any]
    new: list[bytes] | None = None

    @property
    def wire(self) -> W:
        """The parsed body, without the known elements of the history."""
        envelope = self.envelope
        if not isinstance(envelope, RequestEnvelope):
            return envelope
        if envelope.parsed is None:
            envelope.parsed = self.reader.spec.parse(envelope.body)
        return envelope.parsed

    def derive(self, name: str, key: object, make: Callable[[], V]) -> V:
        """Return `make()`, or its cached result if the envelope and the `key` are the same as before."""
        found: tuple[object, V] | None = self.derived.get(name)
        if found is None or found[0] != key:
            found = self.derived[name] = key, make()
        return found[1]

    def history(self) -> DecodedHistory[T]:
        """Decode the elements of the history that are not known, and cache the longer prefix."""
        reader, spec, prefix, raws = self.reader, self.reader.spec, self.prefix, self.new
        path, read, several = spec.path or spec.key, spec.decode_item, spec.decode_items
        known = len(prefix.ends)
        if raws is None:
            raws = list(map(bytes, spec.elements(self.wire)[1 if known else 0 :]))
        texts = spec.without_volatile(raws)
        # The cached prefix ends before the last element, which nearly always comes back changed: clients move the cache
        # point from it to the new last element.
        located = locate_elements(self.body, self.start, prefix, raws)
        if located is not None or known:  # the prefix cache holds these items, so the item cache need not
            new = prefix.match_following(texts)
            matched = len(new)
            new += decode_new_items(path, texts[matched:], read, start=known + matched, several=several)
        else:
            new = decode_items(reader.items, path, texts, read)
            new = new or [*spec.decode_other(self.wire)]
        annotated = prefix.annotated
        if any(map(spec.is_annotated, new)):
            annotated += tuple(index for index, item in enumerate(new, known) if spec.is_annotated(item))
        items = prefix.items + tuple(new)
        if located is not None:
            text, comma, ends, end = located
            messages = spec.merge_items(prefix.messages, prefix.items, new[:-1])
            inside = tuple(filter(len(ends).__gt__, annotated)) if annotated else ()
            number = self._cache_envelope(end)
            first, last = items[:-1], items[-1:]
            longer = HistoryPrefix(text, comma, ends, first, messages, inside, (texts[-1],), last, number)
            reader.prefixes.put(prefix, longer)
        return DecodedHistory(items, spec.merge_items(prefix.messages, prefix.items, new), annotated)

    def _cache_envelope(self, end: int) -> int:
        """Cache the envelope of this body and return its number; `end` is the offset after the last element."""
        if self.new is not None:
            return self.prefix.envelope
        # Only a placeholder at its beginning proves that the list at `_start` is the history.
        if not self.prefix.ends or not _match_closing_bracket(self.body, end):
            return 0
        before = self.body[: self.start]
        return self.reader.cache_envelope(self.prefix.envelope, before, self.body[end:], self.derived)


def _tools_start(body: bytes, start: int) -> int:
    """Return the offset of the value of the next `"tools"` key; -1 if there is none."""
    at = body.find(_TOOLS_KEY, start)
    if at < 0:
        return -1
    at += len(_TOOLS_KEY)
    return at + body.startswith(b" ", at)
