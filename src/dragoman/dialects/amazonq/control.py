"""Answer the operations that do not involve the model: profiles, usage limits, settings, remote MCP tools.

The answers are constant. Telemetry is accepted and discarded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.errors import DragomanError

#: Operations that the model answers; the last one appears only in URLs.
CHATS = ("GenerateAssistantResponse", "SendMessage", "SendMessageStreaming")
MODELS = "ListAvailableModels"

_PROFILE = {
    "arn": "arn:aws:codewhisperer:us-east-1:000000000000:profile/DRAGOMAN",
    "profileName": "dragoman",
}
_MCP_VERSION = "2025-06-18"
_NO_SUCH_METHOD = -32601

#: Operation -> its constant answer.
_ANSWERS: dict[str, dict[str, Any]] = {
    "GetProfile": {"profile": _PROFILE},
    "ListAvailableProfiles": {"profiles": [_PROFILE]},
    "SendTelemetryEvent": {},
    "GetUsageLimits": {"limits": [], "usageBreakdownList": [], "daysUntilReset": 0},
    "CreateSubscriptionToken": {"status": "ACTIVE"},
    "ListAvailableCustomizations": {"customizations": []},
    "ListFeatureEvaluations": {"featureEvaluations": []},
    "GetFeatureConfiguration": {},
}
_MCP = "InvokeMCP"

#: All operations that do not involve the model.
CONTROL = (MODELS, _MCP, *_ANSWERS)
_BY_LOWER = {name.lower(): name for name in (*CHATS, *CONTROL)}


class _Call(msgspec.Struct):
    """A JSON-RPC request."""

    method: str = ""
    id: msgspec.Raw = msgspec.Raw(b"null")


_decode_call = msgspec.json.Decoder(_Call).decode


def operation_of(word: str) -> str:
    """Return the canonical name of an operation; raise `DragomanError` (not_found) if it is unknown.

    `word` is the value of `x-amz-target`, or a segment of the URL in any case.
    """
    name = word.rpartition(".")[2]
    known = _BY_LOWER.get(name.lower())
    if known is None:
        raise DragomanError(f"there is no operation {name[:200]!r} here", kind="not_found")
    return known


def answer(operation: str, body: bytes) -> bytes:
    """Return the answer to an operation in `CONTROL` except `MODELS`, which the server answers."""
    if operation == _MCP:
        return msgspec.json.encode(_mcp(jsontext.decode(_decode_call, body)))
    return msgspec.json.encode(_ANSWERS[operation])


def _mcp(call: _Call) -> dict[str, Any]:
    head: dict[str, Any] = {"jsonrpc": "2.0", "id": call.id}
    result = _MCP_RESULTS.get(call.method)
    if result is None:
        why = f"there are no remote tools here, and no {call.method[:200]!r}"
        return {**head, "error": {"code": _NO_SUCH_METHOD, "message": why}}
    return {**head, "result": result()}


#: Kiro asks for the MCP tools that Amazon runs for it; the list is empty.
_MCP_RESULTS: dict[str, Callable[[], dict[str, Any]]] = {
    "initialize": lambda: {
        "protocolVersion": _MCP_VERSION,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "dragoman", "version": "1"},
    },
    "notifications/initialized": dict,
    "tools/list": lambda: {"tools": []},
}
