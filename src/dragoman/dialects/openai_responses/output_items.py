"""Build output items: messages, reasoning, compactions and calls of client tools.

The `encode` functions write tools, tool choice, calls and results for a program that itself calls a Responses API.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dragoman.dialects.openai_responses.compaction import seal_summary
from dragoman.dialects.openai_responses.tools import ClientTool
from dragoman.ir import Media, Text, Tool, ToolCall, ToolChoice, ToolResult, seal

Json = dict[str, Any]

_PREFIX: dict[str, str] = {
    "message": "msg",
    "reasoning": "rs",
    "compaction": "cmp",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "tool_search_call": "tsc",
    "local_shell_call": "lsh",
    "shell_call": "sh",
    "apply_patch_call": "apc",
}


def item_id(answer_id: str, kind: str, index: int) -> str:
    """Return the id of an output item; streamed and complete answers give an item the same id.

    It is globally unique, because the id of the answer is.
    """
    return f"{_PREFIX[kind]}_{answer_id.rpartition('_')[2]}_{index}"


def message_item(identity: str, content: list[Json], status: str) -> Json:
    return {"type": "message", "id": identity, "status": status, "role": "assistant", "content": content}


def text_part(text: str, annotations: list[Json] | None = None) -> Json:
    return {"type": "output_text", "text": text, "annotations": annotations or [], "logprobs": []}


def refusal_part(text: str) -> Json:
    return {"type": "refusal", "refusal": text}


def reasoning_item(identity: str, summary: str, encrypted: str | None, status: str) -> Json:
    return {
        "type": "reasoning",
        "id": identity,
        "summary": [summary_part(summary)] if summary else [],
        "encrypted_content": encrypted,
        "status": status,
    }


def summary_part(text: str) -> Json:
    return {"type": "summary_text", "text": text}


def compaction_item(identity: str, summary: str) -> Json:
    return {"type": "compaction", "id": identity, "encrypted_content": seal_summary(summary)}


def call_item(identity: str, face: ClientTool, call_id: str, args: bytes) -> Json:
    """Build the item of a call in the form of the client's tool."""
    # A client may refer to a local shell call by the item's id or by the call id, so they are the same.
    return {
        "type": face.item,
        "id": call_id if face.item == "local_shell_call" else identity,
        "call_id": call_id,
        "status": "completed",
        **_CALLS[face.item](face, args),
    }


def in_progress(call: Json) -> Json:
    """Return a call item as it is when the stream adds it: in progress, with empty arguments."""
    untold = {key: "" for key in ("arguments", "input") if isinstance(call.get(key), str)}
    return {**call, **untold, "status": "in_progress"}


def free_text(args: bytes) -> str:
    """Return the input text of a custom tool from the arguments of the function that replaces it.

    This is `input`, or the only argument if it is a text with another name; otherwise all arguments as JSON.
    """
    try:
        value = msgspec.json.decode(args)
    except (msgspec.DecodeError, RecursionError):
        return args.decode("utf-8", "replace")
    if isinstance(value, dict):
        texts = [value["input"]] if "input" in value else list(value.values())
        if len(texts) == 1 and isinstance(texts[0], str):
            return texts[0]
    return args.decode()


def _object(args: bytes) -> Json:
    try:
        value = msgspec.json.decode(args)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _named(face: ClientTool) -> Json:
    return {"name": face.name, **({"namespace": face.namespace} if face.namespace else {})}


_CALLS: dict[str, Callable[[ClientTool, bytes], Json]] = {
    "function_call": lambda face, args: {**_named(face), "arguments": args.decode()},
    "custom_tool_call": lambda face, args: {**_named(face), "input": free_text(args)},
    "tool_search_call": lambda _, args: {"execution": "client", "arguments": _object(args)},
    "local_shell_call": lambda _, args: {"action": {"env": {}, **_object(args), "type": "exec"}},
    "shell_call": lambda _, args: {
        "action": {"timeout_ms": None, "max_output_length": None, **_object(args)},
        "environment": None,
    },
    "apply_patch_call": lambda _, args: {"operation": _object(args)},
}


_MODES = {"auto": "auto", "validated": "auto", "any": "required", "none": "none"}


def encode_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Encode declarations; not as `strict`, because OpenAI accepts only a subset of JSON Schema there."""
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description or None,
            "parameters": msgspec.Raw(tool.schema),
            "strict": False,
        }
        for tool in tools
    ]


def encode_tool_choice(choice: ToolChoice) -> str | dict[str, Any]:
    word = _MODES[choice.mode]
    if not choice.names or choice.mode == "none":
        return word
    named = [{"type": "function", "name": name} for name in choice.names]
    if choice.mode == "any" and len(named) == 1:
        return named[0]
    return {"type": "allowed_tools", "mode": word, "tools": named}


def encode_calls(calls: Sequence[ToolCall], text: str, *, signatures: bool) -> list[dict[str, Any]]:
    """Encode calls as input items.

    Set `signatures` only if the API is this gateway: OpenAI rejects sealed signatures.
    """
    items: list[dict[str, Any]] = []
    if text:
        items.append({"role": "assistant", "content": text})
    for call in calls:
        if signatures and call.signature is not None:
            sealed = seal(call.signature, call.id)
            items.append(_without_id(reasoning_item("", "", sealed, "completed")))
        items.append(_without_id(call_item("", ClientTool(name=call.name), call.id, call.args)))
    return items


def encode_result(result: ToolResult) -> dict[str, Any]:
    """Encode a result. The API has no error flag, so the text of an error must say that it is one."""
    output: str | list[dict[str, Any]] = [_content(part) for part in result.content]
    if not any(isinstance(part, Media) for part in result.content):
        output = "\n".join(part.text for part in result.content if isinstance(part, Text))
    return {"type": "function_call_output", "call_id": result.call_id, "output": output}


def _without_id(item: dict[str, Any]) -> dict[str, Any]:
    """Return the item without its id, which only items that the service created have."""
    return {key: value for key, value in item.items() if key != "id"}


def _content(part: Text | Media) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    url = f"data:{part.mime};base64,{part.data}" if part.data else part.uri
    if part.mime.startswith("image/"):
        return {"type": "input_image", "image_url": url}
    return {"type": "input_file", "file_data" if part.data else "file_url": url}
