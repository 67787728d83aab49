"""The head of an answer in HTTP/1.1: pure, but for the date."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

import msgspec

from dragoman.server.wire.heads import date, is_bodiless


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


_FRAMES = {Framing.CHUNKS: b"transfer-encoding: chunked", Framing.LENGTH: b"content-length: %d"}
_STAYING = {False: b"connection: close", True: b"connection: keep-alive"}
#: What the server says if the application does not, or in its place.
_OURS = frozenset({b"content-length", b"connection", b"transfer-encoding", b"date"})
_STATUS_LINES: dict[int, bytes] = {}


def open_answer(
    status: int,
    fields: Iterable[tuple[bytes, bytes]],
    *,
    method: str,
    modern: bool,
    keeps_alive: bool,
    length: int | None,
) -> Opening:
    """`length` is known if all of the body is; the application may have said one too."""
    lines = [status_line(status)]
    dated = False
    for field in fields:
        if field[0] not in _OURS:
            lines.append(b": ".join(field))
            continue
        name, value = field
        if name == b"content-length":
            length = int(value)
        elif name == b"connection":
            keeps_alive = keeps_alive and value.lower() != b"close"
        elif name == b"date":
            dated = True
            lines.append(b": ".join(field))
    framing = _framing(method, status, modern=modern, length=length)
    if length is not None and status not in (204, 304):
        lines.append(_FRAMES[Framing.LENGTH] % length)
    elif framing == Framing.CHUNKS:
        lines.append(_FRAMES[framing])
    keeps_alive = keeps_alive and framing != Framing.CLOSE
    if keeps_alive != modern:
        lines.append(_STAYING[keeps_alive])
    if not dated:
        lines.append(b"date: " + date())
    lines += (b"", b"")
    head = b"\r\n".join(lines)
    breaks = len(lines) - 1
    if head.count(b"\n") != breaks or head.count(b"\r") != breaks:
        raise ValueError("a header has a line break in it")
    return Opening(head, framing, length or 0, keeps_alive)


def _framing(method: str, status: int, *, modern: bool, length: int | None) -> str:
    if is_bodiless(method, status):
        return Framing.NONE
    if length is not None:
        return Framing.LENGTH
    return Framing.CHUNKS if modern else Framing.CLOSE


def status_line(status: int) -> bytes:
    line = _STATUS_LINES.get(status)
    if line is None:
        try:
            phrase = HTTPStatus(status).phrase
        except ValueError:
            phrase = ""
        line = _STATUS_LINES[status] = f"HTTP/1.1 {status:d} {phrase}".encode("ascii")
    return line
