"""The Files API, and the insertion of files into the requests that name them."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from dragoman.emulator.question import Question
from dragoman.emulator.refusal import Refusal, bullets, unclear
from dragoman.emulator.resources.moments import read_moment, write_moment
from dragoman.emulator.resources.names import LETTERS, make_name
from dragoman.emulator.resources.paging import write_page
from dragoman.emulator.resources.shelf import Shelf
from dragoman.emulator.routes import Route

#: Google stores 20 GB; the emulator stores files in memory.
MOST_BYTES = 256 * 1024 * 1024
_DEFAULT_PAGE = 10
_MOST_PER_PAGE = 100

_TTL = timedelta(hours=48)
#: Google processes a video before it can be used; all other files are ready at once.
_VIDEO_PROCESSING = timedelta(seconds=1)

_NAME = re.compile(r"files/[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_MIME_TYPE = re.compile(
    r"(?:application|audio|font|image|message|model|multipart|text|video)/[\w.+-]+(?:\s*;.*)?", re.IGNORECASE
)
_URI = re.compile(r"(?:https?://[^/]+/v1(?:beta|alpha)?/)?files/([a-z0-9-]+)")


class File(msgspec.Struct, frozen=True, kw_only=True):
    """An uploaded file with its data."""

    name: str
    display_name: str
    mime_type: str
    data: bytes
    created: datetime
    uri: str

    def is_ready(self, now: datetime) -> bool:
        return not self.mime_type.startswith("video/") or now >= self.created + _VIDEO_PROCESSING


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """The file metadata that the client requests."""

    name: str = ""
    display_name: str = ""
    mime_type: str = ""


class Files:
    """All files by name."""

    def __init__(self) -> None:
        self._shelf: Shelf[File] = Shelf(most_bytes=MOST_BYTES)
        self._serial = 0

    def add(self, wish: Wish, data: bytes, route: Route, question: Question) -> dict[str, Any]:
        """Store a complete upload; return the `file` of the response."""
        now = read_moment(question.now)
        self.check_wish(wish, now)
        if len(data) > MOST_BYTES:
            raise too_large()
        self._serial += 1
        name = wish.name or "files/" + make_name(
            "file", self._serial, question.now, alphabet=LETTERS, length=12
        )
        # The URI has the host of the request, so that clients which follow it stay with the emulator.
        host = question.headers.get("host", "generativelanguage.googleapis.com")
        file = File(
            name=name,
            display_name=wish.display_name,
            mime_type=wish.mime_type,
            data=data,
            created=now,
            uri=f"http://{host}/{route.backend.version}/{name}",
        )
        self._shelf.put(name, file, expires=now + _TTL, size=len(data))
        return show_file(file, now)

    def check_wish(self, wish: Wish, now: datetime) -> None:
        """Raise a `Refusal` unless a file with this metadata can be stored.

        Any well-formed mime type is accepted here; the supported types are checked when a request uses the
        file.
        """
        if not _MIME_TYPE.fullmatch(wish.mime_type):
            raise Refusal(f"Unsupported MIME type: {wish.mime_type}")
        if wish.name and not _NAME.fullmatch(wish.name):
            line = "file.name: must be files/ and up to 40 lower case letters, digits or dashes"
            raise bullets([line], "CreateFileRequest")
        if wish.name and self.find(wish.name, now) is not None:
            raise Refusal(code=409)

    def find(self, name: str, now: datetime) -> File | None:
        return self._shelf.get(name, now)

    def list(self, question: Question) -> dict[str, Any]:
        now = read_moment(question.now)
        shown = [show_file(file, now) for file in self._shelf.all(now)]
        return write_page("files", shown, question.query, default=_DEFAULT_PAGE, most=_MOST_PER_PAGE)

    def get(self, route: Route, question: Question) -> dict[str, Any]:
        now = read_moment(question.now)
        return show_file(self._require(route, now), now)

    def delete(self, route: Route, question: Question) -> dict[str, Any]:
        self._require(route, read_moment(question.now))
        self._shelf.drop(route.resource)
        return {}

    def download(self, route: Route, question: Question) -> dict[str, Any]:
        self._require(route, read_moment(question.now))
        raise unclear("only generated files can be downloaded, and this one was uploaded")

    def _require(self, route: Route, now: datetime) -> File:
        file = self.find(route.resource, now)
        if file is None:
            raise no_such_file(route.resource)
        return file


def show_file(file: File, now: datetime) -> dict[str, Any]:
    """Return the resource as `files.get` does."""
    created = write_moment(file.created)
    shown: dict[str, Any] = {
        "name": file.name,
        "mimeType": file.mime_type,
        "sizeBytes": str(len(file.data)),
        "createTime": created,
        "updateTime": created,
        "expirationTime": write_moment(file.created + _TTL),
        # Google base64-encodes the hexadecimal digits of the hash, not its bytes.
        "sha256Hash": base64.b64encode(hashlib.sha256(file.data).hexdigest().encode()).decode(),
        "uri": file.uri,
        "state": "ACTIVE" if file.is_ready(now) else "PROCESSING",
        "source": "UPLOADED",
    }
    if file.display_name:
        shown["displayName"] = file.display_name
    return shown


def too_large() -> Refusal:
    return Refusal(f"The file is larger than the {MOST_BYTES} bytes this emulator keeps.")


def no_such_file(name: str) -> Refusal:
    return Refusal(
        f"You do not have permission to access the File {name.removeprefix('files/')} or it may not exist.",
        code=403,
    )


def names_files(contents: Sequence[Mapping[str, Any]]) -> bool:
    return any("fileData" in part for content in contents for part in content.get("parts", ()))


def attach_files(
    contents: Sequence[Mapping[str, Any]], find: Callable[[str], File | None], now: datetime
) -> list[Mapping[str, Any]]:
    """Return the contents with the data of every named file, so that it can be counted and checked."""
    return [
        {**content, "parts": [_attach(part, find, now) for part in content.get("parts", ())]}
        for content in contents
    ]


def _attach(part: Mapping[str, Any], find: Callable[[str], File | None], now: datetime) -> Mapping[str, Any]:
    named = _URI.fullmatch(part.get("fileData", {}).get("fileUri", ""))
    if named is None:
        return part
    file = find(f"files/{named[1]}")
    if file is None:
        raise no_such_file(named[1])
    if not file.is_ready(now):
        raise Refusal(
            f"The File {named[1]} is not in an ACTIVE state and usage is not allowed.",
            status="FAILED_PRECONDITION",
        )
    return {**part, "fileData": {"mimeType": file.mime_type, **part["fileData"], "data": file.data}}
