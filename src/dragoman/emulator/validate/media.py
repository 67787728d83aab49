"""Stage 3: the supported media types, and whether image data is an image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dragoman.emulator.backend import Backend
from dragoman.emulator.contents import blob_of
from dragoman.emulator.refusal import ApiError, catch_all_error

_PREFIXES = ("text/", "audio/", "video/")
_MIME_TYPES = frozenset(
    {
        "image/png",
        "image/jpeg",
        "image/webp",
        "image/heic",
        "image/heif",
        "application/pdf",
        "application/x-javascript",
        "application/x-python",
    }
)
_IN_RESPONSES = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
#: (offset, magic bytes) of the supported image formats. Google ignores the declared mime type.
_IMAGE_MAGIC = ((0, b"\x89PNG\r\n\x1a\n"), (0, b"\xff\xd8\xff"), (8, b"WEBP"), (4, b"ftyp"))
_BAD_IMAGE = (
    "Unable to process input image. Please retry or report in "
    "https://developers.generativeai.google/guide/troubleshooting"
)
_STUDIO_FILES = "https://generativelanguage.googleapis.com/"


def check_media(request: Mapping[str, Any], backend: Backend) -> None:
    for content in request.get("contents", ()):
        for blob, inside_response in _blobs(content.get("parts", ())):
            _check_blob(blob, inside_response, backend)
    for part in request.get("systemInstruction", {}).get("parts", ()):
        if "text" not in part:
            raise catch_all_error("system_instruction takes text parts only")


def _check_blob(blob: Mapping[str, Any], inside_response: bool, backend: Backend) -> None:
    mime = blob.get("mimeType", "")
    known = mime in _IN_RESPONSES if inside_response else mime in _MIME_TYPES or mime.startswith(_PREFIXES)
    if not known and ("data" in blob or mime):
        raise ApiError(f"Unsupported MIME type: {mime}")
    if "fileUri" in blob:
        _check_address(blob["fileUri"], backend)
    elif mime.startswith("image/"):
        if not _is_image(blob.get("data", b"")):
            raise ApiError(_BAD_IMAGE)
    elif not blob.get("data"):
        raise catch_all_error(f"empty {mime} data")


def _check_address(address: str, backend: Backend) -> None:
    if backend.is_vertex:
        if address.startswith(_STUDIO_FILES):
            raise ApiError(f"Permission denied: Vertex cannot read {address}", code=403)
    elif address.startswith("gs://"):
        raise ApiError("Invalid or unsupported file uri: " + address)


def _is_image(data: bytes) -> bool:
    return any(data.startswith(magic, offset) for offset, magic in _IMAGE_MAGIC)


def _blobs(parts: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], bool]]:
    for part in parts:
        blob = blob_of(part)
        if blob is not None:
            yield blob, False
        for inner in part.get("functionResponse", {}).get("parts", ()):
            yield blob_of(inner) or {}, True
