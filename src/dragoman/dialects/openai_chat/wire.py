"""The fields of a Chat Completions request that the decoder reads; unknown fields are ignored."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.dialects.base import WireLocation

NOTHING = msgspec.Raw(b"")


class ImageUrl(msgspec.Struct):
    url: str = ""
    detail: str | None = None


class InputAudio(msgspec.Struct):
    data: str = ""
    format: str = ""


class WireFile(msgspec.Struct):
    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class WirePart(msgspec.Struct):
    """Any content part; `type` decides which fields are used."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: str | ImageUrl | None = None
    input_audio: InputAudio | None = None
    file: WireFile | None = None


class Google(msgspec.Struct):
    thought_signature: str | None = None


class ExtraContent(msgspec.Struct):
    """The field in which Google's own Chat Completions endpoint puts what OpenAI has no field for."""

    google: Google | None = None


class FunctionCall(msgspec.Struct):
    """A function call; `arguments` is a string with JSON, but some clients send the object itself."""

    name: str = ""
    arguments: msgspec.Raw = NOTHING


class CustomCall(msgspec.Struct):
    name: str = ""
    input: str = ""


class WireToolCall(msgspec.Struct):
    id: str = ""
    type: str | None = None
    function: FunctionCall | None = None
    custom: CustomCall | None = None
    extra_content: ExtraContent | None = None


class WireMessage(msgspec.Struct):
    role: str
    content: str | list[WirePart] | None = None
    name: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[WireToolCall] | None = None
    function_call: FunctionCall | None = None
    tool_call_id: str | None = None
    audio: Any = None
    extra_content: ExtraContent | None = None


class WireFunction(msgspec.Struct):
    name: str = ""
    description: str | None = None
    parameters: msgspec.Raw = NOTHING


class WireGrammar(msgspec.Struct):
    syntax: str = ""
    definition: str = ""


class CustomFormat(msgspec.Struct):
    type: str = "text"
    grammar: WireGrammar | None = None


class WireCustom(msgspec.Struct):
    name: str = ""
    description: str | None = None
    format: CustomFormat | None = None


class WireTool(WireFunction):
    """A tool: nested as in Chat, or flat as in the Responses API and in the deprecated `functions`."""

    type: str | None = None
    function: WireFunction | None = None
    custom: WireCustom | None = None


class Named(msgspec.Struct):
    name: str = ""


class NamedTool(Named):
    """The name of a tool, nested or flat."""

    function: Named | None = None
    custom: Named | None = None


class AllowedTools(msgspec.Struct):
    mode: str = "auto"
    tools: list[NamedTool] = []


class WireToolChoice(NamedTool):
    type: str = "function"
    allowed_tools: AllowedTools | None = None


class WireSchema(msgspec.Struct):
    schema: msgspec.Raw = NOTHING


class WireFormat(msgspec.Struct):
    type: str
    json_schema: WireSchema | None = None


class StreamOptions(msgspec.Struct):
    include_usage: bool | None = False


class UserLocation(msgspec.Struct):
    approximate: WireLocation | None = None


class SearchOptions(msgspec.Struct):
    search_context_size: str | None = None
    user_location: UserLocation | None = None


class Body(msgspec.Struct):
    """A request body. The `Raw` fields after the blank line are read only to note that they are dropped."""

    model: str
    messages: list[msgspec.Raw]
    tools: msgspec.Raw = NOTHING
    functions: msgspec.Raw = NOTHING
    tool_choice: str | WireToolChoice | None = None
    function_call: str | Named | None = None
    parallel_tool_calls: bool | None = None
    response_format: WireFormat | None = None
    reasoning_effort: str | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stop: str | list[str] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = None
    modalities: list[str] | None = None
    web_search_options: SearchOptions | None = None
    prompt_cache_key: str | None = None

    audio: msgspec.Raw = NOTHING
    enable_thinking: msgspec.Raw = NOTHING
    extra_body: msgspec.Raw = NOTHING
    logit_bias: msgspec.Raw = NOTHING
    logprobs: msgspec.Raw = NOTHING
    metadata: msgspec.Raw = NOTHING
    min_p: msgspec.Raw = NOTHING
    moderation: msgspec.Raw = NOTHING
    prediction: msgspec.Raw = NOTHING
    prompt_cache_options: msgspec.Raw = NOTHING
    prompt_cache_retention: msgspec.Raw = NOTHING
    reasoning: msgspec.Raw = NOTHING
    repetition_penalty: msgspec.Raw = NOTHING
    safety_identifier: msgspec.Raw = NOTHING
    service_tier: msgspec.Raw = NOTHING
    store: msgspec.Raw = NOTHING
    thinking: msgspec.Raw = NOTHING
    top_logprobs: msgspec.Raw = NOTHING
    user: msgspec.Raw = NOTHING
    verbosity: msgspec.Raw = NOTHING


decode_body = msgspec.json.Decoder(Body).decode
decode_message = msgspec.json.Decoder(WireMessage).decode
decode_tools = msgspec.json.Decoder(list[WireTool] | None).decode
decode_schema = msgspec.json.Decoder(dict[str, Any]).decode
