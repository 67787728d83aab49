"""The smallest pieces of a conversation: text, thought, media, tool call, tool result, and what a service ran itself."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from dragoman.ir.signature import Signature

#: What a service runs for the model, whatever its vendors call it.
ServerKind = Literal[
    "web_search", "web_fetch", "code_execution", "tool_search", "mcp", "mcp_list", "mcp_approval"
]


class Source(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was found or read. `text` is what it says, as far as anybody told us; `error` why it could not be read."""

    url: str
    title: str = ""
    text: str = ""
    error: str = ""


class Citation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The characters `start` to `end` of a text rest on these sources."""

    start: int
    end: int
    sources: tuple[Source, ...]


class Text(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="text"):
    text: str
    signature: Signature | None = None
    citations: tuple[Citation, ...] = ()


class Thought(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="thought"):
    """The model's reasoning as it was shown; may be empty and still carry a signature."""

    text: str
    signature: Signature | None = None


class Media(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="media"):
    """An image, a PDF…: `data` is bare base64, or `uri` says where it lies."""

    mime: str
    data: str = ""
    uri: str = ""


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="call"):
    """`args` is the JSON text of an object, byte for byte as it came: nothing is ever un-escaped.

    `native` is what else stood in its part and only Gemini's own dialect can say: the JSON text of an object.
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
    """What a tool answered to the call with that id; `name` is filled in from the call when it is known.

    `response` is the JSON text of an object, where the tool answered with one instead of text;
    `native` is as in `ToolCall`. With an `approval` there is no answer yet: the user has said whether the tool may run.
    """

    call_id: str
    content: tuple[Text | Media, ...] = ()
    is_error: bool = False
    name: str = ""
    response: bytes = b""
    native: bytes = b""
    approval: Literal["", "yes", "no"] = ""


class ServerCall(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="server_call"):
    """A tool that a service ran for the model by itself: nobody is asked to run it, nobody answers it.

    `args` is the JSON text of an object: `queries` of a search, `urls` of a fetch, `code` of a program; a search for
    tools and a tool of an MCP server have their own, and `label` names the server; `approval` is the id of the user's
    consent to it. A list of such tools, and a request for that consent, are calls of their own kinds. `signature`
    holds the service's own words for the call and its result where it wants them back: the JSON text of a list of its
    parts.
    """

    id: str
    kind: ServerKind
    name: str = ""
    args: bytes = b"{}"
    label: str = ""
    approval: str = ""
    signature: Signature | None = None


class ServerResult(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="server_result"):
    """What came of the server call with that id: sources, tools, or what was printed or answered.

    `error` is a word or a sentence for what went wrong; the output may say more.
    """

    call_id: str
    kind: ServerKind
    sources: tuple[Source, ...] = ()
    tools: tuple[str, ...] = ()
    output: str = ""
    error: str = ""


class Native(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="native"):
    """Something only Gemini's own dialect can say, as its JSON text: a part, or a `field` beside the parts."""

    json: bytes
    field: str = ""


Part = Text | Thought | Media | ToolCall | ToolResult | ServerCall | ServerResult | Native
