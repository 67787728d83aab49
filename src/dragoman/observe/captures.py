"""Captures: the four stages of requests as files in the state folder, without secrets, bounded; the oldest go first.

One file for a request, named by its id, written by a thread of its own: whoever is served waits for no disk.
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

import msgspec

from dragoman.observe.record import Record, Stages
from dragoman.redact import REDACTED, Redactor, sounds_secret

FOLDER = "captures"
_SUFFIX = ".json"
_QUEUE = 256  # a disk that is slower than the requests loses captures, never requests
_LOOKS = 16  # so often the folder is looked at while as much is written as it may hold
_log = logging.getLogger("dragoman")


class Body(msgspec.Struct, frozen=True, omit_defaults=True):
    """Text where it is text; frames of Amazon's are bytes."""

    text: str = ""
    base64: str = ""

    @property
    def data(self) -> bytes:
        return base64.b64decode(self.base64) if self.base64 else self.text.encode()


class Exchanged(msgspec.Struct, frozen=True):
    """One attempt: what Google was sent, and what it answered."""

    request: Body
    answer: Body


class Captured(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it was kept."""

    record: Record
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    client_request: Body = Body()
    upstream: tuple[Exchanged, ...] = ()
    client_answer: Body = Body()
    cut: bool = False


class Captures:
    """Keeps the captures of a folder within `max_bytes`."""

    def __init__(self, folder: Path, *, max_bytes: int, redactor: Redactor | None = None) -> None:
        self._folder = folder
        self._redactor = redactor or Redactor()
        self._max_bytes = max_bytes
        self._unlooked = (
            max_bytes  # bytes that were written since the last look; what lay there before is not known
        )
        self._waiting: queue.Queue[tuple[Record, Stages] | None] = queue.Queue(_QUEUE)
        self._lost = 0
        self._writer: threading.Thread | None = None

    def finished(self, record: Record, stages: Stages | None) -> None:
        if stages is None or not stages.client_request:
            return
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_all, name="captures", daemon=True)
            self._writer.start()
        try:
            self._waiting.put_nowait((record, stages))
        except queue.Full:
            self._lost += 1

    async def close(self) -> None:
        if self._writer is not None:
            self._waiting.put(None)
            self._writer.join()
            self._writer = None

    def _write_all(self) -> None:
        while (item := self._waiting.get()) is not None:
            try:
                self._write(capture(*item, self._redactor))
            except OSError as error:
                _log.warning("a capture could not be written: %s", error.strerror)
            except Exception:  # whoever watches must not break what is watched
                _log.exception("%s could not be captured", item[0].id)
            if self._lost:
                _log.warning("%d captures were lost: the disk is slower than the requests", self._lost)
                self._lost = 0

    def _write(self, captured: Captured) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"{captured.record.id}{_SUFFIX}"
        data = msgspec.json.encode(captured)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        self._unlooked += len(data)
        if self._unlooked > self._max_bytes // _LOOKS:
            self._unlooked = 0
            self.prune()

    def prune(self) -> None:
        """Forget the oldest while there is too much."""
        files = sorted(_aged(self._folder))
        excess = sum(size for _, size, _ in files) - self._max_bytes
        for _, size, path in files:
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= size


def capture(record: Record, stages: Stages, redactor: Redactor) -> Captured:
    """What is kept of a request: bodies whose secrets are gone."""

    def body(data: bytes) -> Body:
        return body_of(redactor.body(data))

    def words(named: dict[str, str]) -> dict[str, str]:
        return {
            name: REDACTED if sounds_secret(name) else redactor.text(value) for name, value in named.items()
        }

    return Captured(
        record=record,
        headers=words(stages.headers),
        query=words(stages.query),
        client_request=body(stages.client_request),
        upstream=tuple(Exchanged(body(request), body(answer)) for request, answer in stages.upstream),
        client_answer=body(stages.client_answer),
        cut=stages.cut,
    )


def find_capture(folder: Path, identity: str) -> Captured | None:
    """By the id of its request, or the beginning of one that is the only such."""
    if not identity or "/" in identity or os.sep in identity:
        return None
    exact = folder / f"{identity}{_SUFFIX}"
    near = [path for path in _files(folder) if path.name.startswith(identity)]
    path = exact if exact in near else near[0] if len(near) == 1 else None
    return read_capture(path) if path is not None else None


def recent_captures(folder: Path, most: int) -> list[Captured]:
    """The newest first; one that is being written is passed over."""
    newest = sorted(_aged(folder), reverse=True)[:most]
    return [found for _, _, path in newest if (found := read_capture(path)) is not None]


def read_capture(path: Path) -> Captured | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Captured)
    except (OSError, msgspec.DecodeError):
        return None


def _files(folder: Path) -> Iterator[Path]:
    return folder.glob(f"*{_SUFFIX}") if folder.is_dir() else iter(())


def _aged(folder: Path) -> Iterator[tuple[int, int, Path]]:
    """When each was written, and its size; another worker may take one away meanwhile."""
    for path in _files(folder):
        with contextlib.suppress(FileNotFoundError):
            known = path.stat()
            yield known.st_mtime_ns, known.st_size, path


def body_of(data: bytes) -> Body:
    try:
        return Body(text=data.decode())
    except UnicodeDecodeError:
        return Body(base64=base64.b64encode(data).decode())
