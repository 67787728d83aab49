"""The parts of a message: text, thought, media, tool call, tool result, server-side tool call and its result.

`place_signatures` puts signatures that the client sent back onto the parts that they belong to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from dragoman.ir.signature import AFTER_TEXT, SealedSignature, Signature

#: Tools that a service runs on its own side, under one name for all vendors.
ServerKind = Literal[
    "web_search", "web_fetch", "code_execution", "tool_search", "mcp", "mcp_list", "mcp_approval"
]


class Source(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A page that was found or fetched. `text` is its content if known; `error` says why it could not be fetched."""

    url: str
    title: str = ""
    text: str = ""
    error: str = ""


class Citation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The sources of the characters `start` to `end` (exclusive) of a text."""

    start: int
    end: int
    sources: tuple[Source, ...]


class Text(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="text"):
    text: str
    signature: Signature | None = None
    citations: tuple[Citation, ...] = ()


class Thought(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="thought"):
    """The model's reasoning, or the summary of it that the vendor shows; may be empty and still be signed."""

    text: str
    signature: Signature | None = None


class Media(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="media"):
    """A file such as an image or a PDF: either `data` (base64 without a `data:` prefix) or a `uri`."""

    mime: str
    data: str = ""
    uri: str = ""


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="call"):
    """A call of a client's or gateway's tool.

    `args` is the JSON text of an object, byte for byte as received; escapes are never decoded. `native` is a JSON
    object with the other fields of the Gemini part, which only the Gemini dialect can express.
    """

    id: str
    name: str
    args: bytes = b"{}"
    signature: Signature | None = None
    native: bytes = b""

    @property
    def arguments(self) -> dict[str, Any]:
        return msgspec.json.decode(self.args, type=dict[str, Any])


class ToolResult(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="result"):
    """The result of the call `call_id`; `name` is the tool's name, filled in from the call if it is known.

    `response` is the JSON text of an object, if the tool returned one instead of text. `native` is as in `ToolCall`.
    If `approval` is set there is no result yet: it is the user's decision whether the tool may run.
    """

    call_id: str
    content: tuple[Text | Media, ...] = ()
    is_error: bool = False
    name: str = ""
    response: bytes = b""
    native: bytes = b""
    approval: Literal["", "yes", "no"] = ""


class ServerCall(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="server_call"):
    """A call of a server-side tool: the service runs it, so the client neither runs nor answers it.

    `args` is the JSON text of an object: `queries` of a web search, `urls` of a fetch, `code` of a program; a tool
    search and an MCP tool have the arguments of that tool. For MCP kinds `label` names the server, and `approval` is
    the id of the user's approval. `mcp_list` (the list of a server's tools) and `mcp_approval` (a request for
    approval) are calls too. `signature.data` is the JSON text of a list of the service's own parts for the call and
    its result, if the service requires them back.
    """

    id: str
    kind: ServerKind
    name: str = ""
    args: bytes = b"{}"
    label: str = ""
    approval: str = ""
    signature: Signature | None = None


class ServerResult(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="server_result"):
    """The result of the server call `call_id`: sources, names of tools, or the output of a program or tool.

    `error` is an error code or message; `output` may have the details.
    """

    call_id: str
    kind: ServerKind
    sources: tuple[Source, ...] = ()
    tools: tuple[str, ...] = ()
    output: str = ""
    error: str = ""


class Native(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="native"):
    """Content that only the Gemini dialect can express, as JSON text: a part, or the response field `field`."""

    json: bytes
    field: str = ""


Part = Text | Thought | Media | ToolCall | ToolResult | ServerCall | ServerResult | Native


def place_signatures(parts: Sequence[Part], sealed: Iterable[SealedSignature]) -> tuple[Part, ...]:
    """Return the parts with each signature on the call with its target id, or after the text for `AFTER_TEXT`.

    A signature whose call is missing is dropped.
    """
    by_target = {item.target: item.signature for item in sealed}
    if not by_target:
        return tuple(parts)
    placed = [
        msgspec.structs.replace(part, signature=by_target[part.id])
        if isinstance(part, _SIGNED_CALLS) and part.id in by_target
        else part
        for part in parts
    ]
    if AFTER_TEXT in by_target:
        placed.append(Text(text="", signature=by_target[AFTER_TEXT]))
    return tuple(placed)


_SIGNED_CALLS = (ToolCall, ServerCall)
