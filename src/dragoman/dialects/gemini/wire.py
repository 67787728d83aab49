"""The parts of a `GenerateContentResponse` we read; unknown fields are ignored, anything may be absent."""

from __future__ import annotations

from typing import Any

import msgspec

NOTHING = msgspec.Raw(b"")


class PartialArg(msgspec.Struct, rename="camel"):
    json_path: str = "$"
    string_value: str | None = None
    number_value: float | int | None = None
    bool_value: bool | None = None
    null_value: Any = msgspec.UNSET
    will_continue: bool | None = False


class FunctionCall(msgspec.Struct, rename="camel"):
    id: str | None = None
    name: str | None = None
    args: msgspec.Raw = msgspec.Raw(b"")
    partial_args: list[PartialArg] | None = None
    will_continue: bool | None = False


class Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool | None = False
    thought_signature: str | None = None
    function_call: FunctionCall | None = None
    inline_data: msgspec.Raw = NOTHING


class Content(msgspec.Struct, rename="camel"):
    parts: list[Part] | None = None


class Candidate(msgspec.Struct, rename="camel"):
    content: Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    index: int | None = 0


class PromptFeedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None
    block_reason_message: str | None = None


class UsageMetadata(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None


class Chunk(msgspec.Struct, rename="camel"):
    candidates: list[Candidate] | None = None
    prompt_feedback: PromptFeedback | None = None
    usage_metadata: UsageMetadata | None = None
    model_version: str | None = None
    response_id: str | None = None
    error: msgspec.Raw = NOTHING


decode_chunk = msgspec.json.Decoder(Chunk, strict=False).decode
