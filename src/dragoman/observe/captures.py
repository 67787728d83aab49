"""Captures: the four stages of a request in one file of the state folder, without secrets.

A file is named after the request id. A thread writes it, so that no request waits for the disk. When the
folder is too large, the oldest captures are deleted. For display, the format of a captured body (JSON, event
stream, text or binary) is detected.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from dragoman.errors import DragomanError
from dragoman.http.aws_eventstream import EventStreamDecoder
from dragoman.http.sse import SseDecoder
from dragoman.observe.record import RequestRecord, RequestStages
from dragoman.redact import REDACTED, Redactor, is_secret_name

CAPTURES_FOLDER = "captures"
_SUFFIX = ".json"
_QUEUE = 256  # when the disk is slower than the requests, captures are dropped
_PRUNES_PER_MAX_BYTES = 16  # how often the folder is pruned while `max_bytes` are written
_log = logging.getLogger("dragoman")


class CapturedBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """A body as text, or as base64 if it is not UTF-8 (AWS event stream frames)."""

    text: str = ""
    base64: str = ""

    @property
    def data(self) -> bytes:
        return base64.b64decode(self.base64) if self.base64 else self.text.encode()


class CapturedAttempt(msgspec.Struct, frozen=True):
    """One attempt: the request to Google and its answer."""

    request: CapturedBody
    answer: CapturedBody


class CapturedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A captured request, as it is stored."""

    record: RequestRecord
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    client_request: CapturedBody = CapturedBody()
    upstream: tuple[CapturedAttempt, ...] = ()
    client_answer: CapturedBody = CapturedBody()
    cut: bool = False


class CaptureWriter:
    """An observer that writes captures and keeps their folder below `max_bytes`."""

    def __init__(self, folder: Path, *, max_bytes: int, redactor: Redactor | None = None) -> None:
        self._folder = folder
        self._redactor = redactor or Redactor()
        self._max_bytes = max_bytes
        self._bytes_since_prune = max_bytes  # prune after the first write: earlier captures may exist
        self._queue: queue.Queue[tuple[RequestRecord, RequestStages] | None] = queue.Queue(_QUEUE)
        self._dropped = 0
        self._writer: threading.Thread | None = None

    def on_request_end(self, record: RequestRecord, stages: RequestStages | None) -> None:
        if stages is None or not stages.client_request:
            return
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_all, name="captures", daemon=True)
            self._writer.start()
        try:
            self._queue.put_nowait((record, stages))
        except queue.Full:
            self._dropped += 1

    async def close(self) -> None:
        if self._writer is not None:
            self._queue.put(None)
            self._writer.join()
            self._writer = None

    def _write_all(self) -> None:
        while (item := self._queue.get()) is not None:
            try:
                self._write(build_capture(*item, self._redactor))
            except OSError as error:
                _log.warning("a capture could not be written: %s", error.strerror)
            except Exception:  # an observer must not break requests
                _log.exception("%s could not be captured", item[0].id)
            if self._dropped:
                _log.warning("%d captures were lost: the disk is slower than the requests", self._dropped)
                self._dropped = 0

    def _write(self, captured: CapturedRequest) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{captured.record.id}{_SUFFIX}"
        data = msgspec.json.encode(captured)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        self._bytes_since_prune += len(data)
        if self._bytes_since_prune > self._max_bytes // _PRUNES_PER_MAX_BYTES:
            self._bytes_since_prune = 0
            self.prune()

    def prune(self) -> None:
        """Delete the oldest captures until the folder is within its limit."""
        files = sorted(_files_with_age(self._folder))
        excess = sum(size for _, size, _ in files) - self._max_bytes
        for _, size, path in files:
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= size


def build_capture(record: RequestRecord, stages: RequestStages, redactor: Redactor) -> CapturedRequest:
    """Build the capture of a request with all secrets redacted."""

    def body(data: bytes) -> CapturedBody:
        return make_body(redactor.body(data))

    def texts(named: dict[str, str]) -> dict[str, str]:
        return {
            name: REDACTED if is_secret_name(name) else redactor.text(value) for name, value in named.items()
        }

    return CapturedRequest(
        record=record,
        headers=texts(stages.headers),
        query=texts(stages.query),
        client_request=body(stages.client_request),
        upstream=tuple(CapturedAttempt(body(request), body(answer)) for request, answer in stages.upstream),
        client_answer=body(stages.client_answer),
        cut=stages.cut,
    )


def find_capture(folder: Path, identity: str) -> CapturedRequest | None:
    """Return the capture with this request id, or the only one whose id begins with it."""
    if not identity or "/" in identity or os.sep in identity:
        return None
    exact = folder / f"{identity}{_SUFFIX}"
    near = [path for path in _files(folder) if path.name.startswith(identity)]
    path = exact if exact in near else near[0] if len(near) == 1 else None
    return read_capture(path) if path is not None else None


def recent_captures(folder: Path, most: int) -> list[CapturedRequest]:
    """Return the newest captures first; files that cannot be decoded (still being written) are skipped."""
    newest = sorted(_files_with_age(folder), reverse=True)[:most]
    return [found for _, _, path in newest if (found := read_capture(path)) is not None]


def read_capture(path: Path) -> CapturedRequest | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=CapturedRequest)
    except (OSError, msgspec.DecodeError):
        return None


def _files(folder: Path) -> Iterator[Path]:
    return folder.glob(f"*{_SUFFIX}") if folder.is_dir() else iter(())


def _files_with_age(folder: Path) -> Iterator[tuple[int, int, Path]]:
    """Yield modification time, size and path of each capture; another worker may delete files meanwhile."""
    for path in _files(folder):
        with contextlib.suppress(FileNotFoundError):
            stat = path.stat()
            yield stat.st_mtime_ns, stat.st_size, path


def make_body(data: bytes) -> CapturedBody:
    try:
        return CapturedBody(text=data.decode())
    except UnicodeDecodeError:
        return CapturedBody(base64=base64.b64encode(data).decode())


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
        first = tuple(events[:_MAX_EVENTS])
        return DisplayBody(kind="events", size=len(data), events=first, left_out=len(events) - len(first))
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
