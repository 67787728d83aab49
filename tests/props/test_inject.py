"""Whatever a valid request says and a session has: Google takes what becomes of it, and nothing is done for nothing."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects.base import Target
from dragoman.tools.inject import (
    CallResult,
    CallStep,
    CapturedCall,
    ToolContext,
    adapt_to_model,
    call_key,
    captured_calls,
    modify_request,
    placeholder,
    question_of,
    withhold,
)
from tests.corpus import check
from tests.props.dialect_cases import WIRES
from tests.props.hypothesis_settings import examples
from tests.unit.dialects.anthropic.strategies import ARGS, WORDS, conversations
from tests.unit.dialects.scripted_client import MODELS, ask, refusal

Json = dict[str, Any]

_NAMES = st.sampled_from(["weather", "clock", "Bash", "Read", "a.b:c"])


@st.composite
def requests(draw: st.DrawFn, model: str) -> Json:
    """A valid body: a conversation as we send it, perhaps with built-in tools or JSON output, in either spelling."""
    _, raw = WIRES["anthropic"].exchange(draw(conversations()), model)
    body: Json = json.loads(raw)
    if "tools" not in body and "responseMimeType" not in body.get("generationConfig", {}):
        more = draw(st.sampled_from(["", "googleSearch", "codeExecution", "json"]))
        if more == "json":
            body.setdefault("generationConfig", {})["responseMimeType"] = "application/json"
        elif more:
            body["tools"] = [{more: {}}]
    body = _snake(body) if draw(st.booleans()) else body
    assert refusal(model, json.dumps(body).encode()) == ""
    return body


def _snake(value: Any) -> Any:
    """Google's other spelling, of names that are Google's; arguments, schemas and responses are the user's."""
    if isinstance(value, list):
        return [_snake(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = ("args", "response", "parametersJsonSchema", "responseJsonSchema", "parameters")
    return {
        re.sub(r"[A-Z]", lambda found: "_" + found[0].lower(), key): item if key in kept else _snake(item)
        for key, item in value.items()
    }


@st.composite
def contexts(draw: st.DrawFn, body: Json) -> ToolContext:
    names = draw(st.lists(_NAMES, max_size=3, unique=True))
    tools = tuple({"name": name, "description": "ours"} for name in names)
    mode = draw(st.sampled_from([None, "AUTO", "ANY", "VALIDATED", "NONE"]))
    config: Json | None = {"functionCallingConfig": {"mode": mode}} if mode else None
    if config and mode in ("ANY", "VALIDATED") and draw(st.booleans()):
        config["functionCallingConfig"]["allowedFunctionNames"] = [*names, "nobody"]
    step = draw(steps(body))
    return ToolContext(
        tools=tools,
        tool_config=config,
        keep_client_tools=draw(st.booleans()),
        last_calls=step.calls,
        pending_results=step.results,
    )


@st.composite
def steps(draw: st.DrawFn, body: Json) -> CallStep:
    """Calls with some of their results; of this very question, of a turn in the history, or of nobody knows what."""
    question = draw(st.sampled_from(["", question_of(body)]))
    calls = tuple(
        CapturedCall(
            id=f"call_{number}",
            name=draw(_NAMES),
            args=draw(ARGS),
            sent_id=draw(st.sampled_from(["", f"g{number}"])),
            index=number,
            question=question,
        )
        for number in range(draw(st.integers(0, 3)))
    )
    answered = [call for call in calls if draw(st.booleans())]
    results = (CallResult(id=call.id, response={"output": draw(WORDS)}) for call in answered)
    return CallStep(calls, tuple(results))


@pytest.mark.parametrize("model", MODELS)
@examples(25)
@given(data=st.data())
def test_google_takes_whatever_becomes_of_a_valid_request(model: str, data: st.DataObject) -> None:
    body = data.draw(requests(model))
    body = _with_stand_in(data.draw, body)
    context = adapt_to_model(data.draw(contexts(body)), body, Target(model=model))
    before = copy.deepcopy(body)
    made = modify_request(body, context)
    assert body == before
    assert refusal(model, json.dumps(made).encode()) == ""
    if "function_call" not in json.dumps(made) and not check.history_problems(body):
        assert check.history_problems(made) == []
    once = modify_request(made, ToolContext(tools=context.tools, keep_client_tools=context.keep_client_tools))
    assert _tools(once) == _tools(made)


def _with_stand_in(draw: Any, body: Json) -> Json:
    """Perhaps the model's last words are a stand-in: alone, behind others, or as a turn of their own."""
    waiting = placeholder((CapturedCall(id="call_0", name="weather"),))
    spoken = [index for index, content in enumerate(body["contents"]) if content["role"] == "model"]
    where = draw(st.sampled_from(["nowhere", "in", "behind", "turn"]))
    if where == "nowhere" or not spoken:
        return body
    content = body["contents"][spoken[-1]]
    if any("functionCall" in part or "function_call" in part for part in content["parts"]):
        return body
    said = {"role": "model", "parts": [{"text": waiting}]}
    if where == "in":
        said["parts"] = [*content["parts"], *said["parts"]]
    chunks = [content, said] if where == "turn" else [said]
    contents = [*body["contents"][: spoken[-1]], *chunks, *body["contents"][spoken[-1] + 1 :]]
    return {**body, "contents": contents}


def _tools(body: Json) -> Any:
    return body.get("tools")


@examples(25)
@given(data=st.data())
def test_nothing_is_done_where_there_is_nothing_to_do(data: st.DataObject) -> None:
    body = data.draw(requests("gemini-3.8-flash"))
    step = data.draw(steps(body))
    for context in (
        ToolContext(),
        ToolContext(last_calls=step.calls),
        ToolContext(pending_results=step.results),
    ):
        assert modify_request(body, context) is body


@examples(25)
@given(data=st.data())
def test_injecting_twice_is_injecting_once(data: st.DataObject) -> None:
    """Tools and config always; results where the history shows what they belong to."""
    body = data.draw(requests("gemini-3.8-flash"))
    context = adapt_to_model(data.draw(contexts(body)), body, Target(model="gemini-3.8-flash"))
    tools_only = ToolContext(
        tools=context.tools, tool_config=context.tool_config, keep_client_tools=context.keep_client_tools
    )
    once = modify_request(body, tools_only)
    if context.keep_client_tools:
        assert modify_request(once, tools_only) is once
    calls = tuple(
        CapturedCall(
            id=call.id, name=call.name, args=call.args, sent_id=f"only_{call.id}", signature=call.signature
        )
        for call in context.last_calls
    )
    results = ToolContext(last_calls=calls, pending_results=context.pending_results)
    told = modify_request(body, results)
    assert modify_request(told, results) == told


@pytest.mark.parametrize("stream", [True, False])
@examples(25)
@given(names=st.sets(_NAMES, min_size=1, max_size=3), data=st.data())
def test_what_was_withheld_comes_back_whole_in_the_next_request(
    stream: bool, names: set[str], data: st.DataObject
) -> None:
    """The emulator calls; the client sees no call of ours; with the results the history is one Google takes."""
    model = "gemini-3.8-flash"
    wanted = data.draw(st.lists(st.sampled_from(sorted(names)), min_size=1, max_size=3))
    words = " and ".join(f"use {name} with {{}}" for name in wanted)
    body: Json = {"contents": [{"role": "user", "parts": [{"text": words}]}]}
    tools = tuple({"name": name} for name in sorted(names))
    status, raw = ask(
        model, json.dumps(modify_request(body, ToolContext(tools=tools))).encode(), stream=stream
    )
    assert status == 200
    answer = [json.loads(line[6:]) for line in raw.splitlines() if line] if stream else [json.loads(raw)]
    calls = captured_calls(answer, names, question=question_of(body))
    assert [call.name for call in calls] == wanted
    seen = withhold(answer, calls)
    assert captured_calls(seen) == ()
    said = [part for chunk in seen for part in chunk["candidates"][0].get("content", {}).get("parts", ())]
    results = tuple(CallResult(id=call.id, response={"output": call.id}) for call in calls)
    context = ToolContext(tools=tools, last_calls=calls, pending_results=results)
    follow_up = {"role": "user", "parts": [{"text": "go on"}]}
    for contents in (body["contents"], [*body["contents"], {"role": "model", "parts": said}, follow_up]):
        made = modify_request({"contents": contents}, context)
        assert refusal(model, json.dumps(made).encode()) == ""
        assert all(call.id in json.dumps(made) for call in calls)
        assert placeholder(calls) not in json.dumps(made, ensure_ascii=False)


@given(args=ARGS)
def test_a_call_is_known_by_what_it_says_whatever_the_order(args: Json) -> None:
    turned = dict(reversed(args.items()))
    assert call_key({"name": "x", "args": args}) == call_key({"name": "x", "args": turned})
    assert call_key({"name": "x", "args": args}) != call_key({"name": "y", "args": args})
