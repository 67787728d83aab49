"""Decode the elements of a message into neutral parts: tool uses, tool results, images, documents."""

from __future__ import annotations

import msgspec

from dragoman import jsontext
from dragoman.dialects.amazonq.wire import Document, Image, Object, Source, ToolUse, decode_text
from dragoman.dialects.amazonq.wire import ToolResult as WireResult
from dragoman.dialects.media import mime_of
from dragoman.errors import InvalidRequest
from dragoman.ir import Media, Text, ToolCall, ToolResult
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
