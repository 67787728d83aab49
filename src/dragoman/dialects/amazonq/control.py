"""What Amazon's clients ask besides answers: who they are, what is left, which tools there are; telemetry ends here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.errors import DragomanError

#: Operations that are answered by the model; the last is the name in an address.
CHATS = ("GenerateAssistantResponse", "SendMessage", "SendMessageStreaming")
MODELS = "ListAvailableModels"

_PROFILE = {
    "arn": "arn:aws:codewhisperer:us-east-1:000000000000:profile/DRAGOMAN",
    "profileName": "dragoman",
}
_MCP_VERSION = "2025-06-18"
_NO_SUCH_METHOD = -32601

#: Operation -> the same answer for everybody.
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

#: All that is not answered by the model.
CONTROL = (MODELS, _MCP, *_ANSWERS)
_BY_LOWER = {name.lower(): name for name in (*CHATS, *CONTROL)}


class _Call(msgspec.Struct):
    """A call of JSON-RPC."""

    method: str = ""
    id: msgspec.Raw = msgspec.Raw(b"null")


_decode_call = msgspec.json.Decoder(_Call).decode


def operation_of(word: str) -> str:
    """The operation's own spelling: behind the last dot of a target, in whatever case an address has it."""
    name = word.rpartition(".")[2]
    known = _BY_LOWER.get(name.lower())
    if known is None:
        raise DragomanError(f"there is no operation {name[:200]!r} here", kind="not_found")
    return known


def answer(operation: str, body: bytes) -> bytes:
    """To one of `CONTROL`, except the models, which only the server knows."""
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


#: Kiro lists the tools that Amazon runs for it: there are none.
_MCP_RESULTS: dict[str, Callable[[], dict[str, Any]]] = {
    "initialize": lambda: {
        "protocolVersion": _MCP_VERSION,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "dragoman", "version": "1"},
    },
    "notifications/initialized": dict,
    "tools/list": lambda: {"tools": []},
}
