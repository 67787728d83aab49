"""Hypothesis invents whole conversations as a correct Chat client would send them."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import strategies as st

from dragoman.ir import AFTER_TEXT, ON_TEXT, ON_THOUGHT, Signature, seal
from tests.unit.dialects.anthropic.strategies import ARGS, NAMES, PIXEL, SAID, SCHEMAS, WORDS

Json = dict[str, Any]

TEXT_PART = WORDS.map(lambda words: {"type": "text", "text": words})
FILES = st.sampled_from(
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "high"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/unknown"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {
            "type": "file",
            "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
        },
    ]
)
#: Ours of another family or damaged: none may be forwarded.
FOREIGN: st.SearchStrategy[Json] = st.sampled_from(
    [
        {},
        {"extra_content": {"google": {"thought_signature": seal(Signature("eA", "vertex-g9"), ON_TEXT)}}},
        {"extra_content": {"google": {"thought_signature": seal(Signature("eA", "vertex-g9"), AFTER_TEXT)}}},
        {"extra_content": {"google": {"thought_signature": seal(Signature("eA", "vertex-g9"), ON_THOUGHT)}}},
        {"extra_content": {"google": {"thought_signature": "dgm1.broken"}}},
        {"reasoning_content": "hm", "refusal": None, "annotations": []},
    ]
)
ARGUMENTS = st.one_of(
    ARGS.map(json.dumps), st.sampled_from(["", "[1]", '{"cut', "null", '{ "a" : "\\u00fc" }'])
)


@st.composite
def conversations(draw: st.DrawFn) -> Json:
    """A request: settled rounds, then an open one; ids are unique, every call has its result."""
    tools = draw(st.lists(_tools(), max_size=4, unique_by=lambda tool: tool[tool["type"]]["name"]))
    numbers = itertools.count(1)
    messages: list[Json] = [
        {"role": role, "content": draw(WORDS | st.lists(TEXT_PART, max_size=2))}
        for role in draw(st.lists(st.sampled_from(["system", "developer"]), max_size=2))
    ]
    for _ in range(draw(st.integers(0, 2))):
        messages += draw(_round(tools, numbers))
        messages.append({"role": "assistant", "content": draw(WORDS | st.none()), **draw(FOREIGN)})
    messages += draw(_round(tools, numbers))
    request: Json = {"model": "gpt-x", "messages": messages}
    if tools:
        request["tools"] = tools
        request["tool_choice"] = draw(_choices(tools))
    return request | draw(_settings())


def _tools() -> st.SearchStrategy[Json]:
    function = st.fixed_dictionaries(
        {"name": NAMES}, optional={"description": WORDS, "parameters": SCHEMAS, "strict": st.booleans()}
    )
    freeform = st.fixed_dictionaries(
        {"name": NAMES}, optional={"description": WORDS, "format": st.just({"type": "text"})}
    )
    return st.one_of(
        function.map(lambda tool: {"type": "function", "function": tool}),
        freeform.map(lambda tool: {"type": "custom", "custom": tool}),
    )


@st.composite
def _round(draw: st.DrawFn, tools: list[Json], numbers: Any) -> list[Json]:
    """The user asks, the model calls a few times, remarks of the program anywhere."""
    beside = draw(st.lists(TEXT_PART | FILES, max_size=2))
    asked: Any = draw(SAID)
    messages: list[Json] = [
        {"role": "user", "content": [*beside, {"type": "text", "text": asked}] if beside else asked}
    ]
    for _ in range(draw(st.integers(0, 2))):
        _remark(draw, messages)
        messages += draw(_step(tools, numbers))
    _remark(draw, messages)
    return messages


def _remark(draw: st.DrawFn, messages: list[Json]) -> None:
    if draw(st.integers(0, 3)) == 0:
        messages.append({"role": draw(st.sampled_from(["system", "developer"])), "content": draw(WORDS)})


@st.composite
def _step(draw: st.DrawFn, tools: list[Json], numbers: Any) -> list[Json]:
    """The model calls, the tools answer in any order, perhaps with pictures behind."""
    names = NAMES if not tools else st.sampled_from([tool[tool["type"]]["name"] for tool in tools]) | NAMES
    calls = [draw(_call(f"call_{next(numbers):024d}", names)) for _ in range(draw(st.integers(1, 3)))]
    said = {"role": "assistant", "content": draw(WORDS | st.none()), "tool_calls": calls, **draw(FOREIGN)}
    content = WORDS | st.none() | st.lists(TEXT_PART | FILES, max_size=2)
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": draw(content)}
        for call in draw(st.permutations(calls))
    ]
    pictures = draw(st.lists(FILES, max_size=1))
    return [said, *results, *([{"role": "user", "content": pictures}] if pictures else [])]


@st.composite
def _call(draw: st.DrawFn, identity: str, names: st.SearchStrategy[str]) -> Json:
    if draw(st.integers(0, 4)) == 0:
        return {"id": identity, "type": "custom", "custom": {"name": draw(names), "input": draw(WORDS)}}
    function = {"name": draw(names), "arguments": draw(ARGUMENTS)}
    return {"id": identity, "type": "function", "function": function}


def _choices(tools: list[Json]) -> st.SearchStrategy[Any]:
    named = [{"type": tool["type"], tool["type"]: {"name": tool[tool["type"]]["name"]}} for tool in tools]
    allowed = [
        {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": named}}
        for mode in ("auto", "required")
    ]
    return st.sampled_from([None, "none", "auto", "required", "validated", *named, *allowed])


def _settings() -> st.SearchStrategy[Json]:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    return st.fixed_dictionaries(
        {},
        optional={
            "parallel_tool_calls": st.booleans(),
            "reasoning_effort": st.sampled_from(["none", "minimal", "low", "high", "xhigh", "?"]),
            "response_format": st.sampled_from(
                [
                    {"type": "text"},
                    {"type": "json_object"},
                    {"type": "json_schema", "json_schema": {"name": "r", "schema": schema}},
                ]
            ),
            "max_completion_tokens": st.integers(1, 100_000),
            "max_tokens": st.integers(1, 100_000),
            "temperature": st.floats(0, 2),
            "top_p": st.floats(0, 1),
            "seed": st.integers(0, 2**31 - 1),
            "presence_penalty": st.floats(-2, 1.9),
            "stop": st.none() | WORDS | st.lists(WORDS, max_size=4),
            "stream": st.booleans(),
            "stream_options": st.just({"include_usage": True}),
            "user": WORDS,
            "store": st.booleans(),
        },
    )
