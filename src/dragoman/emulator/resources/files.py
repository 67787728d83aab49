"""The Files API, and the insertion of files into the requests that name them."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from dragoman.emulator.question import HttpRequest
from dragoman.emulator.refusal import ApiError, catch_all_error, field_rules_error
from dragoman.emulator.resources.moments import format_timestamp, parse_timestamp
from dragoman.emulator.resources.names import LETTERS, make_resource_name
from dragoman.emulator.resources.paging import paginate
from dragoman.emulator.resources.shelf import ResourceStore
from dragoman.emulator.routes import GeminiRoute

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
        self, wish: FileMetadata, data: bytes, route: GeminiRoute, question: HttpRequest
    ) -> dict[str, Any]:
        """Store a complete upload; return the `file` of the response."""
        now = parse_timestamp(question.now)
        self.check_metadata(wish, now)
        if len(data) > MAX_FILE_BYTES:
            raise file_too_large_error()
        self._serial += 1
        name = wish.name or "files/" + make_resource_name(
            "file", self._serial, question.now, alphabet=LETTERS, length=12
        )
        # The URI has the host of the request, so that clients which follow it stay with the emulator.
        host = question.headers.get("host", "generativelanguage.googleapis.com")
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
        """Raise a `Refusal` unless a file with this metadata can be stored.

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

    def list(self, question: HttpRequest) -> dict[str, Any]:
        now = parse_timestamp(question.now)
        shown = [show_file(file, now) for file in self._store.newest_first(now)]
        return paginate("files", shown, question.query, default=_DEFAULT_PAGE, most=_MAX_PER_PAGE)

    def get(self, route: GeminiRoute, question: HttpRequest) -> dict[str, Any]:
        now = parse_timestamp(question.now)
        return show_file(self._require(route, now), now)

    def delete(self, route: GeminiRoute, question: HttpRequest) -> dict[str, Any]:
        self._require(route, parse_timestamp(question.now))
        self._store.delete(route.resource)
        return {}

    def download(self, route: GeminiRoute, question: HttpRequest) -> dict[str, Any]:
        self._require(route, parse_timestamp(question.now))
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
