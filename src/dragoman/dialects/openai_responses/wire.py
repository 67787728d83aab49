"""The fields of a Responses request that the decoder reads; unknown fields are ignored."""

from __future__ import annotations

import msgspec

from dragoman.dialects.base import WireLocation

NOTHING = msgspec.Raw(b"")


class ImageUrl(msgspec.Struct):
    """Chat's form of an image URL, which some clients also send here."""

    url: str = ""


class Audio(msgspec.Struct):
    data: str = ""
    format: str = ""


class Content(msgspec.Struct):
    """One part of a message, an output or a summary; `type` decides which fields are used."""

    type: str = ""
    text: str | None = None
    refusal: str | None = None
    encrypted_content: str | None = None
    image_url: str | ImageUrl | None = None
    file_id: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    filename: str | None = None
    input_audio: Audio | None = None
    audio_url: str | None = None


class Item(msgspec.Struct):
    """Any input item; without `type`, it is a message if it has a role, else a reference."""

    type: str | None = None
    role: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    content: str | list[Content] | None = None
    arguments: msgspec.Raw = NOTHING
    input: str | None = None
    output: msgspec.Raw = NOTHING
    status: str | None = None
    summary: list[Content] | None = None
    encrypted_content: str | None = None
    tools: msgspec.Raw = NOTHING
    action: msgspec.Raw = NOTHING
    operation: msgspec.Raw = NOTHING
    author: str | None = None
    recipient: str | None = None
    server_label: str | None = None
    approval_request_id: str | None = None
    approve: bool | None = None
    reason: str | None = None

    @property
    def kind(self) -> str:
        return self.type or ("message" if self.role else "item_reference")


class Grammar(msgspec.Struct):
    type: str = ""
    syntax: str = ""
    definition: str = ""


class Environment(msgspec.Struct):
    type: str = ""


class Filters(msgspec.Struct):
    allowed_domains: list[str] | None = None
    blocked_domains: list[str] | None = None


class Filter(msgspec.Struct):
    """A selection of the tools of an MCP server."""

    tool_names: list[str] | None = None
    read_only: bool | None = None


class Approval(msgspec.Struct):
    always: Filter | None = None
    never: Filter | None = None


class WireTool(msgspec.Struct):
    type: str | None = None
    name: str | None = None
    description: str | None = None
    parameters: msgspec.Raw = NOTHING
    function: WireTool | None = None  # Chat's nested form
    format: Grammar | None = None
    tools: list[WireTool] | None = None
    defer_loading: bool | None = None
    execution: str | None = None
    environment: Environment | None = None
    server_label: str | None = None
    server_url: str | None = None
    connector_id: str | None = None
    tunnel_id: str | None = None
    headers: dict[str, str] | None = None
    authorization: str | None = None
    allowed_tools: list[str] | Filter | None = None
    require_approval: str | Approval | None = None
    filters: Filters | None = None
    user_location: WireLocation | None = None
    search_context_size: str | None = None
    external_web_access: bool | None = None
    container: msgspec.Raw = NOTHING


class WireChoice(msgspec.Struct):
    type: str = ""
    name: str | None = None
    namespace: str | None = None
    function: WireChoice | None = None  # Chat's nested form
    mode: str | None = None
    server_label: str | None = None
    tools: list[WireChoice] | None = None
    allowed_tools: WireChoice | None = None  # Chat's nested form


class WireReasoning(msgspec.Struct):
    effort: str | None = None
    summary: str | None = None
    generate_summary: str | None = None


class WireFormat(msgspec.Struct):
    type: str = ""
    schema: msgspec.Raw = NOTHING


class WireText(msgspec.Struct):
    format: WireFormat | None = None
    verbosity: str | None = None


class ConversationId(msgspec.Struct):
    id: str


class Body(msgspec.Struct):
    """A request body; `Raw` fields are repeated in the answer, or decoded later."""

    model: str | None = None  # `/input_tokens` may leave it out
    input: str | list[msgspec.Raw] | None = None
    instructions: str | None = None
    tools: msgspec.Raw = NOTHING
    tool_choice: msgspec.Raw = NOTHING
    parallel_tool_calls: bool | None = None
    reasoning: msgspec.Raw = NOTHING
    text: msgspec.Raw = NOTHING
    metadata: msgspec.Raw = NOTHING
    prompt: msgspec.Raw = NOTHING
    context_management: msgspec.Raw = NOTHING
    moderation: msgspec.Raw = NOTHING
    include: list[str] | None = None
    conversation: str | ConversationId | None = None
    previous_response_id: str | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_logprobs: int | None = None
    truncation: str | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    user: str | None = None
    store: bool | None = None
    background: bool | None = None
    stream: bool | None = None

    @property
    def conversation_id(self) -> str | None:
        return self.conversation.id if isinstance(self.conversation, ConversationId) else self.conversation


decode_body = msgspec.json.Decoder(Body).decode
decode_item = msgspec.json.Decoder(Item).decode
decode_contents = msgspec.json.Decoder(str | list[Content] | None).decode
decode_content = msgspec.json.Decoder(Content).decode
decode_tools = msgspec.json.Decoder(list[WireTool] | None).decode
decode_choice = msgspec.json.Decoder(str | WireChoice | None).decode
decode_reasoning = msgspec.json.Decoder(WireReasoning | None).decode
decode_text = msgspec.json.Decoder(WireText | None).decode
