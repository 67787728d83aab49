"""Google's upload protocols, without I/O: resumable sessions, and two ways to upload in one request.

session = start (upload* | query*)* (upload finalize | cancel)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from email.message import Message
from typing import Any

import msgspec

from dragoman.emulator.question import Question
from dragoman.emulator.refusal import Refusal
from dragoman.emulator.resources.files import MOST_BYTES, Files, Wish, too_large
from dragoman.emulator.resources.moments import read_moment
from dragoman.emulator.resources.names import LETTERS, make_name
from dragoman.emulator.resources.shelf import Shelf
from dragoman.emulator.routes import Route
from dragoman.emulator.validate import parse
from dragoman.emulator.wire import Answer, whole

GRANULARITY = 8_388_608
_SESSION_LIFE = timedelta(days=7)
_SIZE = re.compile(r"[0-9]{1,18}")
_ANY_TYPE = "application/octet-stream"
#: The `uploadType` of Google's other protocol, with the name in this one.
_TYPES = {"media": "raw", "multipart": "multipart", "resumable": "resumable"}


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """A resumable session: the data received so far, and the announced size (-1 if unknown)."""

    wish: Wish
    expected: int
    chunks: tuple[bytes, ...] = ()
    received: int = 0
    final: bool = False

    @property
    def status(self) -> str:
        return "final" if self.final else "active"


class Uploads:
    """The open sessions. Complete uploads are added to `files`."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._sessions: Shelf[Upload] = Shelf(most_bytes=MOST_BYTES)
        self._serial = 0

    def answer(self, route: Route, question: Question) -> Answer:
        session = question.query.get("upload_id", "")
        if session:
            return self._continue(session, route, question)
        protocol = read_protocol(question)
        if protocol == "raw":
            wish = read_wish({}, question.headers.get("content-type", ""))
            return write_done(self._files.add(wish, question.body, route, question))
        if protocol == "multipart":
            metadata, mime_type, data = split_multipart(question)
            wish = read_wish(_read_file(metadata, route), mime_type)
            return write_done(self._files.add(wish, data, route, question))
        if protocol == "resumable" and "start" in read_commands(question):
            return self._start(route, question)
        raise Refusal("Invalid upload request: unknown protocol or command.")

    def _start(self, route: Route, question: Question) -> Answer:
        upload = start_upload(question, _read_file(question.body, route))
        self._files.check_wish(upload.wish, read_moment(question.now))
        self._serial += 1
        session = make_name("upload", self._serial, question.now, alphabet=LETTERS, length=40)
        self._keep(session, upload, question)
        host = question.headers.get("host", "generativelanguage.googleapis.com")
        return write_started(f"http://{host}{question.path}?upload_id={session}&upload_protocol=resumable")

    def _continue(self, session: str, route: Route, question: Question) -> Answer:
        upload = self._sessions.get(session, read_moment(question.now))
        if upload is None:
            raise Refusal(code=404)
        commands = read_commands(question)
        if "cancel" in commands:
            self._sessions.drop(session)
            return write_cancelled()
        if not commands & {"upload", "finalize"}:
            return write_progress(upload)
        try:
            upload = take_chunk(upload, question, final="finalize" in commands)
            if not upload.final:
                self._keep(session, upload, question)
                return write_progress(upload)
            done = self._files.add(upload.wish, b"".join(upload.chunks), route, question)
        except Refusal as refusal:
            return write_problem(refusal, upload)
        self._keep(session, msgspec.structs.replace(upload, chunks=()), question)
        return write_done(done)

    def _keep(self, session: str, upload: Upload, question: Question) -> None:
        expires = read_moment(question.now) + _SESSION_LIFE
        self._sessions.put(session, upload, expires=expires, size=sum(map(len, upload.chunks)))


def read_protocol(question: Question) -> str:
    """Return `resumable`, `raw`, `multipart` or an unsupported value, which the caller rejects."""
    protocol = question.headers.get("x-goog-upload-protocol", "")
    return protocol.lower() or _TYPES.get(question.query.get("uploadType", ""), "")


def read_commands(question: Question) -> set[str]:
    return {word.strip().lower() for word in question.headers.get("x-goog-upload-command", "").split(",")}


def read_wish(file: Mapping[str, Any], mime_type: str) -> Wish:
    """Return the metadata of a CreateFileRequest. The mime type of the header takes precedence."""
    return Wish(
        name=file.get("name", ""),
        display_name=file.get("displayName", ""),
        mime_type=mime_type or file.get("mimeType", "") or _ANY_TYPE,
    )


def start_upload(question: Question, file: Mapping[str, Any]) -> Upload:
    announced = question.headers.get("x-goog-upload-header-content-length", "")
    mime_type = question.headers.get("x-goog-upload-header-content-type", "")
    if announced and not _SIZE.fullmatch(announced):
        raise Refusal("X-Goog-Upload-Header-Content-Length must be the size of the file in bytes.")
    expected = int(announced) if announced else -1
    if expected > MOST_BYTES:
        raise too_large()
    return Upload(wish=read_wish(file, mime_type), expected=expected)


def take_chunk(upload: Upload, question: Question, *, final: bool) -> Upload:
    """Return the session with this chunk appended; raise a `Refusal` if it does not fit."""
    if upload.final:
        raise Refusal("Upload has already been finalized.")
    chunk = question.body
    offset = question.headers.get("x-goog-upload-offset", str(upload.received))
    received = upload.received + len(chunk)
    if offset != str(upload.received):
        raise Refusal(f"Upload offset {offset} does not match the {upload.received} bytes received so far.")
    if not final and len(chunk) % GRANULARITY:
        raise Refusal(f"Only the last chunk may have a size that is no multiple of {GRANULARITY} bytes.")
    if received > MOST_BYTES:
        raise too_large()
    if 0 <= upload.expected < received or (final and received < upload.expected):
        raise Refusal(f"{received} bytes were uploaded where {upload.expected} were announced.")
    return msgspec.structs.replace(
        upload, chunks=(*upload.chunks, chunk), received=received, final=final or upload.final
    )


def write_started(url: str) -> Answer:
    return _answer(
        None,
        ("x-goog-upload-status", "active"),
        ("x-goog-upload-url", url),
        ("x-goog-upload-control-url", url),
        ("x-goog-upload-chunk-granularity", str(GRANULARITY)),
    )


def write_progress(upload: Upload) -> Answer:
    return _answer(
        None,
        ("x-goog-upload-status", upload.status),
        ("x-goog-upload-size-received", str(upload.received)),
    )


def write_done(file: Mapping[str, Any]) -> Answer:
    return _answer({"file": file}, ("x-goog-upload-status", "final"))


def write_cancelled() -> Answer:
    return _answer(None, ("x-goog-upload-status", "cancelled"))


def write_problem(refusal: Refusal, upload: Upload) -> Answer:
    """Return the error of a rejected command, with the status of the session.

    Clients retry a response without the status header.
    """
    body = whole(refusal.body(), refusal.code)
    return msgspec.structs.replace(body, headers=(("x-goog-upload-status", upload.status),))


def split_multipart(question: Question) -> tuple[bytes, str, bytes]:
    """Return the metadata, the media type and the data of a `multipart/related` body."""
    header = Message()
    header["content-type"] = question.headers.get("content-type", "")
    boundary = str(header.get_param("boundary", "")).encode()
    pieces = question.body.split(b"--" + boundary) if boundary else []
    if len(pieces) != 4:
        raise Refusal("The multipart upload must have a part with metadata and a part with the file.")
    (_, metadata), (mime_type, data) = (_read_part(piece) for piece in pieces[1:3])
    return metadata, mime_type, data


def _read_file(body: bytes, route: Route) -> Mapping[str, Any]:
    file: Mapping[str, Any] = parse(body, route.backend, "CreateFileRequest").get("file", {})
    return file


def _read_part(piece: bytes) -> tuple[str, bytes]:
    head, _, body = piece.partition(b"\r\n\r\n")
    types = [
        line for line in head.decode("latin-1").split("\r\n") if line.lower().startswith("content-type:")
    ]
    return (types[0].partition(":")[2].strip() if types else ""), body.removesuffix(b"\r\n")


def _answer(body: Any, *headers: tuple[str, str]) -> Answer:
    answer = Answer(status=200) if body is None else whole(body)
    return msgspec.structs.replace(answer, headers=headers)
