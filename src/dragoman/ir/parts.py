"""The smallest pieces of a conversation: text, thought, media, tool call, tool result."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.ir.signature import Signature


class Text(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="text"):
    text: str
    signature: Signature | None = None


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


class ToolResult(msgspec.Struct, frozen=True, kw_only=True, tag="result"):
    """What a tool answered to the call with that id; `name` is filled in from the call when it is known.

    `response` is the JSON text of an object, where the tool answered with one instead of text;
    `native` is as in `ToolCall`.
    """

    call_id: str
    content: tuple[Text | Media, ...] = ()
    is_error: bool = False
    name: str = ""
    response: bytes = b""
    native: bytes = b""


class Native(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="native"):
    """Something only Gemini's own dialect can say, as its JSON text: a part, or a `field` beside the parts."""

    json: bytes
    field: str = ""


Part = Text | Thought | Media | ToolCall | ToolResult | Native
