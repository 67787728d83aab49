"""The fields of a Converse request that we read.

Unknown fields are ignored; unknown members of a union (kinds of content) are rejected by the decoders.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.errors import InvalidRequest

NOTHING = msgspec.Raw(b"")

#: A union (Smithy): an object whose only member names its kind.
OneOf = dict[str, msgspec.Raw]


class Wire(msgspec.Struct, rename="camel"):
    """Base class: Bedrock's names are camelCase."""


class Image(Wire):
    format: str
    source: OneOf


class Citations(Wire):
    enabled: bool = False


class Document(Wire):
    source: OneOf
    name: str = ""
    format: str | None = None
    context: str | None = None
    citations: Citations | None = None


class Recording(Wire):
    """A video or an audio file."""

    format: str
    source: OneOf


class ToolUse(Wire):
    tool_use_id: str
    name: str
    input: msgspec.Raw = NOTHING
    type: str | None = None


class ToolResult(Wire):
    tool_use_id: str
    content: list[OneOf] | None = None
    status: str | None = None
    type: str | None = None


class ReasoningText(Wire):
    text: str = ""
    signature: str | None = None


class SearchResult(Wire):
    source: str = ""
    title: str = ""
    content: list[OneOf] = []
    citations: Citations | None = None


class GuardText(Wire):
    text: str


class CitationsContent(Wire):
    content: list[OneOf] | None = None
    citations: list[Any] | None = None


class ToolReference(Wire):
    name: str = ""


class ToolChange(Wire):
    """The content of `toolAddition` and `toolRemoval`, which change the tools during a conversation."""

    tool: ToolReference


class WireMessage(Wire):
    role: str
    content: list[OneOf] | None = None


class ToolSpec(Wire):
    name: str
    input_schema: OneOf = {}
    description: str | None = None


class Named(Wire):
    name: str


class ToolConfig(Wire):
    tools: msgspec.Raw = NOTHING
    tool_choice: OneOf | None = None


class InferenceConfig(Wire):
    """`topK` is not part of Bedrock's API, but the AI SDK sends it."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_sequences: list[str] | None = None


class JsonSchema(Wire):
    """`schema` is JSON text in a string."""

    schema: str


class TextFormat(Wire):
    type: str
    structure: OneOf = {}


class OutputConfig(Wire):
    text_format: TextFormat | None = None
    effort: str | None = None


class Body(Wire):
    """A Converse request.

    `modelId` is part of the URL in Bedrock's API; requests stored in files have it in the body. The `Raw` fields
    after the blank line are read only to report that they are dropped.
    """

    model_id: str | None = None
    messages: list[msgspec.Raw] | None = None
    system: list[OneOf] | None = None
    inference_config: InferenceConfig | None = None
    tool_config: ToolConfig | None = None
    output_config: OutputConfig | None = None
    additional_model_request_fields: msgspec.Raw = NOTHING
    additional_model_response_field_paths: list[str] | None = None
    prompt_variables: OneOf | None = None

    guardrail_config: msgspec.Raw = NOTHING
    performance_config: msgspec.Raw = NOTHING
    request_metadata: msgspec.Raw = NOTHING
    service_tier: msgspec.Raw = NOTHING


class CountBody(Wire):
    input: OneOf


class InvokedBody(Wire):
    """`body` is the base64 of an InvokeModel body."""

    body: str


def member(union: OneOf, where: str) -> tuple[str, msgspec.Raw]:
    """Return the kind and the value of a union; null members are ignored if it has others.

    Raise `InvalidRequest` unless exactly one member is left.
    """
    present = [name for name, raw in union.items() if len(union) == 1 or bytes(raw) != b"null"]
    if len(present) != 1:
        raise InvalidRequest(f"exactly one member must say what this is, not {len(present)}", where=where)
    return present[0], union[present[0]]


def read_text(raw: msgspec.Raw, where: str) -> str:
    return jsontext.decode(_decode_text, raw, where)


_decode_text = msgspec.json.Decoder(str).decode
decode_body = msgspec.json.Decoder(Body).decode
decode_count = msgspec.json.Decoder(CountBody).decode
decode_invoked = msgspec.json.Decoder(InvokedBody).decode
decode_message = msgspec.json.Decoder(WireMessage).decode
decode_image = msgspec.json.Decoder(Image).decode
decode_document = msgspec.json.Decoder(Document).decode
decode_recording = msgspec.json.Decoder(Recording).decode
decode_tool_use = msgspec.json.Decoder(ToolUse).decode
decode_tool_result = msgspec.json.Decoder(ToolResult).decode
decode_reasoning_text = msgspec.json.Decoder(ReasoningText).decode
decode_search_result = msgspec.json.Decoder(SearchResult).decode
decode_guard_text = msgspec.json.Decoder(GuardText).decode
decode_citations = msgspec.json.Decoder(CitationsContent).decode
decode_change = msgspec.json.Decoder(ToolChange).decode
decode_union = msgspec.json.Decoder(OneOf).decode
decode_unions = msgspec.json.Decoder(list[OneOf]).decode
decode_tools = msgspec.json.Decoder(list[OneOf] | None).decode
decode_tool_spec = msgspec.json.Decoder(ToolSpec).decode
decode_named = msgspec.json.Decoder(Named).decode
decode_json_schema = msgspec.json.Decoder(JsonSchema).decode
decode_object = msgspec.json.Decoder(dict[str, Any]).decode
