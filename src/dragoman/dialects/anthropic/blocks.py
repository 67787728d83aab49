"""Decode messages and their content blocks to neutral messages and parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TypeGuard

import msgspec

from dragoman import jsontext
from dragoman.dialects.anthropic.server_tools_in import read_call, read_result, readable
from dragoman.dialects.anthropic.server_tools_out import PREFIX
from dragoman.dialects.anthropic.tool_search import RESULT, read_found
from dragoman.dialects.anthropic.wire import (
    NOTHING,
    Block,
    Source,
    ToolRef,
    WireMessage,
    decode_blocks,
    decode_tool,
)
from dragoman.dialects.media import read_url
from dragoman.dialects.thinking import decode_thought
from dragoman.errors import InvalidRequest
from dragoman.ir import (
    REMINDER,
    Media,
    Message,
    Part,
    Role,
    SealedSignature,
    Text,
    ToolCall,
    ToolResult,
    place_signatures,
)
from dragoman.notes import Note

_ROLES: dict[str, Role] = {"user": "user", "assistant": "model", "system": "system"}
_TOOL_LOADED = "Tool loaded."  # Claude Code sends this text after a result of its ToolSearch


class ToolChange(msgspec.Struct, frozen=True):
    """A tool that a message adds to the conversation or removes from it.

    `definition` is the JSON of the tool if the message defines it; otherwise the tool is declared in the request.
    """

    name: str
    available: bool
    definition: bytes = b""


class DecodedMessage(msgspec.Struct, frozen=True, gc=False):
    """One decoded wire message: its neutral messages, and how it changes the available tools."""

    messages: tuple[Message, ...]
    changes: tuple[ToolChange, ...] = ()
    notes: tuple[Note, ...] = ()
    tells: bool = False  # whether there are changes or notes


def decode_message(message: WireMessage) -> DecodedMessage:
    """Decode one message; errors and notes have paths relative to it.

    Lone surrogate escapes are replaced in JSON that is passed on as bytes. Decoded strings cannot contain any, because
    the JSON decoder rejects them.
    """
    role = _ROLES.get(message.role)
    if role is None:
        raise InvalidRequest(f"{message.role!r} is not a role: use user, assistant or system", where=".role")
    content = message.content
    if isinstance(content, str):
        return DecodedMessage((Message(role=role, parts=(Text(text=content),)),))
    reader = BlockReader()
    said = reader.read_content(_join_cited_text(content) if content else (), ".content")
    parts = place_signatures(said, reader.sealed) if reader.sealed else tuple(said)
    messages = _split_reminders(role, parts) if len(parts) > 1 else (Message(role=role, parts=parts),)
    if not reader.changes and not reader.notes:  # the usual case
        return DecodedMessage(messages)
    return DecodedMessage(messages, tuple(reader.changes), tuple(reader.notes), tells=True)


def _join_cited_text(blocks: list[Block]) -> list[Block]:
    """Join neighbouring text blocks that were split only to attach citations."""
    if len(blocks) < 2 or [*map(_get_citations, blocks)].count(NOTHING) == len(blocks):  # the usual case
        return blocks
    whole: list[Block] = []
    for block in blocks:
        last = whole[-1] if whole else block
        if last is not block and {block.type, last.type} == {"text"} and (_cites(last) or _cites(block)):
            text = (last.text or "") + (block.text or "")
            whole[-1] = Block(type="text", text=text, citations=_CITED)
        else:
            whole.append(block)
    return whole


_CITED = msgspec.Raw(b"[{}]")
_get_citations = attrgetter("citations")


def _cites(block: Block) -> bool:
    return bytes(block.citations) not in (b"", b"null", b"[]")


def _split_reminders(role: Role, parts: tuple[Part, ...]) -> tuple[Message, ...]:
    """Move reminders beside tool results to a system message: the client wrote them, not the user."""
    if ToolResult not in map(type, parts):
        return (Message(role=role, parts=parts),)
    remarks = tuple(part for part in parts if _is_reminder(part))
    rest = Message(role=role, parts=tuple(part for part in parts if not _is_reminder(part)))
    return (rest, Message(role="system", parts=remarks)) if remarks else (rest,)


def _is_reminder(part: Part) -> bool:
    return isinstance(part, Text) and (part.text.startswith(REMINDER) or part.text == _TOOL_LOADED)


class BlockReader:
    """Decode content blocks; collect the signatures, tool changes and notes found in them."""

    def __init__(self) -> None:
        self.sealed: list[SealedSignature] = []
        self.changes: list[ToolChange] = []
        self.notes: list[Note] = []

    def read_content(self, content: str | Sequence[Block] | None, where: str) -> list[Part]:
        """Decode text or blocks at the path `where`; raise `InvalidRequest` for unknown blocks."""
        if isinstance(content, str):
            return [Text(text=content)]
        parts: list[Part] = []
        for index, block in enumerate(content or ()):
            kind = block.type
            if kind == "text":  # nearly half of all blocks
                parts.append(Text(text=block.text or ""))
            else:
                parts += _READERS.get(kind, BlockReader._other)(self, block, f"{where}[{index}]")
        return parts

    def _other(self, block: Block, where: str) -> list[Part]:
        if block.type.endswith(("_tool_result", "_tool_use")):
            return self._served(block, where) or self._foreign_tool(block, where)
        if block.text is not None:
            return [Text(text=block.text)]
        raise InvalidRequest(f"content blocks of type {block.type!r} are not understood", where=where)

    def _media(self, block: Block, where: str) -> list[Part]:
        source = block.source
        if not isinstance(source, Source):
            raise InvalidRequest(f"a block of type {block.type!r} needs a source", where=where)
        if source.type == "base64" and source.media_type and source.data:
            return [*_title_parts(block), Media(mime=source.media_type, data=source.data)]
        if source.type == "text":
            return [*_title_parts(block), Text(text=source.data)]
        if source.type == "content":
            return [*_title_parts(block), *self.read_content(source.content, f"{where}.source.content")]
        if source.type == "url" and source.url:
            default = "application/pdf" if block.type == "document" else ""
            found = read_url(source.url, block.type, f"{where}.source", self.notes, default_mime=default)
            return [*_title_parts(block), found]
        raise InvalidRequest(
            f"a source of type {source.type!r} cannot be read here: send base64, text or url, and not empty",
            where=f"{where}.source",
        )

    def _content(self, block: Block, where: str) -> list[Part]:
        """Decode the blocks nested in a block."""
        where = f"{where}.content"
        return self.read_content(
            jsontext.decode(decode_blocks, bytes(block.content) or b"null", where), where
        )

    def _tool_use(self, block: Block, where: str) -> list[Part]:
        if not block.id or not block.name:
            raise InvalidRequest("a tool_use block needs an id and a name", where=where)
        args = jsontext.replace_lone_surrogates(bytes(block.input))
        if not args.startswith(b"{"):
            args = self._object(args, where)
        return [ToolCall(id=block.id, name=block.name, args=args)]

    def _object(self, args: bytes, where: str) -> bytes:
        if args in (b"", b"null"):
            return b"{}"
        self.notes.append(Note("mended", f"{where}.input", "arguments must be an object; wrapped in one"))
        return b'{"input":%b}' % args

    def _tool_result(self, block: Block, where: str) -> list[Part]:
        if not block.tool_use_id:
            raise InvalidRequest("a tool_result block needs a tool_use_id", where=where)
        kept = tuple(filter(_is_result_content, self._content(block, where)))
        return [ToolResult(call_id=block.tool_use_id, content=kept, is_error=bool(block.is_error))]

    def _thinking(self, block: Block, where: str) -> list[Part]:
        thought, sealed = decode_thought(block.thinking, block.signature or block.data, where, self.notes)
        if sealed is not None:
            self.sealed.append(sealed)
        return [thought] if thought is not None else []

    def _tool_reference(self, block: Block, where: str) -> list[Part]:
        return self._change(ToolChange(block.tool_name, available=True))

    def _found_tools(self, block: Block, where: str) -> list[Part]:
        found = read_found(block, block.tool_use_id.removeprefix(PREFIX), where)
        self.changes += [ToolChange(name, available=True) for name in found.tools]
        return [found]

    def _tool_addition(self, block: Block, where: str) -> list[Part]:
        tool = block.tool or ToolRef()
        definition = jsontext.replace_lone_surrogates(bytes(tool.definition))
        if not definition:
            return self._change(ToolChange(tool.name, available=True))
        wire = jsontext.decode(decode_tool, definition, f"{where}.tool.definition")
        return self._change(ToolChange(wire.name, available=True, definition=definition))

    def _tool_removal(self, block: Block, where: str) -> list[Part]:
        return self._change(ToolChange((block.tool or ToolRef()).name, available=False))

    def _change(self, change: ToolChange) -> list[Part]:
        self.changes.append(change)
        return [
            Text(text=f"The tool {change.name} is {'now' if change.available else 'no longer'} available.")
        ]

    def _search_result(self, block: Block, where: str) -> list[Part]:
        head = " ".join(word for word in (block.title, block.source) if isinstance(word, str) and word)
        return [Text(text=head), *self._content(block, where)]

    def _served(self, block: Block, where: str) -> list[Part]:
        """Decode a call or result of a known server tool, from this gateway or from another service.

        Return no parts if the tool is unknown.
        """
        if block.type.endswith("_tool_use"):
            call = read_call(block, where)
            return [call] if call is not None else []
        read = read_result(block, where)
        if read is None:
            return []
        result, sealed = read
        self.sealed += sealed
        return [result]

    def _foreign_tool(self, block: Block, where: str) -> list[Part]:
        """Convert a block of an unknown server tool to text, without its encrypted data."""
        payload = bytes(block.input) or bytes(block.content) or b"null"
        value = jsontext.decode(msgspec.json.decode, payload, where)
        return [Text(text=f"[{block.type} {block.name or block.tool_use_id}] {readable(value)}")]

    def _drop(self, block: Block, where: str) -> list[Part]:
        self.notes.append(Note("dropped", where, f"{block.type} has no meaning for Gemini"))
        return []


_READERS: dict[str, Callable[[BlockReader, Block, str], list[Part]]] = {
    "image": BlockReader._media,
    "document": BlockReader._media,
    "tool_use": BlockReader._tool_use,
    "tool_result": BlockReader._tool_result,
    "thinking": BlockReader._thinking,
    "redacted_thinking": BlockReader._thinking,
    "tool_reference": BlockReader._tool_reference,
    RESULT: BlockReader._found_tools,
    "tool_addition": BlockReader._tool_addition,
    "tool_removal": BlockReader._tool_removal,
    "search_result": BlockReader._search_result,
    "compaction": BlockReader._content,
    "container_upload": BlockReader._drop,
    "mcp_tool_listing": BlockReader._drop,
    "fallback": BlockReader._drop,
    "browser_state": BlockReader._drop,
}


def _is_result_content(part: Part) -> TypeGuard[Text | Media]:
    return part.text != "" if isinstance(part, Text) else isinstance(part, Media)


def _title_parts(block: Block) -> list[Part]:
    words = " ".join(word for word in (block.title, block.context) if word)
    return [Text(text=words)] if words else []
