"""Calls and responses stay pairs, whatever else their parts say and however a client splits them."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.dialects.base import Target
from dragoman.ir import Message, Text
from tests.unit.dialects.gemini.client.builders import HI, Json, exchange, model, sent, talk, user

IMAGE = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
NAMED = {"inlineData": {"mimeType": "image/png", "data": "AA==", "displayName": "a.png"}}


def call(name: str = "f", *, signed: bool = True, **part: Any) -> Json:
    more = {"thoughtSignature": "c2ln"} if signed else {}
    return {"functionCall": {"name": name, "args": {}}, **more, **part}


def response(value: Any = 1, name: str = "f", **more: Any) -> Json:
    return {"functionResponse": {"name": name, "response": {"v": value}, **more}}


def answered(body: Json) -> tuple[list[Any], int]:
    """What each call was answered, in call order, and how many notes were needed."""
    asked = exchange(body)
    asked.encode(Target(model="gemini-3.8-flash"))
    contents = sent(body)["contents"]
    found = [
        part["functionResponse"]["response"].get("v")
        for content in contents
        for part in content["parts"]
        if "functionResponse" in part
    ]
    return found, len(asked.notes)


@pytest.mark.parametrize(
    "more",
    [{"scheduling": "SILENT"}, {"willContinue": False}, {"parts": [NAMED]}, {"parts": [{"text": "a"}]}],
)
def test_c1_a_response_that_says_more_still_answers_its_call(more: Json) -> None:
    body = talk(*HI, model(call()), user(response(**more)))
    assert answered(body) == ([1], 0)
    found = sent(body)["contents"][2]["parts"][0]["functionResponse"]
    assert {field: found[field] for field in more} == more


def test_c1_members_beside_a_call_or_a_response_stay_beside_it() -> None:
    asked, result = call(partMetadata={"a": 1}), {**response(), "partMetadata": {"b": 2}}
    found = sent(talk(*HI, model(asked), user(result)))["contents"]
    assert found[1]["parts"][0]["partMetadata"] == {"a": 1}
    assert found[1]["parts"][0]["thoughtSignature"] == "c2ln"
    assert found[2]["parts"][0]["partMetadata"] == {"b": 2}
    assert found[2]["parts"][0]["functionResponse"]["id"] == found[1]["parts"][0]["functionCall"]["id"]


def test_j_files_of_both_kinds_stay_inside_their_response() -> None:
    found = sent(talk(*HI, model(call()), user(response(parts=[NAMED]), IMAGE)))["contents"]
    assert found[2]["parts"][0]["functionResponse"]["parts"] == [NAMED, IMAGE]
    assert len(found[2]["parts"]) == 1


def test_c1_results_sent_one_by_one_answer_one_call_each() -> None:
    calls = model(call(), call(signed=False))
    assert answered(talk(*HI, calls, user(response(1)), user(response(2)))) == ([1, 2], 0)


def test_c1_calls_sent_one_by_one_all_wait_for_their_results() -> None:
    calls = (model(call("a")), model(call("b", signed=False)))
    results = user(response(1, "a"), response(2, "b"))
    assert answered(talk(*HI, *calls, results)) == ([1, 2], 0)


def test_c1_a_name_nobody_called_takes_only_what_is_left() -> None:
    calls = model(call("a"), call("b", signed=False))
    assert answered(talk(*HI, calls, user(response(2, "x"), response(1, "a"))))[0] == [1, 2]


def test_c1_a_call_the_user_went_past_waits_no_longer() -> None:
    nameless = {"functionResponse": {"response": {"v": 2}}}
    body = talk(*HI, model(call("a")), *HI, model(call("b")), user(nameless))
    assert answered(body)[0] == [None, 2]


def test_c2_a_response_without_its_call_is_told_with_what_it_says() -> None:
    told = sent(talk(*HI, user(response("lost"))))["contents"][-1]["parts"]
    assert [part["text"] for part in told][-1] == '{"v": "lost"}'


def test_a_remark_of_the_system_keeps_its_place_and_a_file_in_it_is_the_users() -> None:
    messages = exchange(talk({"role": "system", "parts": [{"text": "s"}]}, *HI)).request.messages
    assert messages[0] == Message(role="system", parts=(Text(text="s"),))
    assert exchange(talk({"role": "system", "parts": [IMAGE]})).request.messages[0].role == "user"


@pytest.mark.parametrize(("mode", "sent_mode"), [("any", "ANY"), (2, "ANY"), (3, "NONE"), (4, "VALIDATED")])
def test_a_mode_in_any_case_or_as_a_number(mode: Any, sent_mode: str) -> None:
    config = {"functionCallingConfig": {"mode": mode}}
    body = talk(*HI, tools=[{"functionDeclarations": [{"name": "f"}]}], toolConfig=config)
    assert sent(body)["toolConfig"]["functionCallingConfig"]["mode"] == sent_mode
