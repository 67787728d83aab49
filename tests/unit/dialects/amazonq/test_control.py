"""The calls besides answers."""

from __future__ import annotations

import json

import pytest

from dragoman.dialects.amazonq import control
from dragoman.errors import DragomanError, InvalidRequest


@pytest.mark.parametrize(
    ("word", "operation"),
    [
        ("AmazonCodeWhispererStreamingService.GenerateAssistantResponse", "GenerateAssistantResponse"),
        ("AmazonQDeveloperStreamingService.SendMessage", "SendMessage"),
        ("KiroRuntimeService.InvokeMCP", "InvokeMCP"),
        ("com.amazon.aws.codewhisperer.AmazonCodeWhispererService.GetProfile", "GetProfile"),
        ("generateassistantresponse", "GenerateAssistantResponse"),
        ("getUsageLimits", "GetUsageLimits"),
        ("LISTAVAILABLEMODELS", "ListAvailableModels"),
    ],
)
def test_an_operation_is_what_stands_behind_the_last_dot(word: str, operation: str) -> None:
    assert control.operation_of(word) == operation


@pytest.mark.parametrize("word", ["X.GetMoney", "", ".", "GetProfile.", "x" * 10_000])
def test_an_unknown_operation_is_the_callers_mistake(word: str) -> None:
    with pytest.raises(DragomanError) as caught:
        control.operation_of(word)
    assert caught.value.kind == "not_found"
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("SendTelemetryEvent", {}),
        ("GetUsageLimits", {"limits": [], "usageBreakdownList": [], "daysUntilReset": 0}),
        ("CreateSubscriptionToken", {"status": "ACTIVE"}),
        ("ListAvailableCustomizations", {"customizations": []}),
        ("ListFeatureEvaluations", {"featureEvaluations": []}),
        ("GetFeatureConfiguration", {}),
    ],
)
def test_the_answers_that_content_the_clients(operation: str, expected: object) -> None:
    assert json.loads(control.answer(operation, b"")) == expected


def test_everybody_has_one_and_the_same_profile() -> None:
    profile = json.loads(control.answer("GetProfile", b"{}"))["profile"]
    assert profile["arn"].startswith("arn:aws:codewhisperer:")
    assert json.loads(control.answer("ListAvailableProfiles", b"{}")) == {"profiles": [profile]}


@pytest.mark.parametrize(
    ("method", "result"),
    [("tools/list", {"tools": []}), ("notifications/initialized", {})],
)
@pytest.mark.parametrize("identity", [7, "seven", None])
def test_kiro_finds_no_remote_tools(method: str, result: object, identity: object) -> None:
    asked = json.dumps({"jsonrpc": "2.0", "id": identity, "method": method}).encode()
    told = json.loads(control.answer("InvokeMCP", asked))
    assert told == {"jsonrpc": "2.0", "id": identity, "result": result}


def test_kiro_may_greet_the_tools_it_will_not_find() -> None:
    told = json.loads(control.answer("InvokeMCP", b'{"id":1,"method":"initialize"}'))
    assert told["result"].keys() == {"protocolVersion", "capabilities", "serverInfo"}


@pytest.mark.parametrize("asked", [b'{"id":1,"method":"tools/call"}', b'{"id":1}'])
def test_a_remote_tool_cannot_be_called(asked: bytes) -> None:
    told = json.loads(control.answer("InvokeMCP", asked))
    assert (told["id"], told["error"]["code"]) == (1, -32601)


def test_a_call_that_is_no_json_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        control.answer("InvokeMCP", b"{")
