"""Bodies that repeat most of an earlier one: what is known of them is recognised by its bytes and not read again.

A turn brings back the whole history and all tools. Comparing bytes is some twenty times as fast as finding where JSON
values end, so the known beginning of the history and the known tools are cut out, a mark is put into each gap, and
what is left is read as usual. If the marks turn up where they belong, what was cut out stood there: a whole value, or
whole elements of a list. Anything else, and the body is read as it is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

import msgspec

from dragoman.dialects.history import HISTORY_BYTES, read_pieces, weigh_pieces
from dragoman.errors import InvalidRequest
from dragoman.memo import Memo

V = TypeVar("V")
W = TypeVar("W")
T = TypeVar("T")

_NO_TEXT = b"\xff"  # in no text that is UTF-8, and quickly searched for
_MARK = b'"%b dragoman knows what stood here"' % _NO_TEXT
_SPACE = b" \t\r\n"
_GAP_BYTES = 16  # at most so much space between two elements; more is read anew every time
_SHORTEST = 1024  # what is shorter is quicker read
_SAMPLE_BYTES = 64
_CHANGED_ENDS = 6  # elements at the end that a client may have written anew: cache points move on
_TOOLS_KEY = b'"tools":'
_TOOLS_BYTES = 32 * 1024 * 1024
_RUNS_BYTES = 6 * HISTORY_BYTES


class Sampled(Generic[V]):
    """Values of long texts, found where such a text begins inside another one.

    A text is filed under the last bytes of its longest part whose length is a power of two, so a few looks find it
    wherever it ends. Who finds something must compare: only the sample is known to be the same.
    """

    def __init__(self, max_bytes: int, name: str) -> None:
        self._memo: Memo[bytes, V] = Memo(max_bytes, name)

    def find(self, body: bytes, at: int) -> V | None:
        size = _power_below(len(body) - at)
        while size >= _SHORTEST:
            sample = body[at + size - _SAMPLE_BYTES : at + size]
            if sample in self._memo:
                return self._memo.find(sample)
            size >>= 1
        self._memo.missed += 1
        return None

    def put(self, text: bytes, value: V, besides: int = 0) -> None:
        """`besides` is what the value weighs without the text."""
        size = _power_below(len(text))
        if size >= _SHORTEST:
            self._memo.put(text[size - _SAMPLE_BYTES : size], len(text) + besides, value)


def _power_below(size: int) -> int:
    return 1 << (size.bit_length() - 1) if size > 0 else 0


class Run(msgspec.Struct, frozen=True):
    """The first elements of a list as they were written, where each of them ends, and what was read of them."""

    text: bytes = b""
    ends: tuple[int, ...] = ()
    pieces: tuple[Any, ...] = ()


_NOTHING = Run()


class Place(Generic[W]):
    """Where a body that was read has its tools."""

    def __init__(self, get: Callable[[W], msgspec.Raw], put: Callable[[W, msgspec.Raw], None]) -> None:
        self.get = get
        self.put = put


def _put_tools(wire: Any, tools: msgspec.Raw) -> None:
    wire.tools = tools


#: In most dialects.
IN_TOOLS: Place[Any] = Place(operator.attrgetter("tools"), _put_tools)


class Skimmer(Generic[W]):
    """Reads bodies of one dialect: `key` names the list with the history, whose elements `elements` gives.

    `known_as` gives elements without what may change from turn to turn and means nothing.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[bytes], W],
        *,
        key: str,
        elements: Callable[[W], Sequence[msgspec.Raw]],
        tools: Place[W] | None = None,
        known_as: Callable[[list[bytes]], Iterable[bytes]] = iter,
    ) -> None:
        self._read = read
        self.known_as = known_as
        self._lists = tuple(f'"{key}":{space}['.encode() for space in ("", " "))
        self.elements = elements
        self._tools_of = tools
        self.runs: Sampled[Run] = Sampled(_RUNS_BYTES, f"{name} histories")
        self._tools: Sampled[bytes] = Sampled(_TOOLS_BYTES, f"{name} tools")
        self._tools_from_end = 0  # where they began in the last body, counted from its end

    def skim(self, body: bytes) -> Skimmed[W]:
        start = self._list_start(body)
        run = self._known_run(body, start) if start >= 0 else _NOTHING
        tools_at, tools = self._known_tools(body, start + len(run.text))
        cuts = [(start, len(run.text))] if run.text else []
        if tools:
            cuts.insert(len(cuts) if start < tools_at else 0, (tools_at, len(tools)))
        wire = self._read_rest(body, cuts, run, tools) if cuts else None
        if wire is None:
            wire, run, tools = self._read(body), _NOTHING, b""
        if not tools and self._tools_of is not None:
            tools = bytes(self._tools_of.get(wire))
            self._tools.put(tools, tools)
        return Skimmed(self, body, start, wire, run, tools)

    def _list_start(self, body: bytes) -> int:
        """Behind the bracket; -1 if there is no such list."""
        for opening in self._lists:
            at = body.find(opening)
            if at >= 0:
                return at + len(opening)
        return -1

    def _known_run(self, body: bytes, start: int) -> Run:
        run = self.runs.find(body, start)
        if run is None:
            return _NOTHING
        if body.startswith(run.text, start):  # nearly always
            return run
        whole = len(run.ends)
        for known in range(whole - 1, max(0, whole - _CHANGED_ENDS), -1):
            text = run.text[: run.ends[known - 1]]
            if body.startswith(text, start):
                return Run(text, run.ends[:known], run.pieces[:known])
        return _NOTHING

    def _known_tools(self, body: bytes, behind: int) -> tuple[int, bytes]:
        """They stand where they stood in the last body, or else behind the history, or else before it."""
        if self._tools_of is None:
            return 0, b""
        at = max(0, len(body) - self._tools_from_end)
        if not body[max(0, at - len(_TOOLS_KEY) - 1) : at].strip().endswith(_TOOLS_KEY):
            at = _tools_start(body, max(0, behind))
            at = at if at >= 0 else _tools_start(body, 0)
        text = self._tools.find(body, at) if at >= 0 else None
        if text is None or not body.startswith(text, at):
            return 0, b""
        self._tools_from_end = len(body) - at
        return at, text

    def _read_rest(self, body: bytes, cuts: list[tuple[int, int]], run: Run, tools: bytes) -> W | None:
        """None if the marks are not found where they must be."""
        pieces: list[bytes] = []
        end = 0
        for at, size in cuts:
            pieces.append(body[end:at])
            end = at + size
        pieces.append(body[end:])
        if any(_NO_TEXT in piece for piece in pieces):
            return None
        try:
            wire = self._read(_MARK.join(pieces))
            first = self.elements(wire)[:1] if run.ends else ()
        except InvalidRequest:
            return None
        if run.ends and (not first or bytes(first[0]) != _MARK):
            return None
        if tools and self._tools_of is not None:
            if bytes(self._tools_of.get(wire)) != _MARK:
                return None
            self._tools_of.put(wire, msgspec.Raw(tools))
        return wire


class Skimmed(Generic[W]):
    """A body that was skimmed: `wire` without what was known of the history, `tools` as they were written."""

    def __init__(self, skimmer: Skimmer[W], body: bytes, start: int, wire: W, run: Run, tools: bytes) -> None:
        self._skimmer = skimmer
        self._body = body
        self._start = start
        self._run = run
        self.wire = wire
        self.tools = tools

    def pieces(
        self,
        memo: Memo[bytes, T],
        place: str,
        read: Callable[[bytes, str], T],
        *,
        several: Callable[[list[bytes]], list[T] | None] | None = None,
    ) -> list[T]:
        """The history, read as `read_pieces` does it; what was known of it comes from the last time."""
        known = len(self._run.ends)
        raws = list(map(bytes, self._skimmer.elements(self.wire)[1 if known else 0 :]))
        new = self._skimmer.known_as(raws)
        pieces = [*self._run.pieces, *read_pieces(memo, place, new, read, start=known, several=several)]
        # All but the last, which nearly always comes back changed, if only by its cache point.
        if self._start >= 0 and len(raws) > 1:
            self._keep(raws[:-1], pieces)
        return pieces

    def _keep(self, raws: list[bytes], pieces: list[T]) -> None:
        """They are kept if they stand there as programs write them: with the same space between all of them."""
        body, start, known = self._body, self._start, self._run
        end = start + len(known.text)
        gap = _gap(body, end)
        begin = end + len(gap)
        comma = _gap(body, begin + len(raws[0]))
        new = comma.join(raws)
        whole = gap.strip(_SPACE) == (b"," if known.ends else b"") and comma.strip(_SPACE) == b","
        if not whole or not body.startswith(new, begin):
            return
        text = body[start : begin + len(new)]
        sizes = map(len(comma).__add__, map(len, raws))
        ends = accumulate(sizes, initial=begin - start - len(comma))
        next(ends)
        run = Run(text, (*known.ends, *ends), tuple(pieces[:-1]))
        # The pieces may be forgotten elsewhere: then they are here alone.
        self._skimmer.runs.put(text, run, besides=weigh_pieces(len(text), len(run.ends)))


def _gap(body: bytes, at: int) -> bytes:
    """Space and commas there."""
    ahead = body[at : at + _GAP_BYTES]
    return ahead[: len(ahead) - len(ahead.lstrip(_SPACE + b","))]


def _tools_start(body: bytes, start: int) -> int:
    """Where the value begins behind the next such key; -1 if there is none."""
    at = body.find(_TOOLS_KEY, start)
    if at < 0:
        return -1
    at += len(_TOOLS_KEY)
    return at + body.startswith(b" ", at)
