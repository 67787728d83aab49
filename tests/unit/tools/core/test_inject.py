"""A session's tools in a request that never declared them: what goes in, what stays as it was."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dragoman.dialects.base import Target
from dragoman.tools.inject import (
    CallResult,
    CapturedCall,
    ToolContext,
    adapt_to_model,
    modify_request,
    open_calls,
)
from tests.unit.dialects.scripted_client import SENTINEL

Json = dict[str, Any]

WEATHER: Json = {"name": "weather", "parametersJsonSchema": {"type": "object", "properties": {}}}
CLOCK: Json = {"name": "clock"}
READ: Json = {"name": "read_file"}
ASKED: Json = {"role": "user", "parts": [{"text": "rain?"}]}
CALL = CapturedCall(id="call_1", name="weather", args={"city": "Oslo"}, sent_id="g1", signature="c2ln")


def body(**more: Any) -> Json:
    return {"contents": [ASKED], **more}


def declared(request: Json) -> list[str]:
    return [one["name"] for tool in request.get("tools", ()) for one in tool.get("functionDeclarations", ())]


NOTHING_TO_DO = [
    ToolContext(),
    ToolContext(last_calls=(CALL,)),
    ToolContext(pending_results=(CallResult(id="unknown", response={}),), last_calls=(CALL,)),
    ToolContext(pending_results=(CallResult(id="call_1", response={}),)),
]


@pytest.mark.parametrize("context", NOTHING_TO_DO)
def test_a_request_is_untouched_when_there_is_nothing_to_do(context: ToolContext) -> None:
    requests: list[Json] = [
        body(),
        body(tools=[{"functionDeclarations": [READ]}], toolConfig={}),
        {},
        {"contents": []},
    ]
    for request in requests:
        assert modify_request(request, context) is request


def test_tools_are_injected_where_the_client_has_none() -> None:
    request = body()
    before = copy.deepcopy(request)
    made = modify_request(request, ToolContext(tools=(WEATHER, CLOCK)))
    assert made == {**before, "tools": [{"functionDeclarations": [WEATHER, CLOCK]}]}
    assert request == before


def test_the_clients_tools_stay_beside_ours_in_one_tool() -> None:
    request = body(tools=[{"functionDeclarations": [READ]}, {"computerUse": {}}])
    made = modify_request(request, ToolContext(tools=(WEATHER,)))
    assert made["tools"] == [{"functionDeclarations": [READ, WEATHER]}, {"computerUse": {}}]
    assert "toolConfig" not in made


def test_the_clients_tools_are_stripped_with_what_was_said_about_them() -> None:
    calling = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read_file"]}}
    request = body(tools=[{"functionDeclarations": [READ]}, {"googleSearch": {}}], toolConfig=calling)
    made = modify_request(request, ToolContext(tools=(WEATHER,), keep_client_tools=False))
    assert made == body(tools=[{"functionDeclarations": [WEATHER]}])
    bare = modify_request(request, ToolContext(keep_client_tools=False))
    assert bare == body()


def test_of_two_functions_with_one_name_the_sessions_is_declared() -> None:
    theirs = {"name": "weather", "description": "theirs"}
    request = body(tools=[{"functionDeclarations": [theirs, READ]}, {"functionDeclarations": [theirs]}])
    made = modify_request(request, ToolContext(tools=(WEATHER,)))
    assert made["tools"] == [{"functionDeclarations": [READ, WEATHER]}]
    assert modify_request(made, ToolContext(tools=(WEATHER,))) is made


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({"mode": "AUTO"}, {"mode": "AUTO"}),
        (
            {"mode": "any", "allowedFunctionNames": ["weather", "gone"]},
            {"mode": "any", "allowedFunctionNames": ["weather"]},
        ),
        ({"mode": "ANY", "allowedFunctionNames": ["gone"]}, None),
    ],
)
def test_the_sessions_tool_config_is_set_and_allows_only_what_is_declared(
    config: Json, wanted: Json | None
) -> None:
    context = ToolContext(tools=(WEATHER,), tool_config={"functionCallingConfig": config})
    request = body(toolConfig={"retrievalConfig": {"languageCode": "no"}})
    made = modify_request(request, context)
    assert made["toolConfig"].get("functionCallingConfig") == wanted
    assert made["toolConfig"]["retrievalConfig"] == {"languageCode": "no"}


def test_a_tool_config_without_any_function_is_left_out() -> None:
    config = {"functionCallingConfig": {"mode": "AUTO"}}
    request = body()
    assert modify_request(request, ToolContext(tool_config=config)) is request


def test_a_client_that_must_get_a_call_gets_one_of_its_own() -> None:
    calling = {"functionCallingConfig": {"mode": "ANY"}}
    made = modify_request(
        body(tools=[{"functionDeclarations": [READ]}], toolConfig=calling), ToolContext(tools=(WEATHER,))
    )
    wanted = {"mode": "ANY", "allowedFunctionNames": ["read_file"]}
    assert made["toolConfig"] == {"functionCallingConfig": wanted}
    free = body(
        tools=[{"functionDeclarations": [READ]}], toolConfig={"functionCallingConfig": {"mode": "AUTO"}}
    )
    assert modify_request(free, ToolContext(tools=(WEATHER,)))["toolConfig"] == free["toolConfig"]


def test_a_forced_call_is_for_a_question_and_not_for_its_results() -> None:
    forced = ToolContext(tools=(WEATHER,), tool_config={"functionCallingConfig": {"mode": "ANY"}})
    assert modify_request(body(), forced)["toolConfig"] == {"functionCallingConfig": {"mode": "ANY"}}
    answered = ToolContext(
        tools=forced.tools,
        tool_config=forced.tool_config,
        last_calls=(CALL,),
        pending_results=(CallResult(id="call_1", response={"output": "rain"}),),
    )
    assert "toolConfig" not in modify_request(body(), answered)


def test_built_in_tools_stay_with_googles_flag_or_go() -> None:
    request = body(tools=[{"googleSearch": {}}, {"functionDeclarations": [READ], "codeExecution": {}}])
    kept = modify_request(request, ToolContext(tools=(WEATHER,)))
    assert kept["toolConfig"] == {"includeServerSideToolInvocations": True}
    assert kept["tools"][0] == {"googleSearch": {}}
    free = ToolContext(tools=(WEATHER,), tool_config={"functionCallingConfig": {"mode": "auto"}})
    assert modify_request(request, free)["toolConfig"] == {"includeServerSideToolInvocations": True}
    dropped = modify_request(request, ToolContext(tools=(WEATHER,), built_in="drop"))
    assert dropped == body(tools=[{"functionDeclarations": [READ, WEATHER]}])


def test_a_request_with_a_cache_has_its_tools_there() -> None:
    for spelling in ("cachedContent", "cached_content"):
        request = body(**{spelling: "cachedContents/x"})
        assert modify_request(request, ToolContext(tools=(WEATHER,))) is request


def test_either_spelling_is_read_and_kept() -> None:
    request = body(
        tools={"function_declarations": [READ, WEATHER]},
        tool_config={"function_calling_config": {"mode": "ANY", "allowed_function_names": ["read_file"]}},
    )
    made = modify_request(request, ToolContext(tools=(CLOCK,)))
    assert made["tools"] == [{"function_declarations": [READ, WEATHER, CLOCK]}]
    assert made["tool_config"] == request["tool_config"]
    assert "toolConfig" not in made


def test_a_follow_up_is_held_back_while_a_call_has_no_result() -> None:
    other = CapturedCall(id="call_2", name="clock")
    came = CallResult(id="call_1", response={})
    context = ToolContext(last_calls=(CALL, other), pending_results=(came,))
    assert open_calls(context) == (other,)
    assert open_calls(ToolContext(last_calls=(CALL,), pending_results=(came,))) == ()
    assert open_calls(ToolContext()) == ()


JSON_OUTPUT = {"generationConfig": {"responseMimeType": "application/json"}}
FORCED = ToolContext(
    tools=(WEATHER,), tool_config={"functionCallingConfig": {"mode": "any"}, "retrievalConfig": {"a": 1}}
)


@pytest.mark.parametrize(
    ("model", "backend", "built_in"),
    [
        ("gemini-2.5-flash", "gemini", "drop"),
        ("gemini-3.8-flash", "gemini", "keep"),
        ("gemini-3.8-flash", "vertex", "drop"),
    ],
)
def test_built_in_tools_stay_only_where_google_takes_both(model: str, backend: str, built_in: str) -> None:
    assert adapt_to_model(FORCED, body(), Target(model=model, backend=backend)).built_in == built_in


def test_json_output_and_functions_go_together_only_on_newer_models_and_unforced() -> None:
    old, new = Target(model="gemini-2.5-flash"), Target(model="gemini-3.8-flash")
    assert adapt_to_model(FORCED, body(**JSON_OUTPUT), old).tools == ()
    assert adapt_to_model(FORCED, body(**JSON_OUTPUT), old).tool_config is None
    assert adapt_to_model(FORCED, body(**JSON_OUTPUT), new).tool_config == {"retrievalConfig": {"a": 1}}
    assert adapt_to_model(FORCED, body(**JSON_OUTPUT), new).tools == (WEATHER,)
    for plain in (body(), body(generation_config={"response_mime_type": "text/plain"})):
        assert adapt_to_model(FORCED, plain, old).tool_config == FORCED.tool_config
    free = ToolContext(tools=(WEATHER,), tool_config={"functionCallingConfig": {"mode": "AUTO"}})
    assert adapt_to_model(free, body(**JSON_OUTPUT), new).tool_config == free.tool_config


def test_signatures_and_ids_are_the_models_own_or_googles_sentinel() -> None:
    own = CapturedCall(id="1", name="weather", sent_id="g1", signature="c2ln", origin="gemini-g3")
    second = CapturedCall(id="2", name="clock", sent_id="g2", index=1)
    context = ToolContext(last_calls=(own, second))
    assert adapt_to_model(context, body(), Target(model="gemini-3.8-flash")).last_calls == (own, second)
    first, *_ = adapt_to_model(context, body(), Target(model="gemini-4-argon")).last_calls
    assert first.signature == SENTINEL
    first, other = adapt_to_model(context, body(), Target(model="gemini-2.5-flash")).last_calls
    assert (first.signature, first.sent_id, other.sent_id) == ("", "", "")
