"""Samples of the Responses API."""

from __future__ import annotations

import msgspec

from dragoman.dialects import CLIENTS
from dragoman.dialects.openai_responses import items, tools, wire
from tests.house.dialects.anthropic import PNG, SCHEMA
from tests.house.dialects.field_table import MODEL, Json, Page, Sample

HELLO: Json = {"role": "user", "content": "Hello"}
TOOL: Json = {"type": "function", "name": "weather", "description": "of a city", "parameters": SCHEMA}
CALL: Json = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Oslo"}'}
CUSTOM: Json = {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "words"}
SHELL: Json = {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}}
LOCAL: Json = {
    "type": "local_shell_call",
    "call_id": "c1",
    "action": {"type": "exec", "command": ["ls"], "env": {}},
}
PATCH: Json = {"type": "apply_patch_call", "call_id": "c1", "operation": {"type": "delete_file", "path": "a"}}
SEARCH: Json = {
    "type": "tool_search_call",
    "call_id": "c1",
    "execution": "client",
    "arguments": {"query": "weather"},
}


def said(*more: Json) -> Json:
    return {"input": [HELLO, *more]}


def user(part: Json) -> Json:
    return {"input": [{"role": "user", "content": [part]}]}


def output(kind: str, call: Json, content: object = "rain") -> Json:
    return said(call, {"type": kind, "call_id": "c1", "output": content})


def item(kind: str, **fields: object) -> Sample:
    return Sample(f"input[]: {kind}", said({"type": kind, **fields}))


def choosing(name: str, choice: object) -> Sample:
    return Sample(f"tool_choice: {name}", {"tool_choice": choice}, {"tools": [TOOL]})


SAMPLES = [
    Sample("model", {"model": "gpt-5.5"}),
    Sample("input", {"input": "Good day"}),
    Sample("instructions", {"instructions": "Be brief."}),
    Sample("max_output_tokens", {"max_output_tokens": 500}),
    Sample("max_tool_calls", {"max_tool_calls": 3}),
    Sample("temperature", {"temperature": 0.5}),
    Sample("top_p", {"top_p": 0.5}),
    Sample("top_logprobs", {"top_logprobs": 3}),
    Sample("reasoning.effort", {"reasoning": {"effort": "low"}}),
    Sample("reasoning.summary", {"reasoning": {"summary": "auto"}}),
    Sample("text.format", {"text": {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA}}}),
    Sample("text.verbosity", {"text": {"verbosity": "low"}}),
    Sample("metadata", {"metadata": {"a": "b"}}),
    Sample("prompt", {"prompt": {"id": "pmpt_1"}}),
    Sample("context_management", {"context_management": [{"type": "compaction", "compact_threshold": 1000}]}),
    Sample("moderation", {"moderation": {"model": "x"}}),
    Sample("include", {"include": ["reasoning.encrypted_content"]}),
    Sample("conversation", {"conversation": "demo"}),
    Sample("previous_response_id", {"previous_response_id": "resp_1"}),
    Sample("truncation", {"truncation": "auto"}),
    Sample("prompt_cache_key", {"prompt_cache_key": "session-1"}),
    Sample("safety_identifier", {"safety_identifier": "u1"}),
    Sample("user", {"user": "u1"}),
    Sample("store", {"store": False}),
    Sample("background", {"background": True}),
    Sample("stream", {"stream": True}),
    Sample("tools: function", {"tools": [TOOL]}),
    Sample(
        "tools: function in Chat's form",
        {"tools": [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]},
    ),
    Sample("tools: custom", {"tools": [{"type": "custom", "name": "patch", "description": "a patch"}]}),
    Sample("tools: namespace", {"tools": [{"type": "namespace", "name": "city", "tools": [TOOL]}]}),
    Sample("tools: web_search", {"tools": [{"type": "web_search"}]}),
    Sample(
        "tools: code_interpreter", {"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]}
    ),
    *(Sample(f"tools: {kind}", {"tools": [{"type": kind}]}) for kind in tools.BUILT_IN),
    Sample("tools: file_search", {"tools": [{"type": "file_search", "vector_store_ids": ["v"]}]}),
    Sample("tools: image_generation", {"tools": [{"type": "image_generation"}]}),
    Sample("tools: computer_use_preview", {"tools": [{"type": "computer_use_preview"}]}),
    choosing("auto", "auto"),
    choosing("required", "required"),
    choosing("none", "none"),
    choosing("a function", {"type": "function", "name": "weather"}),
    Sample("parallel_tool_calls", {"parallel_tool_calls": False}, {"tools": [TOOL]}),
    item("message", role="assistant", content=[{"type": "output_text", "text": "Hi"}]),
    Sample(
        "input[].content[]: input_image",
        user({"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}),
    ),
    Sample(
        "input[].content[]: input_file",
        user(
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}
        ),
    ),
    Sample("input[].content[]: an unknown type", user({"type": "hologram"})),
    item("agent_message", author="a", recipient="b", content=[{"type": "input_text", "text": "Hi"}]),
    item(
        "reasoning",
        id="rs_1",
        summary=[{"type": "summary_text", "text": "Hm."}],
        encrypted_content="of-another",
    ),
    Sample("input[]: function_call", output("function_call_output", CALL)),
    Sample(
        "input[]: function_call_output",
        output("function_call_output", CALL, [{"type": "input_text", "text": "rain"}]),
    ),
    Sample(
        "input[]: function_call_output without its call",
        said({"type": "function_call_output", "call_id": "c9", "output": "rain"}),
    ),
    Sample("input[]: custom_tool_call", output("custom_tool_call_output", CUSTOM)),
    Sample("input[]: custom_tool_call_output", output("custom_tool_call_output", CUSTOM)),
    Sample("input[]: local_shell_call", output("local_shell_call_output", LOCAL)),
    Sample("input[]: local_shell_call_output", output("local_shell_call_output", LOCAL)),
    Sample(
        "input[]: shell_call",
        output(
            "shell_call_output",
            SHELL,
            [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        ),
    ),
    Sample(
        "input[]: shell_call_output",
        output(
            "shell_call_output",
            SHELL,
            [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        ),
    ),
    Sample("input[]: apply_patch_call", output("apply_patch_call_output", PATCH)),
    Sample("input[]: apply_patch_call_output", output("apply_patch_call_output", PATCH)),
    Sample(
        "input[]: tool_search_call",
        said(SEARCH, {"type": "tool_search_output", "call_id": "c1", "execution": "client", "tools": [TOOL]}),
    ),
    Sample(
        "input[]: tool_search_output",
        said(SEARCH, {"type": "tool_search_output", "call_id": "c1", "execution": "client", "tools": [TOOL]}),
    ),
    item("additional_tools", role="developer", tools=[TOOL]),
    item("computer_call", call_id="c1", action={"type": "screenshot"}),
    item(
        "computer_call_output",
        call_id="c1",
        output={"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PNG}"},
    ),
    item("web_search_call", id="ws_1", status="completed", action={"type": "search", "query": "news"}),
    item("file_search_call", id="fs_1", queries=["news"], results=[]),
    item("image_generation_call", id="ig_1", result="aGk="),
    item("code_interpreter_call", id="ci_1", code="1+1", outputs=[{"type": "logs", "logs": "2"}]),
    item("mcp_call", id="mcp_1", server_label="s", name="n", arguments="{}", output="x"),
    item("mcp_approval_request", id="mcpr_1", server_label="s", name="n", arguments="{}"),
    item("mcp_approval_response", approval_request_id="mcpr_1", approve=True),
    item("program", id="p1", code="x"),
    item("program_output", id="p1", result="x"),
    item("mcp_list_tools", id="m1", server_label="s", tools=[]),
    item("configuration_update", tools=[TOOL]),
    item("compaction", encrypted_content="of-another"),
    item("compaction_summary", encrypted_content="of-another"),
    item("context_compaction", encrypted_content="of-another"),
    item("compaction_trigger"),
    item("item_reference", id="msg_1"),
    item("hologram"),
    Sample("client_metadata", {"client_metadata": {"a": "b"}}),
    Sample("service_tier", {"service_tier": "flex"}),
]

PAGE = Page(
    file="openai-responses.md",
    title="OpenAI Responses",
    intro="`POST /v1/responses`, for Codex and OpenAI's SDKs. The gateway resolves `conversation` and "
    "`previous_response_id` before the translation: "
    "[OpenAI](../openai.md). The code is `src/dragoman/dialects/openai_responses`.",
    client=lambda: CLIENTS["openai_responses"],
    base={"model": MODEL, "input": [HELLO]},
    samples=SAMPLES,
    required=[
        *(field.encode_name for field in msgspec.structs.fields(wire.Body)),
        *(f"input[]: {kind}" for kind in items._READERS),
        *(f"tools: {kind}" for kind in tools.BUILT_IN),
    ],
)
