"""Decode the content blocks of a message into neutral parts.

Images, documents, videos and audio must be inline, in one of the formats that `MIMES` lists.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dragoman import jsontext
from dragoman.dialects.bedrock.wire import (
    Document,
    OneOf,
    ReasoningText,
    Recording,
    ToolResult,
    WireMessage,
    decode_change,
    decode_citations,
    decode_document,
    decode_guard_text,
    decode_image,
    decode_reasoning_text,
    decode_recording,
    decode_search_result,
    decode_tool_result,
    decode_tool_use,
    decode_union,
    decode_unions,
    member,
    read_text,
)
from dragoman.dialects.media import mime_of
from dragoman.errors import InvalidRequest
from dragoman.ir import (
    ON_THOUGHT,
    Media,
    Message,
    Part,
    Role,
    SealedSignature,
    Text,
    Thought,
    ToolCall,
    place_signatures,
    unseal,
)
from dragoman.ir import ToolResult as Result
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


_ROLES: dict[str, Role] = {"user": "user", "assistant": "model", "system": "system"}


class ToolChange(msgspec.Struct, frozen=True):
    """A `toolAddition` or `toolRemoval` block: the tool is available from here on, or no longer."""

    name: str
    available: bool


class DecodedMessage(msgspec.Struct, frozen=True):
    """A decoded message, and its changes of the available tools."""

    message: Message
    changes: tuple[ToolChange, ...]
    notes: tuple[Note, ...]


def decode_message(wire: WireMessage) -> DecodedMessage:
    role = _ROLES.get(wire.role)
    if role is None:
        raise InvalidRequest(f"{wire.role!r} is not a role: use user, assistant or system", where=".role")
    reader = BlockReader()
    parts = [
        part
        for index, block in enumerate(wire.content or ())
        for part in reader.read(block, f".content[{index}]")
    ]
    message = Message(role=role, parts=place_signatures(parts, reader.sealed))
    return DecodedMessage(message, tuple(reader.changes), tuple(reader.notes))


class BlockReader:
    """Decodes blocks one by one and collects signatures, changes of the tools, and notes."""

    def __init__(self) -> None:
        self.sealed: list[SealedSignature] = []
        self.changes: list[ToolChange] = []
        self.notes: list[Note] = []

    def read(self, block: OneOf, where: str) -> list[Part]:
        kind, raw = member(block, where)
        reader = _READERS.get(kind)
        if reader is not None:
            return reader(self, raw, f"{where}.{kind}")
        return [*_read_content(_CONTENT, kind, raw, where, self.notes)]

    def _tool_use(self, raw: msgspec.Raw, where: str) -> list[Part]:
        use = jsontext.decode(decode_tool_use, raw, where)
        if not use.tool_use_id or not use.name:
            raise InvalidRequest("a tool use needs a toolUseId and a name", where=where)
        args = bytes(use.input)
        if use.type is not None:  # it ran on Amazon's servers, for another model
            return [Text(text=f"[{use.type} {use.name}] {args.decode()}")]
        if args in (b"", b"null"):
            args = b"{}"
        elif not args.startswith(b"{"):
            self.notes.append(Note("mended", f"{where}.input", "arguments must be an object; wrapped in one"))
            args = b'{"input":%b}' % args
        return [ToolCall(id=use.tool_use_id, name=use.name, args=args)]

    def _tool_result(self, raw: msgspec.Raw, where: str) -> list[Part]:
        result = jsontext.decode(decode_tool_result, raw, where)
        if not result.tool_use_id:
            raise InvalidRequest("a tool result needs a toolUseId", where=where)
        values: list[bytes] = []
        content: list[Content] = []
        for index, block in enumerate(result.content or ()):
            place = f"{where}.content[{index}]"
            kind, inner = member(block, place)
            if kind == "json":
                jsontext.decode(msgspec.json.decode, inner, f"{place}.{kind}")
                values.append(bytes(inner))
                content.append(Text(text=bytes(inner).decode()))
            else:
                content += _read_content(_RESULT_CONTENT, kind, inner, place, self.notes)
        if result.type is not None:
            return [Text(text=f"[{result.type}]"), *content]
        return [_result(result, content, values)]

    def _reasoning(self, raw: msgspec.Raw, where: str) -> list[Part]:
        kind, inner = member(jsontext.decode(decode_union, raw, where), where)
        reasoning = ReasoningText()
        if kind == "reasoningText":
            reasoning = jsontext.decode(decode_reasoning_text, inner, f"{where}.{kind}")
        sealed = unseal(reasoning.signature or "")
        if sealed is not None and sealed.target == ON_THOUGHT:
            return [Thought(text=reasoning.text, signature=sealed.signature)]
        if sealed is not None:
            self.sealed.append(sealed)
        elif reasoning.signature or kind != "reasoningText":
            why = "this reasoning is signed by another model and means nothing to Gemini"
            self.notes.append(Note("dropped", f"{where}.{kind}", why))
        return [Thought(text=reasoning.text)] if reasoning.text else []

    def _addition(self, raw: msgspec.Raw, where: str) -> list[Part]:
        return self._change(raw, where, available=True)

    def _removal(self, raw: msgspec.Raw, where: str) -> list[Part]:
        return self._change(raw, where, available=False)

    def _change(self, raw: msgspec.Raw, where: str, *, available: bool) -> list[Part]:
        name = jsontext.decode(decode_change, raw, where).tool.name
        self.changes.append(ToolChange(name, available))
        return [Text(text=f"The tool {name} is {'now' if available else 'no longer'} available.")]


def _result(wire: ToolResult, content: list[Content], values: list[bytes]) -> Part:
    """Return the result: a single JSON value without text stays JSON, otherwise all of it is text."""
    failed = wire.status == "error"
    files = tuple(part for part in content if isinstance(part, Media))
    response = b""
    if len(values) == 1 and len(content) - len(files) == 1:
        response, content = values[0], [*files]
        if failed or not response.startswith(b"{"):
            response = b'{"%b":%b}' % (b"error" if failed else b"output", response)
    kept = tuple(part for part in content if isinstance(part, Media) or part.text)
    return Result(call_id=wire.tool_use_id, content=kept, is_error=failed, response=response)


def _read_content(
    readers: dict[str, ContentReader], kind: str, raw: msgspec.Raw, where: str, notes: list[Note]
) -> list[Content]:
    read = readers.get(kind)
    if read is None:
        raise InvalidRequest(f"content of kind {kind!r} is not understood here", where=where)
    return read(raw, f"{where}.{kind}", notes)


def read_guarded(raw: msgspec.Raw, where: str, notes: list[Note]) -> list[Content]:
    """Decode `guardContent`, with a note that Bedrock's guardrails are not applied."""
    kind, inner = member(jsontext.decode(decode_union, raw, where), where)
    notes.append(
        Note("dropped", where, "Bedrock's guardrails do not run here; the content is sent unguarded")
    )
    if kind == "image":
        return read_image(inner, f"{where}.{kind}", notes)
    if kind != "text":
        raise InvalidRequest(f"{kind!r} cannot stand here: use text or image", where=where)
    return [Text(text=jsontext.decode(decode_guard_text, inner, f"{where}.{kind}").text)]


def _text(raw: msgspec.Raw, where: str, _notes: list[Note]) -> list[Content]:
    return [Text(text=read_text(raw, where))]


def _search_result(raw: msgspec.Raw, where: str, _notes: list[Note]) -> list[Content]:
    found = jsontext.decode(decode_search_result, raw, where)
    head = " ".join(word for word in (found.title, found.source) if word)
    return [Text(text=head), *read_texts(found.content, f"{where}.content")]


def _cited(raw: msgspec.Raw, where: str, notes: list[Note]) -> list[Content]:
    cited = jsontext.decode(decode_citations, raw, where)
    if cited.citations:
        notes.append(Note("dropped", f"{where}.citations", "the words are kept, where they came from is not"))
    return read_texts(cited.content or [], f"{where}.content")


def _cache_point(_raw: msgspec.Raw, _where: str, _notes: list[Note]) -> list[Content]:
    """Ignore cache points: Gemini caches implicitly."""
    return []


ContentReader = Callable[[msgspec.Raw, str, list[Note]], list[Content]]

#: Decoders of the blocks in a tool result (besides `json`), and of those in a message.
_RESULT_CONTENT: dict[str, ContentReader] = {
    "text": _text,
    "image": read_image,
    "document": read_document,
    "video": read_video,
    "searchResult": _search_result,
}
_CONTENT: dict[str, ContentReader] = {
    **_RESULT_CONTENT,
    "audio": read_audio,
    "citationsContent": _cited,
    "guardContent": read_guarded,
    "cachePoint": _cache_point,
}

#: Decoders of the blocks that need the state of a `BlockReader`.
_READERS: dict[str, Callable[[BlockReader, msgspec.Raw, str], list[Part]]] = {
    "toolUse": BlockReader._tool_use,
    "toolResult": BlockReader._tool_result,
    "reasoningContent": BlockReader._reasoning,
    "toolAddition": BlockReader._addition,
    "toolRemoval": BlockReader._removal,
}
