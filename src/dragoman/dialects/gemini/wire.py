"""The fields of a `GenerateContentResponse` that we read (unknown fields are ignored, all are optional), and call ids.

Clients get a call id that is globally unique, which Google's ids need not be. Google's id is appended to ours, so that
it can be restored from the client's next request without any stored state.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

NOTHING = msgspec.Raw(b"")

# `gc=False`: these values come from JSON and cannot be part of a reference cycle.


class PartialArg(msgspec.Struct, rename="camel", gc=False):
    json_path: str = "$"
    string_value: str | None = None
    number_value: float | int | None = None
    bool_value: bool | None = None
    null_value: Any = msgspec.UNSET
    will_continue: bool | None = False


class FunctionCall(msgspec.Struct, rename="camel", gc=False):
    id: str | None = None
    name: str | None = None
    args: msgspec.Raw = msgspec.Raw(b"")
    partial_args: list[PartialArg] | None = None
    will_continue: bool | None = False


class Part(msgspec.Struct, rename="camel", gc=False):
    text: str | None = None
    thought: bool | None = False
    thought_signature: str | None = None
    function_call: FunctionCall | None = None
    inline_data: msgspec.Raw = NOTHING
    file_data: msgspec.Raw = NOTHING
    executable_code: msgspec.Raw = NOTHING
    code_execution_result: msgspec.Raw = NOTHING
    tool_call: msgspec.Raw = NOTHING
    tool_response: msgspec.Raw = NOTHING


class Content(msgspec.Struct, rename="camel", gc=False):
    parts: list[Part] | None = None


class Candidate(msgspec.Struct, rename="camel", gc=False):
    content: Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    index: int | None = 0
    grounding_metadata: msgspec.Raw = NOTHING
    citation_metadata: msgspec.Raw = NOTHING
    url_context_metadata: msgspec.Raw = NOTHING
    safety_ratings: msgspec.Raw = NOTHING
    avg_logprobs: msgspec.Raw = NOTHING
    logprobs_result: msgspec.Raw = NOTHING
    continuation_token: msgspec.Raw = NOTHING

    def has_native(self) -> bool:
        """Whether any of `NATIVE_FIELDS` is present; written out, because it runs for every chunk."""
        return not (
            self.grounding_metadata is NOTHING
            and self.citation_metadata is NOTHING
            and self.url_context_metadata is NOTHING
            and self.safety_ratings is NOTHING
            and self.avg_logprobs is NOTHING
            and self.logprobs_result is NOTHING
            and self.continuation_token is NOTHING
        )


class PromptFeedback(msgspec.Struct, rename="camel", gc=False):
    block_reason: str | None = None
    block_reason_message: str | None = None


class Chunk(msgspec.Struct, rename="camel", gc=False):
    candidates: list[Candidate] | None = None
    prompt_feedback: msgspec.Raw = NOTHING
    usage_metadata: msgspec.Raw = NOTHING
    model_version: str | None = None
    response_id: str | None = None
    error: msgspec.Raw = NOTHING


class TextPart(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    text: str
    thought: bool = False


class TextContent(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    parts: list[TextPart]
    role: str = ""


class TextCandidate(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    content: TextContent
    index: int = 0


class TextChunk(msgspec.Struct, rename="camel", gc=False, forbid_unknown_fields=True):
    """A chunk with nothing but text and token counts, like most chunks of a stream.

    Decoding fails for any other field, which selects the slower `Chunk`.
    """

    candidates: list[TextCandidate]
    usage_metadata: msgspec.Raw = NOTHING
    model_version: str | None = None
    response_id: str | None = None


#: Fields of a part and of a candidate that are passed on unchanged, by attribute name.
NATIVE_PARTS = {
    "inline_data": "inlineData",
    "file_data": "fileData",
    "executable_code": "executableCode",
    "code_execution_result": "codeExecutionResult",
    "tool_call": "toolCall",
    "tool_response": "toolResponse",
}
NATIVE_FIELDS = {
    "grounding_metadata": "groundingMetadata",
    "citation_metadata": "citationMetadata",
    "url_context_metadata": "urlContextMetadata",
    "safety_ratings": "safetyRatings",
    "avg_logprobs": "avgLogprobs",
    "logprobs_result": "logprobsResult",
    "continuation_token": "continuationToken",
}

decode_feedback = msgspec.json.Decoder(PromptFeedback | None, strict=False).decode
decode_chunk = msgspec.json.Decoder(Chunk, strict=False).decode
decode_text_chunk = msgspec.json.Decoder(TextChunk, strict=False).decode


MAX_ID_CHARS = 64
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_OURS = re.compile(r"[A-Za-z]+_[A-Za-z0-9]{16}-(.+)")


def client_id(own: str, upstream: str) -> str:
    """Return the id for the client: `own`, with Google's id appended if the result is short and plain ASCII.

    `own` is a new id: a prefix, an underscore and 16 letters or digits.
    """
    joined = f"{own}-{upstream}"
    return joined if _PLAIN.fullmatch(upstream) and len(joined) <= MAX_ID_CHARS else own


def upstream_id(call_id: str) -> str:
    """Return the id that Google gave this call, or `call_id` itself if it contains none."""
    found = _OURS.fullmatch(call_id)
    return found[1] if found else call_id
