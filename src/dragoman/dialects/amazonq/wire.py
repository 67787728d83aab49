"""The fields of a request to Amazon Q or Kiro that we read; unknown fields are ignored, null means absent."""

from __future__ import annotations

import msgspec

from dragoman.dialects.thinking import WireThinking

_NOTHING = msgspec.Raw(b"")

#: An object whose members are still raw JSON.
Object = dict[str, msgspec.Raw]


class Source(msgspec.Struct):
    data: str = msgspec.field(default="", name="bytes")


class Image(msgspec.Struct):
    format: str
    source: Source | None = None


class Document(msgspec.Struct):
    format: str
    source: Source | None = None
    name: str | None = None


class UserInput(msgspec.Struct, rename="camel"):
    content: str | None = None
    model_id: str | None = None
    user_intent: str | None = None
    images: list[Image] | None = None
    documents: list[Document] | None = None
    user_input_message_context: Object | None = None


class ToolUse(msgspec.Struct, rename="camel"):
    tool_use_id: str
    name: str
    input: msgspec.Raw = _NOTHING


class ToolResult(msgspec.Struct, rename="camel"):
    tool_use_id: str
    content: list[Object] | None = None
    status: str | None = None
    tool_name: str | None = None


class ReasoningText(msgspec.Struct):
    text: str | None = None
    signature: str | None = None


class Reasoning(msgspec.Struct, rename="camel"):
    reasoning_text: ReasoningText | None = None
    redacted_content: str | None = None


class AssistantResponse(msgspec.Struct, rename="camel"):
    content: str | None = None
    tool_uses: list[ToolUse] | None = None
    reasoning_content: Reasoning | None = None
    supplementary_web_links: msgspec.Raw = _NOTHING
    references: msgspec.Raw = _NOTHING
    followup_prompt: msgspec.Raw = _NOTHING


class ChatMessage(msgspec.Struct, rename="camel"):
    user_input_message: UserInput | None = None
    assistant_response_message: AssistantResponse | None = None


class Schema(msgspec.Struct):
    json: msgspec.Raw = _NOTHING


class Specification(msgspec.Struct, rename="camel"):
    name: str
    description: str | None = None
    input_schema: Schema | None = None


class ToolEntry(msgspec.Struct, rename="camel"):
    tool_specification: Specification | None = None
    cache_point: msgspec.Raw = _NOTHING


class Effort(msgspec.Struct):
    effort: str | None = None


class ModelFields(msgspec.Struct):
    """`additionalModelRequestFields`: settings in the format of Anthropic's or OpenAI's API."""

    thinking: WireThinking | None = None
    output_config: Effort | None = None
    reasoning: Effort | None = None
    effort: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_sequences: list[str] | None = None


class ConversationState(msgspec.Struct, rename="camel"):
    current_message: msgspec.Raw
    history: list[msgspec.Raw] | None = None
    conversation_id: str | None = None


class Body(msgspec.Struct, rename="camel"):
    conversation_state: ConversationState
    system_prompt: str | None = None
    additional_model_request_fields: msgspec.Raw = _NOTHING
    dry_run: bool | None = None


decode_body = msgspec.json.Decoder(Body).decode
decode_chat_message = msgspec.json.Decoder(ChatMessage).decode
decode_chat_messages = msgspec.json.Decoder(list[ChatMessage]).decode
decode_tool_results = msgspec.json.Decoder(list[ToolResult] | None).decode
decode_tool_entries = msgspec.json.Decoder(list[msgspec.Raw] | None).decode
decode_tool_entry = msgspec.json.Decoder(ToolEntry).decode
decode_model_fields = msgspec.json.Decoder(ModelFields | None).decode
decode_object = msgspec.json.Decoder(Object | None).decode
decode_schema = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
decode_text = msgspec.json.Decoder(str).decode
