"""Decode message content to neutral parts: text, images, audio, files."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.dialects.media import is_data_url, mime_of, read_data_url, read_url
from dragoman.dialects.openai_chat.wire import ImageUrl, WirePart
from dragoman.errors import InvalidRequest
from dragoman.ir import Media, Text
from dragoman.notes import Note

Content = Text | Media

_MIME_BY_AUDIO_FORMAT = {
    "wav": "audio/wav",
    "mp3": "audio/mp3",
    "flac": "audio/flac",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "aiff": "audio/aiff",
}


def decode_content(content: str | list[WirePart] | None, notes: list[Note]) -> list[Content]:
    """Decode content, add what was lost to `notes`, and raise `InvalidRequest` for unknown types."""
    if isinstance(content, str):
        return [Text(text=content)]
    return [
        read
        for index, part in enumerate(content or ())
        for read in _decode_part(part, f".content[{index}]", notes)
    ]


def decode_text(content: str | list[WirePart] | None) -> list[Text]:
    """Decode the content of system and assistant messages; raise `InvalidRequest` if it is not text."""
    if isinstance(content, str):
        return [Text(text=content)]
    texts: list[Text] = []
    for index, part in enumerate(content or ()):
        text = part.text if part.text is not None else part.refusal
        if text is None and part.type not in ("text", "refusal"):
            raise InvalidRequest(
                f"content of type {part.type!r} cannot stand here: use text", where=f".content[{index}]"
            )
        texts.append(Text(text=text or ""))
    return texts


def _decode_part(part: WirePart, where: str, notes: list[Note]) -> list[Content]:
    reader = _PART_READERS.get(part.type)
    if reader is None:
        known = ", ".join(_PART_READERS)
        raise InvalidRequest(f"content of type {part.type!r} is not understood: use {known}", where=where)
    return reader(part, where, notes)


def _text(part: WirePart, _where: str, _notes: list[Note]) -> list[Content]:
    return [Text(text=part.text or part.refusal or "")]


def _image(part: WirePart, where: str, notes: list[Note]) -> list[Content]:
    image = ImageUrl(url=part.image_url) if isinstance(part.image_url, str) else part.image_url
    if image is None or not image.url:
        raise InvalidRequest("an image_url part needs a url", where=where)
    if image.detail not in (None, "auto"):
        notes.append(Note("dropped", f"{where}.image_url.detail", "Gemini chooses the detail itself"))
    return [read_url(image.url, "image", f"{where}.image_url.url", notes)]


def _audio(part: WirePart, where: str, _notes: list[Note]) -> list[Content]:
    audio = part.input_audio
    mime = _MIME_BY_AUDIO_FORMAT.get(audio.format.lower()) if audio is not None else None
    if audio is None or mime is None or not audio.data:
        known = ", ".join(_MIME_BY_AUDIO_FORMAT)
        raise InvalidRequest(f"an input_audio part needs base64 data and a format of {known}", where=where)
    return [Media(mime=mime, data=audio.data)]


def _file(part: WirePart, where: str, _notes: list[Note]) -> list[Content]:
    file = part.file
    if file is None or not file.file_data:
        stored = file is not None and file.file_id
        why = "files are not kept here: send file_data" if stored else "a file part needs file_data"
        raise InvalidRequest(why, where=f"{where}.file")
    title: list[Content] = [Text(text=file.filename)] if file.filename else []
    if is_data_url(file.file_data):
        return [*title, read_data_url(file.file_data, f"{where}.file.file_data")]
    mime = mime_of(file.filename or "")
    if not mime:
        why = "the media type is unknown: send a data: address, or a filename with a known ending"
        raise InvalidRequest(why, where=f"{where}.file.file_data")
    return [*title, Media(mime=mime, data=file.file_data)]


_PART_READERS: dict[str, Callable[[WirePart, str, list[Note]], list[Content]]] = {
    "text": _text,
    "refusal": _text,
    "image_url": _image,
    "input_audio": _audio,
    "file": _file,
}
