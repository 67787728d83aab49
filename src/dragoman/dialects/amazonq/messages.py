"""Decode one chat message, of the user or of the assistant, and its elements: tool uses, results, images, documents."""

from __future__ import annotations

import msgspec

from dragoman import jsontext
from dragoman.dialects.amazonq.editor_state import EditorState, decode_editor_state
from dragoman.dialects.amazonq.wire import (
    AssistantResponse,
    ChatMessage,
    Document,
    Image,
    Object,
    Reasoning,
    ReasoningText,
    Source,
    ToolUse,
    UserInput,
    decode_text,
    decode_tool_results,
)
from dragoman.dialects.amazonq.wire import ToolResult as WireResult
from dragoman.dialects.media import mime_of
from dragoman.dialects.thinking import decode_thought
from dragoman.errors import InvalidRequest
from dragoman.ir import (
    Media,
    Message,
    Part,
    SealedSignature,
    Signature,
    Text,
    ToolCall,
    ToolResult,
    place_signatures,
)
from dragoman.notes import Note

_NULL = b"null"


def decode_use(wire: ToolUse, where: str, notes: list[Note]) -> ToolCall:
    args = bytes(wire.input)
    if args in (b"", _NULL):
        args = b"{}"
    elif not args.startswith(b"{"):
        notes.append(Note("mended", f"{where}.input", "arguments must be an object; wrapped in one"))
        args = b'{"input":%b}' % args
    return ToolCall(id=wire.tool_use_id, name=wire.name, args=args)


def decode_result(wire: WireResult, where: str) -> ToolResult:
    """Decode a result: a single JSON object becomes its `response`; all other content is text, in order."""
    blocks = [_block(block, f"{where}.content[{index}]") for index, block in enumerate(wire.content or ())]
    only = blocks[0] if len(blocks) == 1 else ""
    response = only if isinstance(only, bytes) and only.startswith(b"{") else b""
    texts = (block.decode() if isinstance(block, bytes) else block for block in blocks)
    return ToolResult(
        call_id=wire.tool_use_id,
        name=wire.tool_name or "",
        content=() if response else tuple(Text(text=text) for text in texts if text),
        response=response,
        is_error=wire.status == "error",
    )


def _block(block: Object, where: str) -> str | bytes:
    """Return the text of a block, or its JSON as bytes."""
    for member, raw in block.items():
        if bytes(raw) == _NULL:
            continue
        if member == "text":
            return jsontext.decode(decode_text, raw, f"{where}.text")
        if member == "json":
            return bytes(raw)
        raise InvalidRequest(f"a result holds text or json, not {member}", where=where)
    return ""


def decode_image(wire: Image, where: str) -> Media:
    mime = mime_of(f".{wire.format}")
    if not mime.startswith("image/"):
        why = f"images of the format {wire.format!r} cannot be read: send png, jpeg, gif or webp"
        raise InvalidRequest(why, where=f"{where}.format", code="image_format")
    return Media(mime=mime, data=_data(wire.source, where))


def decode_document(wire: Document, where: str) -> list[Text | Media]:
    mime = mime_of(f".{wire.format}")
    if not mime or mime.startswith("image/"):
        why = f"Gemini reads no documents of the format {wire.format!r}: send pdf, csv, html, txt or md"
        raise InvalidRequest(why, where=f"{where}.format", code="file_type")
    title: list[Text | Media] = [Text(text=wire.name)] if wire.name else []
    return [*title, Media(mime=mime, data=_data(wire.source, where))]


def _data(source: Source | None, where: str) -> str:
    if source is None or not source.data:
        raise InvalidRequest("a file needs its bytes", where=f"{where}.source.bytes")
    return source.data


def with_failure_text(result: ToolResult) -> ToolResult:
    """Wrap the JSON response of a failed call in `error`, which is how Google recognises a failure."""
    if result.response and result.is_error:
        return msgspec.structs.replace(result, response=b'{"error":%b}' % result.response)
    return result


USER = ".userInputMessage"
CONTEXT = f"{USER}.userInputMessageContext"
_ASSISTANT = ".assistantResponseMessage"

#: Fields of an assistant message that clients show to people.
_BESIDE = ("supplementaryWebLinks", "references", "followupPrompt")
_EMPTY = frozenset({b"", b"null", b"[]", b"{}"})

#: Clients give calls of a removed tool this name; the signature was made for the old name and is invalid.
_REMOVED_TOOL = "dummy"
_INVALID_SIGNATURE = Signature(data="", origin="a tool that was renamed")


class DecodedMessage(msgspec.Struct, frozen=True):
    """A decoded message; the places in its notes are relative to the message."""

    messages: tuple[Message, ...]
    states: EditorState
    notes: tuple[Note, ...]
    tools: bytes = b""
    model: str = ""


def decode_message(wire: ChatMessage) -> DecodedMessage:
    """Decode a message; raise `InvalidRequest` unless it is exactly one of user and assistant message."""
    user, assistant = wire.user_input_message, wire.assistant_response_message
    if (user is None) == (assistant is None):
        raise InvalidRequest("a message is either a userInputMessage or an assistantResponseMessage")
    notes: list[Note] = []
    if user is not None:
        return _user(user, notes)
    return _assistant(assistant or AssistantResponse(), notes)


def decode_results(context: Object, where: str) -> list[ToolResult]:
    raw, where = context.get("toolResults", msgspec.Raw(b"null")), f"{where}.toolResults"
    found = jsontext.decode(decode_tool_results, raw, where) or ()
    return [decode_result(result, f"{where}[{index}]") for index, result in enumerate(found)]


def _user(wire: UserInput, notes: list[Note]) -> DecodedMessage:
    context = wire.user_input_message_context or {}
    if wire.user_intent:
        notes.append(Note("dropped", f"{USER}.userIntent", "Gemini is not told what kind of question it is"))
    results = [with_failure_text(result) for result in decode_results(context, CONTEXT)]
    content: list[Part] = [Text(text=wire.content)] if wire.content else []
    files = _files(wire)
    if results and not content:
        results[-1] = _with_files(results[-1], files)
    else:
        content += files
    parts = (tuple(results), tuple(content))
    return DecodedMessage(
        messages=tuple(Message(role="user", parts=texts) for texts in parts if texts),
        states=decode_editor_state(context, CONTEXT, notes),
        notes=tuple(notes),
        tools=bytes(context.get("tools", b"")),
        model=wire.model_id or "",
    )


def _files(wire: UserInput) -> list[Text | Media]:
    documents = [
        part
        for index, document in enumerate(wire.documents or ())
        for part in decode_document(document, f"{USER}.documents[{index}]")
    ]
    images = [decode_image(image, f"{USER}.images[{index}]") for index, image in enumerate(wire.images or ())]
    return [*documents, *images]


def _with_files(result: ToolResult, files: list[Text | Media]) -> ToolResult:
    """Add the files of a message without text to its last tool result.

    Clients move the files of a tool out of its result; without a user's text they can come only from there.
    """
    if not files:
        return result
    texts = (Text(text=result.response.decode()),) if result.response else result.content
    return msgspec.structs.replace(result, content=(*texts, *files), response=b"")


def _assistant(wire: AssistantResponse, notes: list[Note]) -> DecodedMessage:
    thoughts, sealed = _reasoning(wire.reasoning_content, notes)
    texts = [Text(text=wire.content)] if wire.content else []
    calls = [
        decode_use(use, f"{_ASSISTANT}.toolUses[{index}]", notes)
        for index, use in enumerate(wire.tool_uses or ())
    ]
    for field, raw in zip(
        _BESIDE, (wire.supplementary_web_links, wire.references, wire.followup_prompt), strict=True
    ):
        if bytes(raw) not in _EMPTY:
            notes.append(Note("dropped", f"{_ASSISTANT}.{field}", "it was shown to people, not to the model"))
    parts = tuple(map(_without_stored_signature, place_signatures([*thoughts, *texts, *calls], sealed)))
    return DecodedMessage(
        messages=(Message(role="model", parts=parts),) if parts else (), states=(), notes=tuple(notes)
    )


def _without_stored_signature(part: Part) -> Part:
    """Give a renamed call an invalid signature.

    Otherwise the signature in the store would be used, which Google rejects under the new name.
    """
    if isinstance(part, ToolCall) and part.name == _REMOVED_TOOL:
        return msgspec.structs.replace(part, signature=_INVALID_SIGNATURE)
    return part


def _reasoning(wire: Reasoning | None, notes: list[Note]) -> tuple[list[Part], list[SealedSignature]]:
    if wire is None:
        return [], []
    where = f"{_ASSISTANT}.reasoningContent"
    if wire.redacted_content:
        notes.append(Note("dropped", f"{where}.redactedContent", "nobody but its maker can read it"))
    reasoning = wire.reasoning_text or ReasoningText()
    thought, sealed = decode_thought(
        reasoning.text or "", reasoning.signature or "", f"{where}.reasoningText.signature", notes
    )
    return [thought] if thought is not None else [], [sealed] if sealed is not None else []
