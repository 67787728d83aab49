"""Faults of the network: delays, closed or refused connections, wrong headers and corrupted bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from dragoman.emulator.direct import Asked
from dragoman.emulator.faults.kind import FaultKind, counted, on_answer
from dragoman.emulator.wire import Act, Answer, Cut, Refuse, Wait

_NOT_UTF8 = b"\xff\xfe"
_replace = msgspec.structs.replace


def _slow_first_byte(answer: Answer, _: Asked, seconds: float) -> Answer:
    return _replace(answer, before=(*answer.before, Wait(seconds)))


def _slow_stream(answer: Answer, _: Asked, seconds: float) -> Answer:
    slow: list[Act] = []
    for act in _at_least_two(answer):
        slow += [Wait(seconds), act] if slow else [act]
    return _replace(answer, acts=tuple(slow))


def _silence(answer: Answer, _: Asked, seconds: float) -> Answer:
    acts = _at_least_two(answer)
    middle = (len(acts) + 1) // 2
    return _replace(answer, acts=(*acts[:middle], Wait(seconds), *acts[middle:]))


def _at_least_two(answer: Answer) -> tuple[Act, ...]:
    """Return the acts of the response, split in two if there is only one."""
    if len(answer.acts) != 1:
        return answer.acts
    first, rest = _split(answer.acts, answer.length // 2)
    return (*first, *rest)


def _cut_after(answer: Answer, _: Asked, count: float) -> Answer:
    return _cut(answer, int(count), Cut())


def _reset_after(answer: Answer, _: Asked, count: float) -> Answer:
    return _cut(answer, int(count), Cut(reset=True))


def _cut(answer: Answer, count: int, cut: Cut) -> Answer:
    """Insert a cut after `count` bytes. The unsent rest stays in `acts` for the content-length."""
    sent, unsent = _split(answer.acts, count)
    return _replace(answer, acts=(*sent, cut, *unsent))


def _split(acts: Sequence[Act], count: int) -> tuple[list[Act], list[Act]]:
    """Return the acts up to byte `count`, and the rest."""
    before: list[Act] = []
    for index, act in enumerate(acts):
        size = len(act) if isinstance(act, bytes) else 0
        if isinstance(act, bytes) and size > count:
            left = [act[:count]] if count else []
            return [*before, *left], [act[count:], *acts[index + 1 :]]
        before.append(act)
        count -= size
    return before, []


def _reset(answer: Answer, _: Asked) -> Answer:
    return _replace(answer, before=(*answer.before, Cut(reset=True)))


def _refused(answer: Answer, _: Asked, seconds: float) -> Answer:
    return _replace(answer, before=(*answer.before, Refuse(seconds)))


def _wrong_content_type(answer: Answer, _: Asked) -> Answer:
    return _replace(answer, content_type="text/plain; charset=utf-8")


def _empty_body(answer: Answer, _: Asked) -> Answer:
    return _replace(answer, acts=())


def _invalid_utf8(piece: bytes) -> bytes:
    """Insert invalid bytes into the first string of the piece."""
    head, quote, rest = piece.partition(b'":"')
    return head + quote + _NOT_UTF8 + rest


def _truncated_json(piece: bytes) -> bytes:
    """Truncate the JSON but keep the end of the frame: `data: {"candi\\r\\n\\r\\n`."""
    text = piece.rstrip(b"\r\n")
    return text[: (len(text) + 1) // 2] + piece[len(text) :]


def _mangling(change: Callable[[bytes], bytes]) -> Callable[[Answer, Asked], Answer]:
    """Return a function that changes the middle piece of a response."""

    def mangle(answer: Answer, _: Asked) -> Answer:
        places = [index for index, act in enumerate(answer.acts) if isinstance(act, bytes)]
        middle = places[len(places) // 2] if places else -1
        acts = (
            change(act) if index == middle and isinstance(act, bytes) else act
            for index, act in enumerate(answer.acts)
        )
        return _replace(answer, acts=tuple(acts))

    return mangle


def _extra_blank(answer: Answer, _: Asked) -> Answer:
    return _between(answer, b"\r\n\r\n")


def _comments(answer: Answer, asked: Asked) -> Answer:
    """Insert the keep-alive comments of a proxy; blank lines if the body is JSON, which has no comments."""
    return _between(answer, b": keep-alive\r\n" if asked.framing == "sse" and answer.streamed else b"\r\n")


def _between(answer: Answer, filling: bytes) -> Answer:
    """Insert bytes before every piece and after the last one."""
    filled = [act for piece in answer.pieces for act in (filling, piece)]
    return _replace(answer, acts=(*filled, filling))


def _small_pieces(answer: Answer, _: Asked, count: float) -> Answer:
    size = max(1, int(count))
    acts: list[Act] = []
    for act in answer.acts:
        if isinstance(act, bytes):
            acts += [act[start : start + size] for start in range(0, len(act), size)]
        else:
            acts.append(act)
    return _replace(answer, acts=tuple(acts))


NETWORK: tuple[FaultKind, ...] = (
    counted("slow_first_byte", "nothing at all for so long, then the answer", "seconds", 5, _slow_first_byte),
    counted("slow_stream", "a pause between two pieces", "seconds", 0.5, _slow_stream),
    counted("silence", "one long pause in the middle of the answer", "seconds", 60, _silence),
    counted("cut_after", "the connection ends after so much of the body", "bytes", 200, _cut_after),
    on_answer("reset", "the connection is reset before any answer", _reset),
    counted("reset_after", "the connection is reset after so much of the body", "bytes", 200, _reset_after),
    counted(
        "refused", "the connection is reset, and new ones are refused for so long", "seconds", 1, _refused
    ),
    on_answer("wrong_content_type", "the right answer labelled text/plain", _wrong_content_type),
    on_answer("invalid_utf8", "bytes that are no UTF-8 inside a string", _mangling(_invalid_utf8)),
    on_answer("truncated_json", "half a JSON document in a whole frame", _mangling(_truncated_json)),
    on_answer("empty_body", "200 and nothing else", _empty_body),
    on_answer("extra_blank", "blank lines around the pieces (legal)", _extra_blank),
    on_answer("comments", "comment lines between the events (legal, but Google's SDK fails)", _comments),
    counted("small_pieces", "so much per network write (legal)", "bytes", 1, _small_pieces),
)
