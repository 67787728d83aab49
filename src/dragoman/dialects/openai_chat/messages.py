"""Decode one Chat message to a neutral message: roles, content, tool calls, results, signatures."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from dragoman import jsontext
from dragoman.dialects.media import is_data_url, mime_of, read_data_url, read_url
from dragoman.dialects.openai_chat import custom_tools
from dragoman.dialects.openai_chat.wire import (
    ExtraContent,
    FunctionCall,
    ImageUrl,
    WireMessage,
    WirePart,
    WireToolCall,
)
from dragoman.errors import InvalidRequest
from dragoman.ir import (
    AFTER_TEXT,
    ANY_ORIGIN,
    ON_TEXT,
    ON_THOUGHT,
    Media,
    Message,
    Part,
    SealedSignature,
    Signature,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    unseal,
)
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


_SIGNATURE = ".extra_content.google.thought_signature"
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


class DecodedMessage(msgspec.Struct, frozen=True):
    """One decoded wire message; the paths in its notes are relative to it."""

    message: Message
    notes: tuple[Note, ...]


def decode_message(wire: WireMessage) -> DecodedMessage:
    """Decode one message; errors and notes have paths relative to it."""
    reader = _READERS.get(wire.role)
    if reader is None:
        raise InvalidRequest(f"{wire.role!r} is not a role: use {', '.join(_READERS)}", where=".role")
    notes: list[Note] = []
    if wire.name and wire.role != "function":
        notes.append(Note("dropped", ".name", "Gemini does not tell speakers of one role apart"))
    return DecodedMessage(reader(wire, notes), tuple(notes))


def legacy_id(name: str) -> str:
    """Return the id for a deprecated `function_call`, which has none: results refer to the function's name."""
    return f"function_call-{name}"


def _instructions(wire: WireMessage, _notes: list[Note]) -> Message:
    return Message(role="system", parts=tuple(decode_text(wire.content)))


def _user(wire: WireMessage, notes: list[Note]) -> Message:
    return Message(role="user", parts=tuple(decode_content(wire.content, notes)))


def _tool(wire: WireMessage, notes: list[Note]) -> Message:
    if not wire.tool_call_id:
        raise InvalidRequest("a tool message needs the tool_call_id of its call", where=".tool_call_id")
    return _result(wire, wire.tool_call_id, notes)


def _function(wire: WireMessage, notes: list[Note]) -> Message:
    if not wire.name:
        raise InvalidRequest("a function message needs the name of its function", where=".name")
    return _result(wire, legacy_id(wire.name), notes)


def _result(wire: WireMessage, call_id: str, notes: list[Note]) -> Message:
    content = decode_content(wire.content, notes)
    kept = tuple(part for part in content if not isinstance(part, Text) or part.text)
    return Message(role="user", parts=(ToolResult(call_id=call_id, content=kept),))


def _assistant(wire: WireMessage, notes: list[Note]) -> Message:
    if wire.audio is not None:
        raise InvalidRequest("audio answers are not kept here: send their transcript as text", where=".audio")
    texts = [text for text in decode_text(wire.content) if text.text]
    if wire.refusal:
        texts.append(Text(text=wire.refusal))
    calls = [_call(call, f".tool_calls[{index}]", notes) for index, call in enumerate(wire.tool_calls or ())]
    if wire.function_call is not None:
        calls.append(_legacy_call(wire.function_call, notes))
    sealed = _sealed(wire.extra_content, "", ON_TEXT, notes)
    return Message(role="model", parts=_signed(wire.reasoning_content or "", texts, calls, sealed, notes))


_READERS: dict[str, Callable[[WireMessage, list[Note]], Message]] = {
    "system": _instructions,
    "developer": _instructions,
    "user": _user,
    "assistant": _assistant,
    "tool": _tool,
    "function": _function,
}


def _signed(
    thought: str, texts: list[Text], calls: list[ToolCall], sealed: SealedSignature | None, notes: list[Note]
) -> tuple[Part, ...]:
    """Return the parts in Gemini's order, with the signature of the message on the part that it signs."""
    thoughts = [Thought(text=thought)] if thought else []
    if sealed is None:
        return (*thoughts, *texts, *calls)
    signature, target = sealed.signature, sealed.target
    if target == ON_THOUGHT:
        thoughts = [Thought(text=thought, signature=signature)]
    elif target == ON_TEXT and texts:
        texts[-1] = Text(text=texts[-1].text, signature=signature)
    elif target in (ON_TEXT, AFTER_TEXT):
        texts.append(Text(text="", signature=signature))
    elif calls and calls[-1].id == target:
        calls[-1] = msgspec.structs.replace(calls[-1], signature=signature)
    else:
        notes.append(Note("dropped", _SIGNATURE, "what it signs is not in this message"))
    return (*thoughts, *texts, *calls)


def _call(wire: WireToolCall, where: str, notes: list[Note]) -> ToolCall:
    form = wire.custom if wire.type == "custom" else wire.function
    if form is None or not wire.id or not form.name:
        raise InvalidRequest("a tool call needs an id and the name of its function", where=where)
    if isinstance(form, FunctionCall):
        args = _arguments(form, f"{where}.function.arguments", notes)
    else:
        args = custom_tools.wrap(form.input)
    return ToolCall(id=wire.id, name=form.name, args=args, signature=_call_signature(wire, where, notes))


def _call_signature(wire: WireToolCall, where: str, notes: list[Note]) -> Signature | None:
    sealed = _sealed(wire.extra_content, where, wire.id, notes)
    if sealed is None:
        return None
    if sealed.target != wire.id:
        notes.append(Note("dropped", where + _SIGNATURE, "it signs another call"))
        return None
    return sealed.signature


def _legacy_call(wire: FunctionCall, notes: list[Note]) -> ToolCall:
    if not wire.name:
        raise InvalidRequest("a function_call needs the name of its function", where=".function_call")
    args = _arguments(wire, ".function_call.arguments", notes)
    return ToolCall(id=legacy_id(wire.name), name=wire.name, args=args)


def _sealed(extra: ExtraContent | None, where: str, target: str, notes: list[Note]) -> SealedSignature | None:
    """Return the signature in an `extra_content`.

    A value that this gateway did not seal but that is base64 is taken for a signature from Google's own Chat
    Completions endpoint, on the part `target`. Google checks it. Any other value is dropped with a note.
    """
    word = extra.google.thought_signature if extra is not None and extra.google is not None else None
    if not word:
        return None
    sealed = unseal(word)
    if sealed is None and _BASE64.fullmatch(word):
        return SealedSignature(Signature(word, ANY_ORIGIN), target)
    if sealed is None:
        notes.append(Note("dropped", where + _SIGNATURE, "it is damaged or no signature of Gemini's"))
    return sealed


def _arguments(wire: FunctionCall, where: str, notes: list[Note]) -> bytes:
    """Return the arguments as JSON text of an object.

    An object keeps its bytes (known problem P2). Any other value, also invalid JSON, is wrapped in an object,
    with a note.
    """
    raw = bytes(wire.arguments)
    if raw.startswith(b'"'):
        raw = jsontext.replace_lone_surrogates(msgspec.json.decode(raw, type=str).encode())
    if raw.strip() in (b"", b"null"):
        return b"{}"
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        notes.append(Note("mended", where, "arguments must be JSON; kept as the text they are"))
        return custom_tools.wrap(raw.decode())
    if isinstance(value, dict):
        return raw
    notes.append(Note("mended", where, "arguments must be an object; wrapped in one"))
    return b'{"input":%b}' % raw
