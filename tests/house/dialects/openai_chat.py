"""Samples of Chat Completions."""

from __future__ import annotations

import msgspec

from dragoman.dialects import CLIENTS
from dragoman.dialects.openai_chat import messages, wire
from tests.house.dialects.anthropic import PNG, SCHEMA
from tests.house.dialects.field_table import MODEL, Json, Page, Sample

HELLO: Json = {"role": "user", "content": "Hello"}
FUNCTION: Json = {"name": "weather", "description": "of a city", "parameters": SCHEMA}
TOOL: Json = {"type": "function", "function": FUNCTION}
CALL: Json = {
    "id": "c1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Oslo"}'},
}


def user(part: Json) -> Json:
    return {"messages": [{"role": "user", "content": [part]}]}


def after(*more: Json) -> Json:
    return {"messages": [HELLO, *more, HELLO]}


def choosing(name: str, choice: object) -> Sample:
    return Sample(f"tool_choice: {name}", {"tool_choice": choice}, {"tools": [TOOL]})


SAMPLES = [
    Sample("model", {"model": "gpt-5"}),
    Sample("max_tokens", {"max_tokens": 500}),
    Sample("max_completion_tokens", {"max_completion_tokens": 500}),
    Sample("temperature", {"temperature": 0.5}),
    Sample("top_p", {"top_p": 0.5}),
    Sample("top_k", {"top_k": 5}),
    Sample("seed", {"seed": 7}),
    Sample("presence_penalty", {"presence_penalty": 0.5}),
    Sample("frequency_penalty", {"frequency_penalty": 0.5}),
    Sample("stop", {"stop": "END"}),
    Sample("n", {"n": 2}),
    Sample("stream", {"stream": True}),
    Sample("stream_options", {"stream_options": {"include_usage": True}}, {"stream": True}),
    Sample("reasoning_effort", {"reasoning_effort": "low"}),
    Sample("response_format: json_object", {"response_format": {"type": "json_object"}}),
    Sample(
        "response_format: json_schema",
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}},
    ),
    Sample("modalities", {"modalities": ["text", "audio"]}),
    Sample("web_search_options", {"web_search_options": {}}),
    Sample("prompt_cache_key", {"prompt_cache_key": "session-1"}),
    Sample("tools: function", {"tools": [TOOL]}),
    Sample(
        "tools: custom",
        {"tools": [{"type": "custom", "custom": {"name": "patch", "description": "a patch"}}]},
    ),
    Sample("functions", {"functions": [FUNCTION]}),
    Sample("function_call", {"function_call": {"name": "weather"}}, {"functions": [FUNCTION]}),
    choosing("auto", "auto"),
    choosing("required", "required"),
    choosing("none", "none"),
    choosing("validated", "validated"),
    choosing("a function", {"type": "function", "function": {"name": "weather"}}),
    Sample("parallel_tool_calls", {"parallel_tool_calls": False}, {"tools": [TOOL]}),
    Sample("messages[].role: system", {"messages": [{"role": "system", "content": "Be brief."}, HELLO]}),
    Sample(
        "messages[].role: developer", {"messages": [{"role": "developer", "content": "Be brief."}, HELLO]}
    ),
    Sample("messages[].role: user", {"messages": [{"role": "user", "content": "Good day"}]}),
    Sample("messages[].role: assistant", after({"role": "assistant", "content": "Hi"})),
    Sample(
        "messages[].tool_calls",
        after(
            {"role": "assistant", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        ),
    ),
    Sample(
        "messages[].role: tool",
        after(
            {"role": "assistant", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        ),
    ),
    Sample(
        "messages[].role: tool without its call",
        after({"role": "tool", "tool_call_id": "c9", "content": "rain"}),
    ),
    Sample(
        "messages[].role: function",
        after(
            {"role": "assistant", "function_call": {"name": "weather", "arguments": "{}"}},
            {"role": "function", "name": "weather", "content": "rain"},
        ),
    ),
    Sample(
        "messages[].reasoning_content",
        after({"role": "assistant", "content": "Hi", "reasoning_content": "Hm."}),
    ),
    Sample("messages[].content[]: text", user({"type": "text", "text": "Good day"})),
    Sample(
        "messages[].content[]: refusal",
        after({"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}),
    ),
    Sample(
        "messages[].content[]: image_url",
        user({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}),
    ),
    Sample(
        "messages[].content[]: image_url of the web",
        user({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}),
    ),
    Sample(
        "messages[].content[]: input_audio",
        user({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}),
    ),
    Sample(
        "messages[].content[]: file",
        user(
            {
                "type": "file",
                "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
            }
        ),
    ),
    Sample("messages[].content[]: an unknown type", user({"type": "hologram"})),
    Sample("audio", {"audio": {"voice": "alloy", "format": "wav"}}),
    Sample("enable_thinking", {"enable_thinking": True}),
    Sample("extra_body", {"extra_body": {"x": 1}}),
    Sample("logit_bias", {"logit_bias": {"1": 2}}),
    Sample("logprobs", {"logprobs": True}),
    Sample("metadata", {"metadata": {"a": "b"}}),
    Sample("min_p", {"min_p": 0.1}),
    Sample("moderation", {"moderation": {"model": "x"}}),
    Sample("prediction", {"prediction": {"type": "content", "content": "x"}}),
    Sample("prompt_cache_options", {"prompt_cache_options": {"ttl": "1h"}}),
    Sample("prompt_cache_retention", {"prompt_cache_retention": "24h"}),
    Sample("reasoning", {"reasoning": {"effort": "low"}}),
    Sample("repetition_penalty", {"repetition_penalty": 1.1}),
    Sample("safety_identifier", {"safety_identifier": "u1"}),
    Sample("service_tier", {"service_tier": "flex"}),
    Sample("store", {"store": True}),
    Sample("thinking", {"thinking": {"type": "enabled"}}),
    Sample("top_logprobs", {"top_logprobs": 3}),
    Sample("user", {"user": "u1"}),
    Sample("verbosity", {"verbosity": "low"}),
    Sample("a field nobody knows", {"hologram": True}),
]

PAGE = Page(
    file="openai-chat.md",
    title="OpenAI Chat Completions",
    intro="`POST /v1/chat/completions`. More about its tools, sessions and answers: [OpenAI](../openai.md). The code is "
    "`src/dragoman/dialects/openai_chat`.",
    client=lambda: CLIENTS["openai_chat"],
    base={"model": MODEL, "messages": [HELLO]},
    samples=SAMPLES,
    required=[
        *(field.encode_name for field in msgspec.structs.fields(wire.Body)),
        *(f"messages[].role: {role}" for role in messages._READERS),
        *(f"messages[].content[]: {kind}" for kind in messages._PART_READERS),
    ],
)
