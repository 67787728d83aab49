"""The Files API, the insertion of files into the requests that name them, and Google's upload protocols.

The protocols are without I/O: resumable sessions, and two ways to upload in one request.

    session = start (upload* | query*)* (upload finalize | cancel)
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from email.message import Message
from typing import Any

import msgspec

from dragoman.emulator.errors import ApiError, catch_all_error, field_rules_error
from dragoman.emulator.http_messages import HttpRequest, HttpResponse, json_response
from dragoman.emulator.resources.resource_store import (
    LETTERS,
    ResourceStore,
    format_timestamp,
    make_resource_name,
    paginate,
    parse_timestamp,
)
from dragoman.emulator.routes import GeminiRoute
from dragoman.emulator.validate import parse_request

#: Google stores 20 GB; the emulator stores files in memory.
MAX_FILE_BYTES = 256 * 1024 * 1024
_DEFAULT_PAGE = 10
_MAX_PER_PAGE = 100

_TTL = timedelta(hours=48)
#: Google processes a video before it can be used; all other files are ready at once.
_VIDEO_PROCESSING = timedelta(seconds=1)

_NAME = re.compile(r"files/[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_MIME_TYPE = re.compile(
    r"(?:application|audio|font|image|message|model|multipart|text|video)/[\w.+-]+(?:\s*;.*)?", re.IGNORECASE
)
_URI = re.compile(r"(?:https?://[^/]+/v1(?:beta|alpha)?/)?files/([a-z0-9-]+)")


class StoredFile(msgspec.Struct, frozen=True, kw_only=True):
    """An uploaded file with its data."""

    name: str
    display_name: str
    mime_type: str
    data: bytes
    created: datetime
    uri: str

    def is_ready(self, now: datetime) -> bool:
        return not self.mime_type.startswith("video/") or now >= self.created + _VIDEO_PROCESSING


class FileMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The file metadata that the client requests."""

    name: str = ""
    display_name: str = ""
    mime_type: str = ""


class StoredFiles:
    """All files by name."""

    def __init__(self) -> None:
        self._store: ResourceStore[StoredFile] = ResourceStore(most_bytes=MAX_FILE_BYTES)
        self._serial = 0

    def add(
        self, wish: FileMetadata, data: bytes, route: GeminiRoute, http_request: HttpRequest
    ) -> dict[str, Any]:
        """Store a complete upload; return the `file` of the response."""
        now = parse_timestamp(http_request.now)
        self.check_metadata(wish, now)
        if len(data) > MAX_FILE_BYTES:
            raise file_too_large_error()
        self._serial += 1
        name = wish.name or "files/" + make_resource_name(
            "file", self._serial, http_request.now, alphabet=LETTERS, length=12
        )
        # The URI has the host of the request, so that clients which follow it stay with the emulator.
        host = http_request.headers.get("host", "generativelanguage.googleapis.com")
        file = StoredFile(
            name=name,
            display_name=wish.display_name,
            mime_type=wish.mime_type,
            data=data,
            created=now,
            uri=f"http://{host}/{route.backend.version}/{name}",
        )
        self._store.put(name, file, expires=now + _TTL, size=len(data))
        return show_file(file, now)

    def check_metadata(self, wish: FileMetadata, now: datetime) -> None:
        """Raise a `ApiError` unless a file with this metadata can be stored.

        Any well-formed mime type is accepted here; the supported types are checked when a request uses the
        file.
        """
        if not _MIME_TYPE.fullmatch(wish.mime_type):
            raise ApiError(f"Unsupported MIME type: {wish.mime_type}")
        if wish.name and not _NAME.fullmatch(wish.name):
            line = "file.name: must be files/ and up to 40 lower case letters, digits or dashes"
            raise field_rules_error([line], "CreateFileRequest")
        if wish.name and self.find(wish.name, now) is not None:
            raise ApiError(code=409)

    def find(self, name: str, now: datetime) -> StoredFile | None:
        return self._store.get(name, now)

    def list(self, http_request: HttpRequest) -> dict[str, Any]:
        now = parse_timestamp(http_request.now)
        shown = [show_file(file, now) for file in self._store.newest_first(now)]
        return paginate("files", shown, http_request.query, default=_DEFAULT_PAGE, most=_MAX_PER_PAGE)

    def get(self, route: GeminiRoute, http_request: HttpRequest) -> dict[str, Any]:
        now = parse_timestamp(http_request.now)
        return show_file(self._require(route, now), now)

    def delete(self, route: GeminiRoute, http_request: HttpRequest) -> dict[str, Any]:
        self._require(route, parse_timestamp(http_request.now))
        self._store.delete(route.resource)
        return {}

    def download(self, route: GeminiRoute, http_request: HttpRequest) -> dict[str, Any]:
        self._require(route, parse_timestamp(http_request.now))
        raise catch_all_error("only generated files can be downloaded, and this one was uploaded")

    def _require(self, route: GeminiRoute, now: datetime) -> StoredFile:
        file = self.find(route.resource, now)
        if file is None:
            raise file_not_found_error(route.resource)
        return file


def show_file(file: StoredFile, now: datetime) -> dict[str, Any]:
    """Return the resource as `files.get` does."""
    created = format_timestamp(file.created)
    shown: dict[str, Any] = {
        "name": file.name,
        "mimeType": file.mime_type,
        "sizeBytes": str(len(file.data)),
        "createTime": created,
        "updateTime": created,
        "expirationTime": format_timestamp(file.created + _TTL),
        # Google base64-encodes the hexadecimal digits of the hash, not its bytes.
        "sha256Hash": base64.b64encode(hashlib.sha256(file.data).hexdigest().encode()).decode(),
        "uri": file.uri,
        "state": "ACTIVE" if file.is_ready(now) else "PROCESSING",
        "source": "UPLOADED",
    }
    if file.display_name:
        shown["displayName"] = file.display_name
    return shown


def file_too_large_error() -> ApiError:
    return ApiError(f"The file is larger than the {MAX_FILE_BYTES} bytes this emulator keeps.")


def file_not_found_error(name: str) -> ApiError:
    return ApiError(
        f"You do not have permission to access the File {name.removeprefix('files/')} or it may not exist.",
        code=403,
    )


def has_file_references(contents: Sequence[Mapping[str, Any]]) -> bool:
    return any("fileData" in part for content in contents for part in content.get("parts", ()))


def inline_files(
    contents: Sequence[Mapping[str, Any]], find: Callable[[str], StoredFile | None], now: datetime
) -> list[Mapping[str, Any]]:
    """Return the contents with the data of every named file, so that it can be counted and checked."""
    return [
        {**content, "parts": [_inline_file(part, find, now) for part in content.get("parts", ())]}
        for content in contents
    ]


def _inline_file(
    part: Mapping[str, Any], find: Callable[[str], StoredFile | None], now: datetime
) -> Mapping[str, Any]:
    named = _URI.fullmatch(part.get("fileData", {}).get("fileUri", ""))
    if named is None:
        return part
    file = find(f"files/{named[1]}")
    if file is None:
        raise file_not_found_error(named[1])
    if not file.is_ready(now):
        raise ApiError(
            f"The File {named[1]} is not in an ACTIVE state and usage is not allowed.",
            status="FAILED_PRECONDITION",
        )
    return {**part, "fileData": {"mimeType": file.mime_type, **part["fileData"], "data": file.data}}


CHUNK_GRANULARITY = 8_388_608
_SESSION_TTL = timedelta(days=7)
_SIZE = re.compile(r"[0-9]{1,18}")
_ANY_TYPE = "application/octet-stream"
#: The `uploadType` of Google's other protocol, with the name in this one.
_PROTOCOLS = {"media": "raw", "multipart": "multipart", "resumable": "resumable"}


class UploadSession(msgspec.Struct, frozen=True, kw_only=True):
    """A resumable session: the data received so far, and the announced size (-1 if unknown)."""

    metadata: FileMetadata
    expected_bytes: int
    chunks: tuple[bytes, ...] = ()
    received_bytes: int = 0
    final: bool = False

    @property
    def status(self) -> str:
        return "final" if self.final else "active"


class UploadSessions:
    """The open sessions. Complete uploads are added to `files`."""

    def __init__(self, files: StoredFiles) -> None:
        self._files = files
        self._sessions: ResourceStore[UploadSession] = ResourceStore(most_bytes=MAX_FILE_BYTES)
        self._serial = 0

    def handle(self, route: GeminiRoute, http_request: HttpRequest) -> HttpResponse:
        session = http_request.query.get("upload_id", "")
        if session:
            return self._continue(session, route, http_request)
        protocol = read_protocol(http_request)
        if protocol == "raw":
            wish = read_metadata({}, http_request.headers.get("content-type", ""))
            return write_done(self._files.add(wish, http_request.body, route, http_request))
        if protocol == "multipart":
            metadata, mime_type, data = split_multipart(http_request)
            wish = read_metadata(_read_file(metadata, route), mime_type)
            return write_done(self._files.add(wish, data, route, http_request))
        if protocol == "resumable" and "start" in read_commands(http_request):
            return self._start(route, http_request)
        raise ApiError("Invalid upload request: unknown protocol or command.")

    def _start(self, route: GeminiRoute, http_request: HttpRequest) -> HttpResponse:
        upload = start_upload(http_request, _read_file(http_request.body, route))
        self._files.check_metadata(upload.metadata, parse_timestamp(http_request.now))
        self._serial += 1
        session = make_resource_name("upload", self._serial, http_request.now, alphabet=LETTERS, length=40)
        self._store_session(session, upload, http_request)
        host = http_request.headers.get("host", "generativelanguage.googleapis.com")
        return write_started(
            f"http://{host}{http_request.path}?upload_id={session}&upload_protocol=resumable"
        )

    def _continue(self, session: str, route: GeminiRoute, http_request: HttpRequest) -> HttpResponse:
        upload = self._sessions.get(session, parse_timestamp(http_request.now))
        if upload is None:
            raise ApiError(code=404)
        commands = read_commands(http_request)
        if "cancel" in commands:
            self._sessions.delete(session)
            return write_cancelled()
        if not commands & {"upload", "finalize"}:
            return write_progress(upload)
        try:
            upload = append_chunk(upload, http_request, final="finalize" in commands)
            if not upload.final:
                self._store_session(session, upload, http_request)
                return write_progress(upload)
            done = self._files.add(upload.metadata, b"".join(upload.chunks), route, http_request)
        except ApiError as refusal:
            return write_problem(refusal, upload)
        self._store_session(session, msgspec.structs.replace(upload, chunks=()), http_request)
        return write_done(done)

    def _store_session(self, session: str, upload: UploadSession, http_request: HttpRequest) -> None:
        expires = parse_timestamp(http_request.now) + _SESSION_TTL
        self._sessions.put(session, upload, expires=expires, size=sum(map(len, upload.chunks)))


def read_protocol(http_request: HttpRequest) -> str:
    """Return `resumable`, `raw`, `multipart` or an unsupported value, which the caller rejects."""
    protocol = http_request.headers.get("x-goog-upload-protocol", "")
    return protocol.lower() or _PROTOCOLS.get(http_request.query.get("uploadType", ""), "")


def read_commands(http_request: HttpRequest) -> set[str]:
    return {word.strip().lower() for word in http_request.headers.get("x-goog-upload-command", "").split(",")}


def read_metadata(file: Mapping[str, Any], mime_type: str) -> FileMetadata:
    """Return the metadata of a CreateFileRequest. The mime type of the header takes precedence."""
    return FileMetadata(
        name=file.get("name", ""),
        display_name=file.get("displayName", ""),
        mime_type=mime_type or file.get("mimeType", "") or _ANY_TYPE,
    )


def start_upload(http_request: HttpRequest, file: Mapping[str, Any]) -> UploadSession:
    announced = http_request.headers.get("x-goog-upload-header-content-length", "")
    mime_type = http_request.headers.get("x-goog-upload-header-content-type", "")
    if announced and not _SIZE.fullmatch(announced):
        raise ApiError("X-Goog-Upload-Header-Content-Length must be the size of the file in bytes.")
    expected = int(announced) if announced else -1
    if expected > MAX_FILE_BYTES:
        raise file_too_large_error()
    return UploadSession(metadata=read_metadata(file, mime_type), expected_bytes=expected)


def append_chunk(upload: UploadSession, http_request: HttpRequest, *, final: bool) -> UploadSession:
    """Return the session with this chunk appended; raise a `ApiError` if it does not fit."""
    if upload.final:
        raise ApiError("Upload has already been finalized.")
    chunk = http_request.body
    offset = http_request.headers.get("x-goog-upload-offset", str(upload.received_bytes))
    received = upload.received_bytes + len(chunk)
    if offset != str(upload.received_bytes):
        raise ApiError(
            f"Upload offset {offset} does not match the {upload.received_bytes} bytes received so far."
        )
    if not final and len(chunk) % CHUNK_GRANULARITY:
        raise ApiError(
            f"Only the last chunk may have a size that is no multiple of {CHUNK_GRANULARITY} bytes."
        )
    if received > MAX_FILE_BYTES:
        raise file_too_large_error()
    if 0 <= upload.expected_bytes < received or (final and received < upload.expected_bytes):
        raise ApiError(f"{received} bytes were uploaded where {upload.expected_bytes} were announced.")
    return msgspec.structs.replace(
        upload, chunks=(*upload.chunks, chunk), received_bytes=received, final=final or upload.final
    )


def write_started(url: str) -> HttpResponse:
    return _upload_response(
        None,
        ("x-goog-upload-status", "active"),
        ("x-goog-upload-url", url),
        ("x-goog-upload-control-url", url),
        ("x-goog-upload-chunk-granularity", str(CHUNK_GRANULARITY)),
    )


def write_progress(upload: UploadSession) -> HttpResponse:
    return _upload_response(
        None,
        ("x-goog-upload-status", upload.status),
        ("x-goog-upload-size-received", str(upload.received_bytes)),
    )


def write_done(file: Mapping[str, Any]) -> HttpResponse:
    return _upload_response({"file": file}, ("x-goog-upload-status", "final"))


def write_cancelled() -> HttpResponse:
    return _upload_response(None, ("x-goog-upload-status", "cancelled"))


def write_problem(refusal: ApiError, upload: UploadSession) -> HttpResponse:
    """Return the error of a rejected command, with the status of the session.

    Clients retry a response without the status header.
    """
    body = json_response(refusal.body(), refusal.code)
    return msgspec.structs.replace(body, headers=(("x-goog-upload-status", upload.status),))


def split_multipart(http_request: HttpRequest) -> tuple[bytes, str, bytes]:
    """Return the metadata, the media type and the data of a `multipart/related` body."""
    header = Message()
    header["content-type"] = http_request.headers.get("content-type", "")
    boundary = str(header.get_param("boundary", "")).encode()
    pieces = http_request.body.split(b"--" + boundary) if boundary else []
    if len(pieces) != 4:
        raise ApiError("The multipart upload must have a part with metadata and a part with the file.")
    (_, metadata), (mime_type, data) = (_read_part(piece) for piece in pieces[1:3])
    return metadata, mime_type, data


def _read_file(body: bytes, route: GeminiRoute) -> Mapping[str, Any]:
    file: Mapping[str, Any] = parse_request(body, route.backend, "CreateFileRequest").get("file", {})
    return file


def _read_part(piece: bytes) -> tuple[str, bytes]:
    head, _, body = piece.partition(b"\r\n\r\n")
    types = [
        line for line in head.decode("latin-1").split("\r\n") if line.lower().startswith("content-type:")
    ]
    return (types[0].partition(":")[2].strip() if types else ""), body.removesuffix(b"\r\n")


def _upload_response(body: Any, *headers: tuple[str, str]) -> HttpResponse:
    response = HttpResponse(status=200) if body is None else json_response(body)
    return msgspec.structs.replace(response, headers=headers)
