"""Decode content parts of messages and tool outputs to neutral parts."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.dialects.media import is_data_url, mime_of, read_data_url, read_url
from dragoman.dialects.openai_responses.wire import Content, ImageUrl
from dragoman.errors import InvalidRequest
from dragoman.ir import Media, Text
from dragoman.notes import Note

_TEXTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
_IMAGES = frozenset({"input_image", "output_image", "computer_screenshot", "image_url"})


def decode_parts(
    contents: str | Iterable[Content] | None, where: str, notes: list[Note]
) -> list[Text | Media]:
    """Decode content, add what was lost to `notes`, and raise `InvalidRequest` for unknown types."""
    if isinstance(contents, str):
        return [Text(text=contents)]
    return [
        part
        for index, content in enumerate(contents or ())
        for part in _decode(content, f"{where}[{index}]", notes)
    ]


def join_text(contents: Iterable[Content] | None) -> str:
    """Join the texts of a reasoning summary to paragraphs."""
    return "\n\n".join(content.text for content in contents or () if content.text)


def _decode(content: Content, where: str, notes: list[Note]) -> list[Text | Media]:
    kind = content.type
    if kind in _TEXTS or (content.text is not None and not kind):
        return [Text(text=content.text or "")]
    if kind == "refusal":
        return [Text(text=content.refusal or "")]
    if kind in _IMAGES:
        return [_image(content, where, notes)]
    if kind == "input_file":
        return _file(content, where, notes)
    if kind == "input_audio":
        return [_audio(content, where)]
    if kind == "encrypted_content":
        # A message between two agents of Codex. This gateway does not encrypt them, so this is the plain text.
        return [Text(text=content.encrypted_content or "")]
    raise InvalidRequest(f"content of type {kind!r} is not understood", where=where)


def _image(content: Content, where: str, notes: list[Note]) -> Text | Media:
    url = content.image_url.url if isinstance(content.image_url, ImageUrl) else content.image_url
    if not url:
        raise _missing_content("an image needs an image_url", content, where)
    return read_url(url, "image", f"{where}.image_url", notes)


def _file(content: Content, where: str, notes: list[Note]) -> list[Text | Media]:
    title: list[Text | Media] = [Text(text=content.filename)] if content.filename else []
    if content.file_url:
        return [*title, read_url(content.file_url, "file", f"{where}.file_url", notes)]
    data = content.file_data
    if not data:
        raise _missing_content("a file needs file_data or a file_url", content, where)
    if is_data_url(data):
        return [*title, read_data_url(data, f"{where}.file_data")]
    mime = mime_of(content.filename or "")
    if not mime:
        why = "bare base64 needs a filename that tells its type; or send a data: address"
        raise InvalidRequest(why, where=f"{where}.file_data")
    return [*title, Media(mime=mime, data=data)]


def _audio(content: Content, where: str) -> Media:
    if content.audio_url:
        return read_data_url(content.audio_url, f"{where}.audio_url")
    audio = content.input_audio
    if audio is None or not audio.data or not audio.format:
        raise InvalidRequest("audio needs data and a format", where=f"{where}.input_audio")
    return Media(mime=f"audio/{audio.format}", data=audio.data)


def _missing_content(why: str, content: Content, where: str) -> InvalidRequest:
    if content.file_id:
        return InvalidRequest("files are not kept here: send the data itself", where=f"{where}.file_id")
    return InvalidRequest(why, where=where)
