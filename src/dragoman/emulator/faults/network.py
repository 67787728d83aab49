"""Faults of the network: delays, closed or refused connections, wrong headers and corrupted bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from dragoman.emulator.director import ApiRequest
from dragoman.emulator.faults.kind import FaultKind, numeric_fault, response_fault
from dragoman.emulator.http_messages import (
    CloseConnection,
    ConnectionAction,
    HttpResponse,
    RefuseConnections,
    Wait,
)

_NOT_UTF8 = b"\xff\xfe"
_replace = msgspec.structs.replace


def _slow_first_byte(answer: HttpResponse, _: ApiRequest, seconds: float) -> HttpResponse:
    return _replace(answer, actions_before_head=(*answer.actions_before_head, Wait(seconds)))


def _slow_stream(answer: HttpResponse, _: ApiRequest, seconds: float) -> HttpResponse:
    slow: list[ConnectionAction] = []
    for act in _at_least_two(answer):
        slow += [Wait(seconds), act] if slow else [act]
    return _replace(answer, actions=tuple(slow))


def _silence(answer: HttpResponse, _: ApiRequest, seconds: float) -> HttpResponse:
    acts = _at_least_two(answer)
    middle = (len(acts) + 1) // 2
    return _replace(answer, actions=(*acts[:middle], Wait(seconds), *acts[middle:]))


def _at_least_two(answer: HttpResponse) -> tuple[ConnectionAction, ...]:
    """Return the acts of the response, split in two if there is only one."""
    if len(answer.actions) != 1:
        return answer.actions
    first, rest = _split(answer.actions, answer.content_length // 2)
    return (*first, *rest)


def _cut_after(answer: HttpResponse, _: ApiRequest, count: float) -> HttpResponse:
    return _close_after(answer, int(count), CloseConnection())


def _reset_after(answer: HttpResponse, _: ApiRequest, count: float) -> HttpResponse:
    return _close_after(answer, int(count), CloseConnection(reset=True))


def _close_after(answer: HttpResponse, count: int, cut: CloseConnection) -> HttpResponse:
    """Insert a cut after `count` bytes. The unsent rest stays in `actions` for the content-length."""
    sent, unsent = _split(answer.actions, count)
    return _replace(answer, actions=(*sent, cut, *unsent))


def _split(
    acts: Sequence[ConnectionAction], count: int
) -> tuple[list[ConnectionAction], list[ConnectionAction]]:
    """Return the acts up to byte `count`, and the rest."""
    before: list[ConnectionAction] = []
    for index, act in enumerate(acts):
        size = len(act) if isinstance(act, bytes) else 0
        if isinstance(act, bytes) and size > count:
            left = [act[:count]] if count else []
            return [*before, *left], [act[count:], *acts[index + 1 :]]
        before.append(act)
        count -= size
    return before, []


def _reset(answer: HttpResponse, _: ApiRequest) -> HttpResponse:
    return _replace(answer, actions_before_head=(*answer.actions_before_head, CloseConnection(reset=True)))


def _connections_refused(answer: HttpResponse, _: ApiRequest, seconds: float) -> HttpResponse:
    return _replace(answer, actions_before_head=(*answer.actions_before_head, RefuseConnections(seconds)))


def _wrong_content_type(answer: HttpResponse, _: ApiRequest) -> HttpResponse:
    return _replace(answer, content_type="text/plain; charset=utf-8")


def _empty_body(answer: HttpResponse, _: ApiRequest) -> HttpResponse:
    return _replace(answer, actions=())


def _invalid_utf8(piece: bytes) -> bytes:
    """Insert invalid bytes into the first string of the piece."""
    head, quote, rest = piece.partition(b'":"')
    return head + quote + _NOT_UTF8 + rest


def _truncated_json(piece: bytes) -> bytes:
    """Truncate the JSON but keep the end of the frame: `data: {"candi\\r\\n\\r\\n`."""
    text = piece.rstrip(b"\r\n")
    return text[: (len(text) + 1) // 2] + piece[len(text) :]


def _changing_middle_write(
    change: Callable[[bytes], bytes],
) -> Callable[[HttpResponse, ApiRequest], HttpResponse]:
    """Return a function that changes the middle piece of a response."""

    def mangle(answer: HttpResponse, _: ApiRequest) -> HttpResponse:
        places = [index for index, act in enumerate(answer.actions) if isinstance(act, bytes)]
        middle = places[len(places) // 2] if places else -1
        acts = (
            change(act) if index == middle and isinstance(act, bytes) else act
            for index, act in enumerate(answer.actions)
        )
        return _replace(answer, actions=tuple(acts))

    return mangle


def _extra_blank(answer: HttpResponse, _: ApiRequest) -> HttpResponse:
    return _insert_between(answer, b"\r\n\r\n")


def _comments(answer: HttpResponse, asked: ApiRequest) -> HttpResponse:
    """Insert the keep-alive comments of a proxy; blank lines if the body is JSON, which has no comments."""
    return _insert_between(
        answer, b": keep-alive\r\n" if asked.framing == "sse" and answer.streamed else b"\r\n"
    )


def _insert_between(answer: HttpResponse, filling: bytes) -> HttpResponse:
    """Insert bytes before every piece and after the last one."""
    filled = [act for piece in answer.body_writes for act in (filling, piece)]
    return _replace(answer, actions=(*filled, filling))


def _small_pieces(answer: HttpResponse, _: ApiRequest, count: float) -> HttpResponse:
    size = max(1, int(count))
    acts: list[ConnectionAction] = []
    for act in answer.actions:
        if isinstance(act, bytes):
            acts += [act[start : start + size] for start in range(0, len(act), size)]
        else:
            acts.append(act)
    return _replace(answer, actions=tuple(acts))


NETWORK_FAULTS: tuple[FaultKind, ...] = (
    numeric_fault(
        "slow_first_byte", "nothing at all for so long, then the answer", "seconds", 5, _slow_first_byte
    ),
    numeric_fault("slow_stream", "a pause between two pieces", "seconds", 0.5, _slow_stream),
    numeric_fault("silence", "one long pause in the middle of the answer", "seconds", 60, _silence),
    numeric_fault("cut_after", "the connection ends after so much of the body", "bytes", 200, _cut_after),
    response_fault("reset", "the connection is reset before any answer", _reset),
    numeric_fault(
        "reset_after", "the connection is reset after so much of the body", "bytes", 200, _reset_after
    ),
    numeric_fault(
        "refused",
        "the connection is reset, and new ones are refused for so long",
        "seconds",
        1,
        _connections_refused,
    ),
    response_fault("wrong_content_type", "the right answer labelled text/plain", _wrong_content_type),
    response_fault(
        "invalid_utf8", "bytes that are no UTF-8 inside a string", _changing_middle_write(_invalid_utf8)
    ),
    response_fault(
        "truncated_json", "half a JSON document in a whole frame", _changing_middle_write(_truncated_json)
    ),
    response_fault("empty_body", "200 and nothing else", _empty_body),
    response_fault("extra_blank", "blank lines around the pieces (legal)", _extra_blank),
    response_fault("comments", "comment lines between the events (legal, but Google's SDK fails)", _comments),
    numeric_fault("small_pieces", "so much per network write (legal)", "bytes", 1, _small_pieces),
)
