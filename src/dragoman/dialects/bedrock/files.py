"""Decode images, documents, videos and audio into neutral parts.

Only inline files are accepted, in the formats that `MIMES` lists.
"""

from __future__ import annotations

import msgspec

from dragoman import jsontext
from dragoman.dialects.bedrock.wire import (
    Document,
    OneOf,
    Recording,
    decode_document,
    decode_image,
    decode_recording,
    decode_unions,
    member,
    read_text,
)
from dragoman.dialects.media import mime_of
from dragoman.errors import InvalidRequest
from dragoman.ir import Media, Text
from dragoman.notes import Note

Content = Text | Media

_IMAGES = ("png", "jpeg", "gif", "webp")
_DOCUMENTS = ("pdf", "csv", "html", "txt", "md")
_VIDEOS = {
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
    "flv": "video/x-flv",
    "mpeg": "video/mpeg",
    "mpg": "video/mpg",
    "wmv": "video/wmv",
    "three_gp": "video/3gpp",
}
_AUDIO = {
    "mp3": "audio/mp3",
    "mpeg": "audio/mp3",
    "mpga": "audio/mp3",
    "wav": "audio/wav",
    "aac": "audio/aac",
    "x-aac": "audio/aac",
    "flac": "audio/flac",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "m4a": "audio/m4a",
    "mp4": "audio/mp4",
    "webm": "audio/webm",
    "pcm": "audio/pcm",
}
#: Kind -> Bedrock's format -> media type; Gemini cannot read Bedrock's other formats.
MIMES: dict[str, dict[str, str]] = {
    "image": {name: mime_of(name) for name in _IMAGES},
    "document": {name: mime_of(name) for name in _DOCUMENTS},
    "video": _VIDEOS,
    "audio": _AUDIO,
}


def read_image(raw: msgspec.Raw, where: str, _notes: list[Note]) -> list[Content]:
    image = jsontext.decode(decode_image, raw, where)
    return [_inline("image", image.format, image.source, where)]


def read_video(raw: msgspec.Raw, where: str, _notes: list[Note]) -> list[Content]:
    return [_recording("video", jsontext.decode(decode_recording, raw, where), where)]


def read_audio(raw: msgspec.Raw, where: str, _notes: list[Note]) -> list[Content]:
    return [_recording("audio", jsontext.decode(decode_recording, raw, where), where)]


def read_document(raw: msgspec.Raw, where: str, notes: list[Note]) -> list[Content]:
    """Decode a document; its name and context become a text before it, so that the model can refer to it."""
    document = jsontext.decode(decode_document, raw, where)
    if document.citations is not None and document.citations.enabled:
        why = "Gemini does not mark what it quotes from a document"
        notes.append(Note("dropped", f"{where}.citations", why))
    title = " ".join(word for word in (document.name, document.context) if word)
    return [*([Text(text=title)] if title else []), *_document(document, where)]


def _document(document: Document, where: str) -> list[Content]:
    kind, raw = member(document.source, f"{where}.source")
    place = f"{where}.source.{kind}"
    if kind == "text":
        return [Text(text=read_text(raw, place))]
    if kind == "content":
        return read_texts(jsontext.decode(decode_unions, raw, place), place)
    named = document.format or document.name.rpartition(".")[2].lower()
    return [_inline("document", named, document.source, where)]


def read_texts(blocks: list[OneOf], where: str) -> list[Content]:
    """Decode text blocks; raise `InvalidRequest` for any other kind."""
    texts: list[Content] = []
    for index, block in enumerate(blocks):
        place = f"{where}[{index}]"
        kind, raw = member(block, place)
        if kind != "text":
            raise InvalidRequest(f"{kind!r} cannot stand here: use text", where=place)
        texts.append(Text(text=read_text(raw, f"{place}.text")))
    return texts


def _recording(kind: str, recording: Recording, where: str) -> Media:
    return _inline(kind, recording.format, recording.source, where)


def _inline(kind: str, name: str, source: OneOf, where: str) -> Media:
    mime = MIMES[kind].get(name)
    if mime is None:
        known = ", ".join(MIMES[kind])
        raise InvalidRequest(
            f"Gemini reads no {kind} in the format {name!r}: send {known}", where=f"{where}.format"
        )
    form, raw = member(source, f"{where}.source")
    place = f"{where}.source.{form}"
    if form == "s3Location":
        raise InvalidRequest("files in S3 cannot be read from here: send the bytes", where=place)
    if form != "bytes":
        raise InvalidRequest(f"a source of kind {form!r} is not understood: send bytes", where=place)
    data = read_text(raw, place)
    if not data:
        raise InvalidRequest(f"the {kind} is empty", where=place)
    return Media(mime=mime, data=data)
