"""The head of an answer in HTTP/1.1: pure, but for the date."""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from dragoman.server.wire.heads import TextFields, date, is_bodiless


class Framing:
    """How the other side knows where a body ends."""

    CHUNKS = "chunks"
    LENGTH = "length"
    CLOSE = "close"
    NONE = "none"


class Opening(msgspec.Struct, frozen=True, gc=False):
    """`length` counts where the framing is a length."""

    head: bytes
    framing: str
    length: int
    keeps_alive: bool


class _Form(msgspec.Struct, frozen=True):
    """Of all answers with this status and these names: `text` takes their values.

    Some it swallows, because the server says them itself; `lengths` and `connections` are their places.
    """

    text: str
    breaks: int
    lengths: tuple[int, ...]
    connections: tuple[int, ...]
    dated: bool


_STAYING = {False: "connection: close\r\n", True: "connection: keep-alive\r\n"}
_SWALLOWED = frozenset({"content-length", "connection", "transfer-encoding"})
_UNTOLD = frozenset({204, 304})  # their length says nothing
_FORMS: dict[tuple[int, tuple[str, ...]], _Form] = {}
_MOST_FORMS = 256


def open_answer(
    status: int, fields: TextFields, *, method: str, modern: bool, keeps_alive: bool, length: int | None
) -> Opening:
    """`length` is known if all of the body is; the application may have said one too."""
    names, values = zip(*fields, strict=True) if fields else ((), ())
    form = _FORMS.get((status, names)) or _learn(status, names)
    text = form.text % values
    if text.count("\n") != form.breaks or text.count("\r") != form.breaks:
        raise ValueError("a header has a line break in it")
    for at in form.lengths:
        length = int(values[at])
    for at in form.connections:
        keeps_alive = keeps_alive and values[at].lower() != "close"
    framing = _framing(method, status, modern=modern, length=length)
    framed = staying = dated = ""
    if length is not None and status not in _UNTOLD:
        framed = f"content-length: {length}\r\n"
    elif framing == Framing.CHUNKS:
        framed = "transfer-encoding: chunked\r\n"
    keeps_alive = keeps_alive and framing != Framing.CLOSE
    if keeps_alive != modern:
        staying = _STAYING[keeps_alive]
    if not form.dated:
        dated = f"date: {date()}\r\n"
    head = f"{text}{framed}{staying}{dated}\r\n".encode("latin-1")
    return Opening(head, framing, length or 0, keeps_alive)


def _framing(method: str, status: int, *, modern: bool, length: int | None) -> str:
    if is_bodiless(method, status):
        return Framing.NONE
    if length is not None:
        return Framing.LENGTH
    return Framing.CHUNKS if modern else Framing.CLOSE


def _learn(status: int, names: tuple[str, ...]) -> _Form:
    lines = [_status_line(status)]
    lines += ("%.0s" if name in _SWALLOWED else f"{name.replace('%', '%%')}: %s\r\n" for name in names)
    form = _Form(
        "".join(lines),
        1 + sum(name not in _SWALLOWED for name in names),
        _places(names, "content-length"),
        _places(names, "connection"),
        "date" in names,
    )
    if len(_FORMS) >= _MOST_FORMS:
        _FORMS.clear()
    _FORMS[status, names] = form
    return form


def _places(names: tuple[str, ...], wanted: str) -> tuple[int, ...]:
    return tuple(at for at, name in enumerate(names) if name == wanted)


def _status_line(status: int) -> str:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status:d} {phrase}\r\n"
