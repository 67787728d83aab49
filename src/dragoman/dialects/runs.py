"""Histories that were read: the next turn begins with the same elements, and most often only its end is new."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

import msgspec

from dragoman.dialects.history import HISTORY_BYTES, weigh_pieces
from dragoman.dialects.samples import Sampled, is_kept
from dragoman.ir import Message

T = TypeVar("T")

_SPACE = b" \t\r\n"
_GAP_BYTES = 16  # at most so much space between two elements; more is read anew every time
_CHANGED_ENDS = 6  # elements at the end that a client may have written anew: cache points move on
_RUNS_BYTES = 6 * HISTORY_BYTES


#: The messages of a conversation that goes on: those before, of which pieces they were made, and the new pieces.
Said = Callable[[tuple[Message, ...], Sequence[T], Sequence[T]], tuple[Message, ...]]


class Run(msgspec.Struct, Generic[T], frozen=True):
    """The first elements of a list as they were written, with the same `comma` between all of them, where each of them
    ends, and what was read of them.

    `behind` them stood others, which may come back changed, if only by a cache point: they were known as
    `behind_texts`. `frame` is the number of what stood around the list, if that is known.
    """

    text: bytes = b""
    comma: bytes = b""
    ends: tuple[int, ...] = ()
    pieces: tuple[T, ...] = ()
    said: tuple[Message, ...] = ()
    telling: tuple[int, ...] = ()
    behind_texts: tuple[bytes, ...] = ()
    behind: tuple[T, ...] = ()
    frame: int = 0
    whole: Run[T] | None = None  # of which these are the first elements

    def still_behind(self, texts: list[bytes]) -> list[T]:
        """Of those that stood behind these, the ones that are the same."""
        same: list[T] = []
        for text, before, piece in zip(texts, self.behind_texts, self.behind, strict=False):
            if text != before:
                break
            same.append(piece)
        return same


NOTHING: Run[Any] = Run()


class Runs(Generic[T]):
    """Of one dialect; `known_as` and `said` as the skimmer has them."""

    def __init__(
        self,
        name: str,
        known_as: Callable[[list[bytes]], list[bytes]],
        said: Said[T],
    ) -> None:
        self._kept: Sampled[Run[T]] = Sampled(_RUNS_BYTES, f"{name} histories")
        self._known_as = known_as
        self._said = said

    def find(self, body: bytes, start: int) -> Run[T]:
        """With what the list begins whose first element is at `start`; nothing if it is not known."""
        for runs in self._kept.find(body, start):
            for run in runs:
                if body.startswith(run.text, start):  # nearly always the first
                    return run
            for run in runs:
                if cut := self._known_part(run, body, start):
                    return cut
        return NOTHING

    def grow(self, before: Run[T], run: Run[T]) -> None:
        """Nothing goes on any more from the one `before`."""
        size = len(run.text) + sum(map(len, run.behind_texts))
        weight = weigh_pieces(size, len(run.ends) + len(run.behind))
        old = before.whole or before
        self._kept.grow(old.text, old, run.text, run, weight)

    def _known_part(self, run: Run[T], body: bytes, start: int) -> Run[T] | None:
        """All but its last elements, which have changed."""
        number = len(run.ends)
        for known in range(number - 1, max(0, number - _CHANGED_ENDS), -1):
            text = run.text[: run.ends[known - 1]]
            if body.startswith(text, start):
                return self._cut(run, text, known)
        return None

    def _cut(self, run: Run[T], text: bytes, known: int) -> Run[T]:
        """The same with only so many elements, which have this text; the others stand behind them."""
        pieces, ends, comma = run.pieces[:known], run.ends, len(run.comma)
        raws = [run.text[ends[at - 1] + comma : ends[at]] for at in range(known, len(ends))]
        return Run(
            text=text,
            comma=run.comma,
            ends=ends[:known],
            pieces=pieces,
            said=self._said((), (), pieces),
            telling=tuple(filter(known.__gt__, run.telling)),
            behind_texts=(*self._known_as(raws), *run.behind_texts),
            behind=run.pieces[known:] + run.behind,
            frame=run.frame,
            whole=run,
        )


def lay_out(
    body: bytes, start: int, known: Run[Any], raws: list[bytes]
) -> tuple[bytes, bytes, tuple[int, ...], int] | None:
    """The list with these elements behind the known ones, up to its last one: text, comma, ends, and where the rest of
    the body begins. None if it is too short to be kept, or if they do not stand there as programs write them: with the
    same space between all."""
    end = start + len(known.text)
    gap, comma = (known.comma, known.comma) if known.ends else _gaps(body, end, raws[0])
    new = gap + comma.join(raws)
    if not comma or not body.startswith(new, end):
        return None
    behind = end + len(new)
    text = body[start : behind - len(raws[-1]) - len(comma)]
    if not is_kept(text):
        return None
    sizes = map(len(comma).__add__, map(len, raws))
    ends = tuple(accumulate(sizes, initial=len(known.text) + len(gap) - len(comma)))[1:-1]
    return text, comma, known.ends + ends, behind


def _gaps(body: bytes, start: int, first: bytes) -> tuple[bytes, bytes]:
    """What stands before the first element of a list, and between it and the second; nothing if it is too much."""
    gap = _gap(body, start)
    comma = _gap(body, start + len(gap) + len(first))
    return (gap, comma) if not gap.strip(_SPACE) and comma.strip(_SPACE) == b"," else (b"", b"")


def _gap(body: bytes, at: int) -> bytes:
    """Space and commas there."""
    ahead = body[at : at + _GAP_BYTES]
    return ahead[: len(ahead) - len(ahead.lstrip(_SPACE + b","))]
