"""Build output items: messages, reasoning, compactions and calls of client tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.dialects.openai_responses.compaction import seal_summary
from dragoman.dialects.openai_responses.tools import ClientTool

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
