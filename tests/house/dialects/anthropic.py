"""Samples of the Messages API."""

from __future__ import annotations

import msgspec

from dragoman.dialects import CLIENTS
from dragoman.dialects.anthropic import blocks, tools, wire
from tests.house.dialects.field_table import MODEL, Json, Page, Sample

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
HELLO: Json = {"role": "user", "content": "Hello"}
SCHEMA: Json = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL: Json = {"name": "weather", "description": "of a city", "input_schema": SCHEMA}
CALL: Json = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}


def user(*content: Json) -> Json:
    return {"messages": [{"role": "user", "content": list(content)}]}


def answered(*content: Json) -> Json:
    """A call, and these blocks behind it."""
    called = {"role": "assistant", "content": [CALL]}
    return {"messages": [HELLO, called, {"role": "user", "content": list(content)}]}


def said(*content: Json) -> Json:
    return {"messages": [HELLO, {"role": "assistant", "content": list(content)}, HELLO]}


def result(**fields: object) -> Json:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain", **fields}


def offered(**tool: object) -> Json:
    return {"tools": [tool]}


SAMPLES = [
    Sample("model", {"model": "claude-sonnet-4-5"}),
    Sample("max_tokens", {"max_tokens": 500}),
    Sample("max_tokens: too many", {"max_tokens": 10_000_000}),
    Sample("system", {"system": "Be brief."}),
    Sample(
        "system: the billing header",
        {"system": [{"type": "text", "text": "x-anthropic-billing-header: cch=1"}]},
    ),
    Sample("temperature", {"temperature": 0.5}),
    Sample("top_p", {"top_p": 0.5}),
    Sample("top_k", {"top_k": 5}),
    Sample("stop_sequences", {"stop_sequences": ["END"]}),
    Sample("stop_sequences: more than five", {"stop_sequences": list("abcdef")}),
    Sample("stream", {"stream": True}),
    Sample("metadata", {"metadata": {"user_id": "somebody"}}),
    Sample("thinking: enabled", {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
    Sample("thinking: adaptive", {"thinking": {"type": "adaptive"}}),
    Sample("thinking: disabled", {"thinking": {"type": "disabled"}}),
    Sample("output_config.effort", {"output_config": {"effort": "low"}}),
    Sample("output_config.format", {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}),
    Sample("output_format", {"output_format": {"type": "json_schema", "schema": SCHEMA}}),
    Sample("tools", {"tools": [TOOL]}),
    Sample("tools[].name: not Google's kind", offered(**{**TOOL, "name": "mcp/weather of a city"})),
    Sample("tools[].defer_loading", offered(**TOOL, defer_loading=True)),
    Sample("tools[].cache_control", offered(**TOOL, cache_control={"type": "ephemeral"})),
    Sample("tools[].type: web_search", offered(type="web_search_20250305", name="web_search")),
    Sample("tools[].type: web_fetch", offered(type="web_fetch_20250910", name="web_fetch")),
    Sample("tools[].type: code_execution", offered(type="code_execution_20250825", name="code_execution")),
    Sample("tools[].type: bash", offered(type="bash_20250124", name="bash")),
    Sample(
        "tools[].type: text_editor", offered(type="text_editor_20250728", name="str_replace_based_edit_tool")
    ),
    Sample("tools[].type: memory", offered(type="memory_20250818", name="memory")),
    Sample("tools[].type: computer", offered(type="computer_20250124", name="computer")),
    Sample("tool_choice: auto", {"tool_choice": {"type": "auto"}}, {"tools": [TOOL]}),
    Sample("tool_choice: any", {"tool_choice": {"type": "any"}}, {"tools": [TOOL]}),
    Sample("tool_choice: tool", {"tool_choice": {"type": "tool", "name": "weather"}}, {"tools": [TOOL]}),
    Sample("tool_choice: none", {"tool_choice": {"type": "none"}}, {"tools": [TOOL]}),
    Sample(
        "tool_choice.disable_parallel_tool_use",
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        {"tools": [TOOL]},
    ),
    Sample("mcp_servers", {"mcp_servers": [{"type": "url", "name": "github", "url": "https://mcp.example"}]}),
    Sample("thread", {"thread": {"type": "create"}}),
    Sample("context_management", {"context_management": {"edits": []}}),
    Sample("container", {"container": "c1"}),
    Sample("service_tier", {"service_tier": "auto"}),
    Sample("messages[].role: system", {"messages": [HELLO, {"role": "system", "content": "Be brief."}]}),
    Sample(
        "messages[].content[].cache_control", user({"type": "text", "text": "Hello", "cache_control": {}})
    ),
    Sample("messages[].content[]: text", user({"type": "text", "text": "Good day"})),
    Sample(
        "messages[].content[]: image",
        user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}),
    ),
    Sample(
        "messages[].content[]: image by url",
        user({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}),
    ),
    Sample(
        "messages[].content[]: image by file",
        user({"type": "image", "source": {"type": "file", "file_id": "f1"}}),
    ),
    Sample(
        "messages[].content[]: document",
        user({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}}),
    ),
    Sample(
        "messages[].content[]: search_result",
        user(
            {
                "type": "search_result",
                "source": "https://example.com",
                "title": "T",
                "content": [{"type": "text", "text": "words"}],
            }
        ),
    ),
    Sample("messages[].content[]: tool_use", answered(result())),
    Sample("messages[].content[]: tool_result", answered(result(content=[{"type": "text", "text": "rain"}]))),
    Sample("messages[].content[]: tool_result with is_error", answered(result(is_error=True))),
    Sample(
        "messages[].content[]: tool_result with an image",
        answered(
            result(
                content=[
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
                ]
            )
        ),
    ),
    Sample("messages[].content[]: tool_result without its call", user(result())),
    Sample(
        "messages[].content[]: tool_reference",
        answered(result(content=[{"type": "tool_reference", "tool_name": "weather"}])),
    ),
    Sample(
        "messages[].content[]: thinking",
        said(
            {"type": "thinking", "thinking": "Hm.", "signature": "of-claude"}, {"type": "text", "text": "Hi"}
        ),
    ),
    Sample(
        "messages[].content[]: redacted_thinking",
        said({"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "Hi"}),
    ),
    Sample("messages[].content[]: compaction", said({"type": "compaction", "content": "So far: hello."})),
    Sample("messages[].content[]: container_upload", user({"type": "container_upload", "file_id": "f1"})),
    Sample("messages[].content[]: an unknown type", user({"type": "hologram"})),
]

_SPECIAL = {
    "tool_search_tool_result",
    "tool_addition",
    "tool_removal",
    "mcp_tool_listing",
    "fallback",
    "browser_state",
}

PAGE = Page(
    file="anthropic.md",
    title="Anthropic Messages",
    intro="`POST /v1/messages`, for Claude Code and Anthropic's SDKs; Bedrock's `InvokeModel` has the same body. "
    "[Tool search](../tool-search.md) describes its blocks. The code is `src/dragoman/dialects/anthropic`.",
    client=lambda: CLIENTS["anthropic"],
    base={"model": MODEL, "max_tokens": 32_000, "messages": [HELLO]},
    samples=SAMPLES,
    required=[
        *(field.encode_name for field in msgspec.structs.fields(wire.Body)),
        *(f"messages[].content[]: {kind}" for kind in blocks._READERS if kind not in _SPECIAL),
        *(f"tools[].type: {kind}" for kind in (*tools._SERVER_TOOLS, *tools._CLIENT_TOOLS)),
    ],
)
