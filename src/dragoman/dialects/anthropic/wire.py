"""The fields of a Messages request that the decoder reads; unknown fields are ignored (known problem F3)."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.dialects.base import WireLocation
from dragoman.dialects.thinking import WireThinking

NOTHING = msgspec.Raw(b"")


class Source(msgspec.Struct):
    """The content of an image or a document, or its URL."""

    type: str = ""
    media_type: str = ""
    data: str = ""
    url: str = ""
    content: str | list[Block] | None = None


class ToolRef(msgspec.Struct):
    """A tool that a message adds or removes: its name, or its definition."""

    name: str = ""
    definition: msgspec.Raw = NOTHING


class Block(msgspec.Struct):
    """Any content block; `type` decides which fields are used."""

    type: str
    text: str | None = None
    source: Source | str | None = None
    title: str | None = None
    context: str | None = None
    id: str = ""
    name: str = ""
    input: msgspec.Raw = NOTHING
    tool_use_id: str = ""
    content: msgspec.Raw = NOTHING
    is_error: bool | None = None
    thinking: str = ""
    signature: str | None = None
    data: str = ""
    tool_name: str = ""
    tool: ToolRef | None = None
    server_name: str = ""
    citations: msgspec.Raw = NOTHING


class WireMessage(msgspec.Struct):
    role: str
    content: str | list[Block] | None = None


class WireTool(msgspec.Struct):
    name: str = ""
    type: str | None = None
    description: str | None = None
    input_schema: msgspec.Raw = NOTHING
    defer_loading: bool | None = False
    max_uses: int | None = None
    allowed_domains: list[str] | None = None
    blocked_domains: list[str] | None = None
    user_location: WireLocation | None = None
    mcp_server_name: str | None = None
    default_config: WireEnabled | None = None
    configs: dict[str, WireEnabled] | None = None


class WireEnabled(msgspec.Struct):
    """The configuration of all tools of an MCP server, or of one tool."""

    enabled: bool | None = None
    allowed_tools: list[str] | None = None
    defer_loading: bool | None = None


class WireMcpServer(msgspec.Struct):
    name: str
    url: str = ""
    authorization_token: str | None = None
    tool_configuration: WireEnabled | None = None


class WireToolChoice(msgspec.Struct):
    type: str
    name: str = ""
    disable_parallel_tool_use: bool | None = False


class WireFormat(msgspec.Struct):
    type: str = ""
    schema: msgspec.Raw = NOTHING


class OutputConfig(msgspec.Struct):
    effort: str | None = None
    format: WireFormat | None = None


class WireMetadata(msgspec.Struct):
    user_id: str | None = None


class Body(msgspec.Struct):
    model: str
    messages: list[msgspec.Raw]
    max_tokens: int | None = None
    system: str | list[Block] | None = None
    tools: msgspec.Raw = NOTHING
    tool_choice: WireToolChoice | None = None
    thinking: WireThinking | None = None
    output_config: OutputConfig | None = None
    output_format: WireFormat | None = None
    metadata: WireMetadata | None = None
    stop_sequences: list[str] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stream: bool | None = False
    mcp_servers: list[WireMcpServer] | None = None
    thread: Any = None


decode_body = msgspec.json.Decoder(Body).decode
decode_message = msgspec.json.Decoder(WireMessage).decode
decode_messages = msgspec.json.Decoder(list[WireMessage]).decode
decode_tool = msgspec.json.Decoder(WireTool).decode
decode_tools = msgspec.json.Decoder(list[WireTool] | None).decode
decode_blocks = msgspec.json.Decoder(str | list[Block] | None).decode
