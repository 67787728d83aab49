"""Encode a complete answer as a chat completion, and the JSON fragments that the stream needs too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from dragoman.dialects.base import Answer
from dragoman.dialects.openai_chat import custom_tools
from dragoman.dialects.openai_chat.messages import legacy_id
from dragoman.ir import (
    AFTER_TEXT,
    ON_TEXT,
    ON_THOUGHT,
    Finished,
    Response,
    ServerResult,
    Signature,
    Source,
    StopReason,
    Text,
    Thought,
    ToolCall,
    Usage,
    seal,
)

_json = msgspec.json.Encoder().encode

_FINISH: dict[StopReason, str] = {
    "end": "stop",
    "tool_calls": "tool_calls",
    "max_tokens": "length",
    "blocked": "content_filter",
    "malformed": "content_filter",
    "other": "stop",
}


class Echo(msgspec.Struct, frozen=True, kw_only=True):
    """What the answer needs of its request; `custom` are the names of custom tools."""

    include_usage: bool = False
    legacy: bool = False  # the request uses the deprecated `functions`
    custom: frozenset[str] = frozenset()


def echo_of(answer: Answer) -> Echo:
    return answer.echo if isinstance(answer.echo, Echo) else Echo()


def encode_response(response: Response, answer: Answer) -> bytes:
    echo = echo_of(answer)
    choice = {
        "index": 0,
        "message": _message(response, answer, echo),
        "logprobs": None,
        "finish_reason": encode_finish(response.finished, echo),
    }
    completion = {
        "id": encode_id(answer),
        "object": "chat.completion",
        "created": answer.created_s,
        "model": answer.model,
        "choices": [choice],
        "usage": encode_usage(response.usage, answer),
        "system_fingerprint": None,
    }
    return _json(completion)


def encode_count(tokens: int) -> bytes:
    """Encode a token count as the Responses API does; Chat has no such endpoint."""
    return b'{"object":"response.input_tokens","input_tokens":%d}' % tokens


def encode_id(answer: Answer) -> str:
    """Return the id in OpenAI's form, `chatcmpl-…`."""
    return answer.id.replace("_", "-", 1)


def encode_finish(finished: Finished, echo: Echo) -> str:
    reason = _FINISH[finished.reason]
    return "function_call" if echo.legacy and reason == "tool_calls" else reason


def encode_refusal(finished: Finished) -> str | None:
    """Return the reason of a blocked answer, for the `refusal` field that clients show (known problem D7); else None."""
    if _FINISH[finished.reason] != "content_filter":
        return None
    return finished.detail or f"Gemini stopped with {finished.raw}"


def encode_usage(usage: Usage, answer: Answer) -> dict[str, Any]:
    """Encode token counts. As at Google, prompts include cached tokens, completions thoughts (known problems H5, H6)."""
    prompt = usage.input_tokens or answer.input_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.thought_tokens},
    }


def encode_call(call: ToolCall, echo: Echo) -> dict[str, Any]:
    """Encode a call of a function or custom tool.

    The signature is in `extra_content.google`, as at Google's own Chat Completions endpoint.
    """
    if call.name in echo.custom:
        form: dict[str, Any] = {"custom": {"name": call.name, "input": custom_tools.unwrap(call.args)}}
    else:
        form = {"function": encode_function(call)}
    wire = {"id": call.id, "type": next(iter(form)), **form}
    if call.signature is not None:
        wire["extra_content"] = encode_signature(call.signature, call.id)
    return wire


def encode_function(call: ToolCall) -> dict[str, str]:
    return {"name": call.name, "arguments": call.args.decode()}


def encode_signature(signature: Signature, target: str) -> dict[str, Any]:
    return {"google": {"thought_signature": seal(signature, target)}}


def encode_annotations(sources: Iterable[Source], start: int, end: int) -> list[dict[str, Any]]:
    """Encode the sources of the text between two character offsets."""
    place = {"start_index": start, "end_index": end}
    return [
        {"type": "url_citation", "url_citation": {**place, "url": source.url, "title": source.title}}
        for source in sources
    ]


def encode_uncited(results: Iterable[ServerResult], end: int) -> list[dict[str, Any]]:
    """Encode all sources of an answer without citations, at the `end` of its text.

    Return none if there is no text, since Chat has no other field for them.
    """
    found = {source.url: source for result in results for source in result.sources if not source.error}
    return encode_annotations(found.values(), end, end) if end else []


def _annotations(texts: Iterable[Text]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    before = 0
    for text in texts:
        for citation in text.citations:
            found += encode_annotations(citation.sources, before + citation.start, before + citation.end)
        before += len(text.text)
    return found


def _message(response: Response, answer: Answer, echo: Echo) -> dict[str, Any]:
    texts = [part for part in response.parts if isinstance(part, Text)]
    text = "".join(part.text for part in texts)
    thought = "".join(part.text for part in response.parts if isinstance(part, Thought))
    calls = [part for part in response.parts if isinstance(part, ToolCall)]
    refusal = encode_refusal(response.finished)
    empty = None if calls or refusal else ""
    message: dict[str, Any] = {"role": "assistant", "content": text or empty, "refusal": refusal}
    results = (part for part in response.parts if isinstance(part, ServerResult))
    annotations = _annotations(texts) or encode_uncited(results, len(text))
    if annotations:
        message["annotations"] = annotations
    if thought and answer.with_thinking:
        message["reasoning_content"] = thought
    signed = _signature(response, answer)
    if calls and echo.legacy:
        message["function_call"] = encode_function(calls[0])
        if calls[0].signature is not None:
            signed = encode_signature(calls[0].signature, legacy_id(calls[0].name))
    elif calls:
        message["tool_calls"] = [encode_call(call, echo) for call in calls]
    if signed is not None:
        message["extra_content"] = signed
    return message


def _signature(response: Response, answer: Answer) -> dict[str, Any] | None:
    """Return the last signature on text or on a visible thought; a message has a field for only one."""
    for part in reversed(response.parts):
        if isinstance(part, Text) and part.signature is not None:
            return encode_signature(part.signature, ON_TEXT if part.text else AFTER_TEXT)
        if isinstance(part, Thought) and part.signature is not None and answer.with_thinking:
            return encode_signature(part.signature, ON_THOUGHT)
    return None
