"""What goes over the wire: an answer is a status, headers and acts, and a stream is its chunks framed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any, Literal

import msgspec

JSON_TYPE = "application/json; charset=UTF-8"
SSE_TYPE = "text/event-stream"
HTML_TYPE = "text/html; charset=UTF-8"

#: One answer, a stream of events, or a stream that is one JSON array.
Framing = Literal["whole", "sse", "array"]


class Wait(msgspec.Struct, frozen=True):
    """Nothing is sent for this long."""

    seconds: float


class Cut(msgspec.Struct, frozen=True):
    """The connection ends here, in the middle of the message; `reset` sends a TCP reset instead of a goodbye."""

    reset: bool = False


class Refuse(msgspec.Struct, frozen=True):
    """Nobody is at home for this long: this connection is reset, new ones are refused."""

    seconds: float


#: What happens on the connection after the head, in order; bytes are sent as one write.
Act = bytes | Wait | Cut | Refuse


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP answer. `before` happens before the head is sent; `streamed` has no content-length."""

    status: int
    content_type: str = JSON_TYPE
    headers: tuple[tuple[str, str], ...] = ()
    before: tuple[Act, ...] = ()
    acts: tuple[Act, ...] = ()
    streamed: bool = False

    @property
    def pieces(self) -> tuple[bytes, ...]:
        """Only what is sent, without when; what stands behind a cut is not."""
        sent = takewhile(lambda act: not isinstance(act, Cut | Refuse), self.acts)
        return tuple(act for act in sent if isinstance(act, bytes))

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def length(self) -> int:
        """The content-length: a cut message promises more than it sends, or nobody would notice."""
        promised = sum(len(act) for act in self.acts if isinstance(act, bytes))
        return promised + bool(self.acts and isinstance(self.acts[-1], Cut | Refuse))


def whole(body: Any, status: int = 200) -> Answer:
    return Answer(status=status, acts=(msgspec.json.encode(body),))


def framed(chunks: Iterable[Mapping[str, Any]], framing: Framing) -> Answer:
    """The chunks of a stream as its answer."""
    if framing == "sse":
        acts = tuple(map(frame_sse, chunks))
        return Answer(status=200, content_type=SSE_TYPE, acts=acts, streamed=True)
    return Answer(status=200, acts=tuple(frame_array(chunks)), streamed=True)


def frame_sse(chunk: Mapping[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(chunk) + b"\r\n\r\n"


def frame_array(chunks: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """`[{…}`, then `\\n,\\r\\n{…}` each, then `]`."""
    for index, chunk in enumerate(chunks):
        yield (b"\n,\r\n" if index else b"[") + msgspec.json.encode(chunk)
    yield b"]"
