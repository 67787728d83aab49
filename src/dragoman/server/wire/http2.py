"""A connection that speaks HTTP/2 from its first byte, as aws-sdk-js does; the protocol itself is the h2 package's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    PingReceived,
    PriorityUpdated,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    UnknownFrameReceived,
    WindowUpdated,
)
from h2.exceptions import ProtocolError

from dragoman.http1.heads import BadMessage, Fields
from dragoman.server.wire.heads import Address, date, make_scope
from dragoman.server.wire.house import FIRST_HEAD_S, House
from dragoman.server.wire.http2_frames import FrameHeads
from dragoman.server.wire.http2_heads import read_head
from dragoman.server.wire.http2_protocol import STREAMS, make_connection
from dragoman.server.wire.http2_turn import Http2Turn
from dragoman.server.wire.outflow import Outflow

_CONNECTION_BYTES = 1024 * 1024  # of bodies that nobody has taken yet, of all streams together
_FIRST_WINDOW = 65_535  # of a connection, by the protocol
_PATIENCE = 1_000  # frames that bring nothing, from one look of the server's to the next
_RESET_COSTS = 5
# h2 counts the open ones. An application ends a little after its stream, so a client may have its next one here by then.
_MOST_RUNNING = 2 * STREAMS
_UPDATES = 2  # of windows, by an honest reader, for a frame that it got: the stream's and the connection's
_DRIBBLE_BYTES = 1024  # a window that lets less through, piece after piece, is not an honest reader's


class Http2Connection(Outflow):
    """One turn for each stream. Bodies are taken from the client no faster than the application takes them."""

    __slots__ = (
        "_client",
        "_frames",
        "_goodbye",
        "_h2",
        "_patience",
        "_server",
        "_since",
        "_streams",
        "running",
    )

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self._h2 = make_connection(house.max_head_bytes)
        self._frames = FrameHeads()
        self._streams: dict[int, Http2Turn] = {}
        self.running = 0  # applications, with those whose clients have left
        self._patience = _PATIENCE
        self._goodbye = False
        self._since = house.now  # without a stream
        self._client: Address = ("", 0)
        self._server: Address = ("", 0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._client = (transport.get_extra_info("peername") or ("", 0))[:2]
        self._server = (transport.get_extra_info("sockname") or ("", 0))[:2]
        self.house.guests[self] = None
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_CONNECTION_BYTES - _FIRST_WINDOW)
        self.flush()

    def data_received(self, data: bytes) -> None:
        if not self._frames.feed(data):
            self._hang_up(ErrorCodes.FRAME_SIZE_ERROR)
            return
        self._patience -= self._frames.window_updates
        if self._patience < 0 or self._frames.spare < 0:  # before h2 reads all of them
            self._hang_up(ErrorCodes.ENHANCE_YOUR_CALM)
            return
        try:
            events = self._h2.receive_data(data)
        except ProtocolError:  # h2 has
            self.flush()
            self.transport.close()
            return
        for event in events:
            handler = _HANDLERS.get(type(event))
            if handler is not None:
                handler(self, event)
        if self._patience < 0:
            self._hang_up(ErrorCodes.ENHANCE_YOUR_CALM)
        else:
            self.flush()

    def eof_received(self) -> bool:
        self._leave_all()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.end_writing()
        self.house.leave(self)
        self._leave_all()

    def pause_writing(self) -> None:
        """Who does not read our answers to its questions may ask no more."""
        super().pause_writing()
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def look(self, now: float) -> None:
        self._patience = _PATIENCE
        if self._streams or self.transport.is_closing():
            self.look_at_reader(now)
        elif now - self._since > self._idle_s:
            self._say_goodbye()
        for turn in [*self._streams.values()]:
            if turn.blocked_since and now - turn.blocked_since > self.house.settings.reader_idle_s:
                self.give_up(turn, ErrorCodes.CANCEL)
                turn.leave()

    @property
    def _idle_s(self) -> float:
        keep_alive_s = self.house.settings.keep_alive_s
        return keep_alive_s if self._has_asked else min(keep_alive_s, FIRST_HEAD_S)

    @property
    def _has_asked(self) -> bool:
        return self._h2.highest_inbound_stream_id > 0

    def may_go(self, *, asked: bool) -> bool:
        return not self._streams and (not self._has_asked or (asked and self._since < self.house.now))

    def drain(self) -> None:
        self._say_goodbye()

    def flush(self) -> None:
        data = self._h2.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def acknowledge(self, size: int, stream: int) -> None:
        if size:
            self._h2.acknowledge_received_data(size, stream)
            self.flush()

    def finish(self, turn: Http2Turn) -> None:
        """Nothing more is said or heard on this stream."""
        if self._streams.pop(turn.stream, None) is None:
            return
        self.acknowledge(turn.unacknowledged, turn.stream)
        self._since = self.house.now
        if self._goodbye and not self._streams:
            self.transport.close()

    def give_up(self, turn: Http2Turn, why: ErrorCodes) -> None:
        if turn.stream in self._streams:
            self._reset(turn.stream, why)
            self.finish(turn)
            self.flush()

    def window(self, stream: int) -> int:
        return min(self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size)

    def send_head(self, stream: int, fields: Fields, *, end: bool) -> None:
        self._h2.send_headers(stream, fields, end_stream=end)

    def send_data(self, stream: int, data: bytes, *, end: bool, cut: bool = False) -> None:
        """`cut`: the window lets through no more of it."""
        self._h2.send_data(stream, data, end_stream=end)
        if not cut or len(data) >= _DRIBBLE_BYTES:
            self._patience = min(self._patience + _UPDATES, _PATIENCE)
        self.flush()

    def _hang_up(self, why: ErrorCodes) -> None:
        self._h2.close_connection(why)
        self.flush()
        self.transport.close()

    def _say_goodbye(self) -> None:
        if not self._goodbye:
            self._goodbye = True
            self._h2.close_connection()
            self.flush()
        if not self._streams:
            self.transport.close()

    def _leave_all(self) -> None:
        streams, self._streams = self._streams, {}
        for turn in streams.values():
            turn.leave()

    def _reset(self, stream: int, why: ErrorCodes) -> None:
        with suppress(ProtocolError):  # over already
            self._h2.reset_stream(stream, why)

    def _on_request(self, event: RequestReceived) -> None:
        stream = event.stream_id
        if self._goodbye or self.running >= _MOST_RUNNING or self.house.is_full:
            self._reset(stream, ErrorCodes.REFUSED_STREAM)
            return
        try:
            method, target, fields = read_head(event.headers, self.house.max_head_bytes)
        except BadMessage as bad:
            self._refuse(stream, bad)
            return
        self.running += 1
        self._streams[stream] = turn = Http2Turn(self, stream, method, fields)
        turn.begin(make_scope("2", method, target, fields, self._client, self._server))

    def _refuse(self, stream: int, bad: BadMessage) -> None:
        self._patience -= _RESET_COSTS
        body = f"{bad.why}\n".encode()
        length = (b"content-length", b"%d" % len(body))
        plain = (b"content-type", b"text/plain; charset=utf-8")
        head = [(b":status", b"%d" % bad.status), plain, length, (b"date", date().encode())]
        with suppress(ProtocolError):  # the client has taken it back already
            self.send_head(stream, head, end=False)
            if self.window(stream) >= len(body):
                self._h2.send_data(stream, body, end_stream=True)
            self._h2.reset_stream(stream, ErrorCodes.NO_ERROR)

    def _on_data(self, event: DataReceived) -> None:
        stream, size = event.stream_id, event.flow_controlled_length or 0
        turn = self._streams.get(stream)
        if not event.data and event.stream_ended is None:
            self._patience -= 1
        if turn is None or turn.ended:
            self.acknowledge(size, stream)
            return
        turn.unacknowledged += size
        turn.feed(event.data, over=event.stream_ended is not None)

    def _on_end(self, event: StreamEnded) -> None:
        turn = self._streams.get(event.stream_id)
        if turn is not None and not turn.body_over:
            turn.feed(b"", over=True)
        if turn is not None and turn.answered:
            self.finish(turn)

    def _on_reset(self, event: StreamReset) -> None:
        turn = self._streams.get(event.stream_id)
        if turn is None:
            self._patience -= 1
            return
        self._patience -= _RESET_COSTS
        self.finish(turn)
        turn.leave()

    def _on_window(self, event: WindowUpdated) -> None:
        if event.stream_id:
            turn = self._streams.get(event.stream_id)
            if turn is not None:
                turn.unblock()
        else:
            self._unblock_all()

    def _on_settings(self, _: RemoteSettingsChanged) -> None:
        self._patience -= 1
        self._unblock_all()  # the windows may be larger now

    def _unblock_all(self) -> None:
        if self._h2.outbound_flow_control_window > 0:
            for turn in [*self._streams.values()]:
                if turn.is_blocked:
                    with suppress(ProtocolError):  # it is over, and we shall be told
                        if self.window(turn.stream) > 0:
                            turn.unblock()

    def _on_nothing(self, _: Event) -> None:
        self._patience -= 1


_HANDLERS: dict[type[Event], Callable[[Http2Connection, Any], None]] = {
    RequestReceived: Http2Connection._on_request,
    DataReceived: Http2Connection._on_data,
    StreamEnded: Http2Connection._on_end,
    StreamReset: Http2Connection._on_reset,
    WindowUpdated: Http2Connection._on_window,
    RemoteSettingsChanged: Http2Connection._on_settings,
    PingReceived: Http2Connection._on_nothing,
    PriorityUpdated: Http2Connection._on_nothing,
    UnknownFrameReceived: Http2Connection._on_nothing,
}
