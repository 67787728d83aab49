"""Files given by URL: `data:` URLs (RFC 2397), and media types guessed from file names."""

from __future__ import annotations

import re

from dragoman.errors import InvalidRequest
from dragoman.ir import Media, Text
from dragoman.notes import Note

_MIME_BY_SUFFIX = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "heic": "image/heic",
    "heif": "image/heif",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "md": "text/plain",
    "csv": "text/csv",
    "html": "text/html",
}
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[^;,]+)*;base64,(.+)", re.IGNORECASE | re.DOTALL)


def is_data_url(url: str) -> bool:
    return url[:5].lower() == "data:"


def read_data_url(url: str, where: str) -> Media:
    """Decode a base64 `data:` URL.

    Any other form of `data:` URL raises `InvalidRequest`: base64 is never sent as text (known problem J2).
    """
    found = _DATA_URL.fullmatch(url)
    if found is None:
        raise InvalidRequest("a data: address needs a media type and base64 data", where=where)
    return Media(mime=found[1], data=found[2])


def read_url(url: str, what: str, where: str, notes: list[Note], *, default_mime: str = "") -> Text | Media:
    """Return the file at a URL, which may be a `data:` URL.

    If the media type is unknown, return a text that mentions the URL, and add a note. `what` names the kind of file in
    that text.
    """
    if is_data_url(url):
        return read_data_url(url, where)
    mime = mime_of(re.split(r"[?#]", url)[0]) or default_mime
    if mime:
        return Media(mime=mime, uri=url)
    notes.append(Note("moved", where, "no media type is known for this address; sent as text"))
    return Text(text=f"({what}: {url})")


def mime_of(name: str) -> str:
    """Return the media type for a file name's extension, or an empty string if it is unknown."""
    return _MIME_BY_SUFFIX.get(name.rpartition(".")[2].lower(), "")
