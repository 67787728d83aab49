"""Detect the format of a captured body (JSON, event stream, text or binary) and prepare it for display."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.errors import DragomanError
from dragoman.eventstream import EventStreamDecoder
from dragoman.observe.captures import CapturedBody
from dragoman.sse import SseDecoder

_MAX_EVENTS = 2_000  # a page with more events is not readable
_EVENT_TYPES = (":event-type", ":exception-type")


class DisplayEvent(msgspec.Struct, frozen=True):
    """One event of a stream; `data` is the payload as text, usually JSON."""

    name: str
    data: str


class DisplayBody(msgspec.Struct, frozen=True, kw_only=True):
    """A body for display; `left_out` is the number of events beyond the limit."""

    kind: Literal["empty", "json", "events", "text", "bytes"]
    size: int
    text: str = ""
    events: tuple[DisplayEvent, ...] = ()
    left_out: int = 0


def display_body(body: CapturedBody) -> DisplayBody:
    data = body.data
    if not data.strip():
        return DisplayBody(kind="empty", size=len(data))
    if _is_json(data):
        return DisplayBody(kind="json", size=len(data), text=data.decode("utf-8", "replace"))
    events = _decode_aws_events(data) if body.base64 else _decode_sse_events(data)
    if events:
        kept = tuple(events[:_MAX_EVENTS])
        return DisplayBody(kind="events", size=len(data), events=kept, left_out=len(events) - len(kept))
    if body.base64:
        return DisplayBody(kind="bytes", size=len(data))
    return DisplayBody(kind="text", size=len(data), text=body.text)


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _decode_sse_events(data: bytes) -> list[DisplayEvent]:
    decoder = SseDecoder()
    try:
        events = decoder.feed(data) + decoder.close()
    except DragomanError:
        return []
    return [DisplayEvent(one.event, _text(one.data)) for one in events]


def _decode_aws_events(data: bytes) -> list[DisplayEvent]:
    try:
        messages = EventStreamDecoder().feed(data)
    except DragomanError:
        return []
    return [
        DisplayEvent(
            next((one.headers[name] for name in _EVENT_TYPES if name in one.headers), ""), _text(one.payload)
        )
        for one in messages
    ]


def _text(data: bytes | str) -> str:
    return data if isinstance(data, str) else data.decode("utf-8", "replace")
