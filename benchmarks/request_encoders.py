"""Encode a request of an Anthropic client in the format of each dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

#: `floor` asks the fake Gemini itself, or whoever passes on unread bytes: an Anthropic body on a Gemini path.
Style = Literal["floor", "anthropic", "openai_chat", "openai_responses", "gemini", "bedrock", "amazonq"]
Json = dict[str, Any]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_GEMINI = "/v1beta/models/gemini-flash-latest"
_BEDROCK = "/model/anthropic.claude-sonnet-4-5"
_AMAZON_TARGET = "x-amz-target: AmazonCodeWhispererStreamingService.GenerateAssistantResponse\r\n"

#: Where a request goes: whole, in a stream.
PATHS: dict[Style, tuple[str, str]] = {
    "floor": (f"{_GEMINI}:generateContent", f"{_GEMINI}:streamGenerateContent?alt=sse"),
    "anthropic": ("/v1/messages?beta=true", "/v1/messages?beta=true"),
    "openai_chat": ("/v1/chat/completions", "/v1/chat/completions"),
    "openai_responses": ("/v1/responses", "/v1/responses"),
    "gemini": (f"{_GEMINI}:generateContent", f"{_GEMINI}:streamGenerateContent?alt=sse"),
    "bedrock": (f"{_BEDROCK}/converse", f"{_BEDROCK}/converse-stream"),
    "amazonq": ("/", "/"),
}
_CLAUDE_CODE = (
    "user-agent: claude-cli/2.1.325 (external, sdk-cli)\r\n"
    "anthropic-version: 2023-06-01\r\n"
    "anthropic-beta: claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27\r\n"
    "x-app: cli\r\nx-stainless-lang: js\r\nx-stainless-runtime: node\r\nx-stainless-timeout: 600\r\n"
    "x-claude-code-session-id: 00000000-0000-4000-8000-000000000000\r\n"
)
HEADERS: dict[Style, str] = {
    "floor": _CLAUDE_CODE,
    "anthropic": _CLAUDE_CODE,
    "openai_chat": "user-agent: OpenAI/Python 3.49.0\r\n",
    "openai_responses": "user-agent: codex_cli_rs/0.166.0\r\n",
    "gemini": "user-agent: GeminiCLI/0.61.0\r\n",
    "bedrock": "user-agent: Boto3/1.44.0\r\n",
    "amazonq": f"user-agent: aws-sdk-rust app/AmazonQ-For-CLI\r\n{_AMAZON_TARGET}",
}


def encode_request(style: Style, body: bytes) -> bytes:
    """Convert an Anthropic `body`; it is unchanged for gateways that accept Anthropic's format."""
    write = _WRITERS.get(style)
    return body if write is None else _encode(write(_decode(body)))


def _chat(asked: Json) -> Json:
    messages: list[Json] = [{"role": "system", "content": _system(asked)}]
    for message in asked["messages"]:
        messages += _CHAT_ROLES[message["role"]](message["content"])
    tools = [{"type": "function", "function": _function(tool)} for tool in asked["tools"]]
    request = {"model": asked["model"], "messages": messages, "max_completion_tokens": asked["max_tokens"]}
    return request | {"stream": asked["stream"]} | ({"tools": tools} if tools else {})


def _chat_user(blocks: list[Json]) -> Iterator[Json]:
    for block in blocks:
        if block["type"] == "tool_result":
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": block["content"]}
        else:
            yield {"role": "user", "content": block["text"]}


def _chat_assistant(blocks: list[Json]) -> Iterator[Json]:
    calls = [
        {
            "id": block["id"],
            "type": "function",
            "function": {"name": block["name"], "arguments": _encode(block["input"]).decode()},
        }
        for block in blocks
        if block["type"] == "tool_use"
    ]
    yield {"role": "assistant", "content": _text(blocks)} | ({"tool_calls": calls} if calls else {})


def _function(tool: Json) -> Json:
    return {"name": tool["name"], "description": tool["description"], "parameters": tool["input_schema"]}


def _responses(asked: Json) -> Json:
    items: list[Json] = []
    for message in asked["messages"]:
        kind = "input_text" if message["role"] == "user" else "output_text"
        for block in message["content"]:
            items += _item(block, message["role"], kind)
    return {
        "model": asked["model"],
        "instructions": _system(asked),
        "input": items,
        "tools": [{"type": "function", "strict": False, **_function(tool)} for tool in asked["tools"]],
        "store": False,
        "stream": asked["stream"],
    }


def _item(block: Json, role: str, kind: str) -> Iterator[Json]:
    match block["type"]:
        case "text":
            yield {"type": "message", "role": role, "content": [{"type": kind, "text": block["text"]}]}
        case "tool_use":
            arguments = _encode(block["input"]).decode()
            call = {"call_id": block["id"], "name": block["name"], "arguments": arguments}
            yield {"type": "function_call", **call}
        case "tool_result":
            result = {"call_id": block["tool_use_id"], "output": block["content"]}
            yield {"type": "function_call_output", **result}


def _gemini(asked: Json) -> Json:
    names: dict[str, str] = {}
    contents = [
        {
            "role": "user" if message["role"] == "user" else "model",
            "parts": list(_parts(message["content"], names)),
        }
        for message in asked["messages"]
    ]
    declared = [
        {
            "name": tool["name"],
            "description": tool["description"],
            "parametersJsonSchema": tool["input_schema"],
        }
        for tool in asked["tools"]
    ]
    request: Json = {"contents": contents, "systemInstruction": {"parts": [{"text": _system(asked)}]}}
    return request | ({"tools": [{"functionDeclarations": declared}]} if declared else {})


def _parts(blocks: list[Json], names: dict[str, str]) -> Iterator[Json]:
    signature = ""
    for block in blocks:
        match block["type"]:
            case "thinking":
                signature = block["signature"]
            case "text":
                yield {"text": block["text"]}
            case "tool_use":
                names[block["id"]] = block["name"]
                call = {"id": block["id"], "name": block["name"], "args": block["input"]}
                yield {"functionCall": call} | ({"thoughtSignature": signature} if signature else {})
            case "tool_result":
                call_id = block["tool_use_id"]
                result = {"id": call_id, "name": names[call_id], "response": {"output": block["content"]}}
                yield {"functionResponse": result}


def _bedrock(asked: Json) -> Json:
    messages = [
        {"role": message["role"], "content": [_converse(block) for block in _spoken(message["content"])]}
        for message in asked["messages"]
    ]
    tools = [{"toolSpec": _specification(tool)} for tool in asked["tools"]]
    request = {"messages": messages, "system": [{"text": _system(asked)}]}
    return request | ({"toolConfig": {"tools": tools}} if tools else {})


def _converse(block: Json) -> Json:
    match block["type"]:
        case "tool_use":
            return {"toolUse": {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}}
        case "tool_result":
            return {
                "toolResult": {"toolUseId": block["tool_use_id"], "content": [{"text": block["content"]}]}
            }
    return {"text": block["text"]}


def _specification(tool: Json) -> Json:
    schema = {"json": tool["input_schema"]}
    return {"name": tool["name"], "description": tool["description"], "inputSchema": schema}


def _amazonq(asked: Json) -> Json:
    *history, current = map(_chat_message, asked["messages"])
    context = current["userInputMessage"].setdefault("userInputMessageContext", {})
    context["tools"] = [{"toolSpecification": _specification(tool)} for tool in asked["tools"]]
    state = {"chatTriggerType": "MANUAL", "currentMessage": current, "history": history}
    return {"conversationState": state, "systemPrompt": _system(asked)}


def _chat_message(message: Json) -> Json:
    text, blocks = _text(message["content"]), message["content"]
    if message["role"] == "assistant":
        calls = [
            {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}
            for block in blocks
            if block["type"] == "tool_use"
        ]
        said = {"content": text} | ({"toolUses": calls} if calls else {})
        return {"assistantResponseMessage": said}
    results = [
        {"toolUseId": block["tool_use_id"], "content": [{"text": block["content"]}], "status": "success"}
        for block in blocks
        if block["type"] == "tool_result"
    ]
    asked: Json = {"content": text, "origin": "CLI", "modelId": "claude-sonnet-4.5"}
    return {
        "userInputMessage": asked | ({"userInputMessageContext": {"toolResults": results}} if results else {})
    }


def _system(asked: Json) -> str:
    return "\n\n".join(block["text"] for block in asked["system"])


def _text(blocks: list[Json]) -> str:
    return "".join(block["text"] for block in blocks if block["type"] == "text")


def _spoken(blocks: list[Json]) -> list[Json]:
    """Leave out thoughts: the gateway keeps their signatures."""
    return [block for block in blocks if block["type"] != "thinking"]


_CHAT_ROLES: dict[str, Callable[[list[Json]], Iterator[Json]]] = {
    "user": _chat_user,
    "assistant": _chat_assistant,
}
_WRITERS: dict[Style, Callable[[Json], Json]] = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "gemini": _gemini,
    "bedrock": _bedrock,
    "amazonq": _amazonq,
}
