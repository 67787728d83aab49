"""Hypothesis invents whole conversations as a correct client of Converse would send them."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import strategies as st

from dragoman.ir import AFTER_TEXT, ON_THOUGHT, Signature, seal
from tests.unit.dialects.anthropic.strategies import ARGS, NAMES, PIXEL, SAID, SCHEMAS, VALUES, WORDS

Json = dict[str, Any]

TEXT = WORDS.map(lambda words: {"text": words})
CACHE: Json = {"cachePoint": {"type": "default"}}
IMAGE: Json = {"image": {"format": "png", "source": {"bytes": PIXEL}}}
FILES = st.sampled_from(
    [
        IMAGE,
        {"image": {"format": "gif", "source": {"bytes": "R0lGODlh"}}},
        {"document": {"format": "pdf", "name": "report", "source": {"bytes": "JVBERi0="}}},
        {"document": {"format": "csv", "name": "table", "source": {"bytes": "YSxi"}}},
        {"document": {"name": "words", "source": {"text": "words"}, "context": "c"}},
        {"document": {"name": "words", "source": {"content": [{"text": "a"}, {"text": "b"}]}}},
        {"video": {"format": "mp4", "source": {"bytes": "AAAA"}}},
        {"searchResult": {"title": "T", "source": "https://h", "content": [{"text": "found"}]}},
    ]
)
#: Google would take it for the name of a file.
REFERRING: Json = {"a": {"$ref": "#/b"}}
USERS = st.one_of(
    FILES,
    TEXT,
    st.sampled_from(
        [
            CACHE,
            {"audio": {"format": "mp3", "source": {"bytes": "AAAA"}}},
            {"guardContent": {"text": {"text": "careful"}}},
        ]
    ),
)
#: Reasoning of other models, damaged; ours of another family, which must not be forwarded either.
REASONING = st.sampled_from(
    [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "RXFRQkNn"}}},
        {"reasoningContent": {"reasoningText": {"text": "hm"}}},
        {"reasoningContent": {"reasoningText": {"text": "", "signature": ""}}},
        {"reasoningContent": {"redactedContent": "c2VjcmV0"}},
        *(
            {
                "reasoningContent": {
                    "reasoningText": {"text": "hm", "signature": seal(Signature("eA", "vertex-g9"), target)}
                }
            }
            for target in (ON_THOUGHT, AFTER_TEXT)
        ),
    ]
)
MODELS = st.one_of(
    TEXT,
    REASONING,
    st.sampled_from(
        [
            CACHE,
            {"citationsContent": {"content": [{"text": "so they say"}], "citations": [{"title": "T"}]}},
            {
                "toolUse": {
                    "toolUseId": "s1",
                    "name": "nova_grounding",
                    "input": {},
                    "type": "server_tool_use",
                }
            },
        ]
    ),
)


@st.composite
def conversations(draw: st.DrawFn) -> Json:
    """A request: settled rounds, then an open one; ids are unique, every call has its result."""
    specs = draw(st.lists(_specs(), max_size=4, unique_by=lambda tool: tool["toolSpec"]["name"]))
    numbers = itertools.count(1)
    messages: list[Json] = []
    for _ in range(draw(st.integers(1, 3))):
        asked = [*draw(st.lists(USERS, max_size=3)), {"text": draw(SAID)}]
        messages.append({"role": "user", "content": asked})
        _remark(draw, messages)
        for _ in range(draw(st.integers(0, 2))):
            messages += draw(_step(specs, numbers))
            _remark(draw, messages)
        if draw(st.booleans()):
            messages.append({"role": "assistant", "content": draw(st.lists(MODELS, max_size=3))})
    request: Json = {"messages": messages}
    if specs:
        tools = [*specs, *draw(st.lists(st.just(CACHE), max_size=1))]
        request["toolConfig"] = {"tools": tools, "toolChoice": draw(_choices(specs))}
    return request | draw(_settings())


def _specs() -> st.SearchStrategy[Json]:
    spec = st.fixed_dictionaries(
        {"name": NAMES, "inputSchema": SCHEMAS.map(lambda schema: {"json": schema})},
        optional={"description": SAID, "strict": st.booleans()},
    )
    return spec.map(lambda tool: {"toolSpec": tool})


def _remark(draw: st.DrawFn, messages: list[Json]) -> None:
    if draw(st.integers(0, 3)) == 0:
        messages.append({"role": "system", "content": draw(st.lists(TEXT, max_size=2))})


@st.composite
def _step(draw: st.DrawFn, specs: list[Json], numbers: Any) -> list[Json]:
    """The model calls, the client answers in any order, in one turn or several."""
    names = NAMES if not specs else st.sampled_from([spec["toolSpec"]["name"] for spec in specs]) | NAMES
    calls: list[Json] = [
        {"toolUse": {"toolUseId": f"tooluse_{next(numbers):022d}", "name": draw(names), "input": draw(ARGS)}}
        for _ in range(draw(st.integers(1, 3)))
    ]
    steps: list[Json] = [
        {"role": "assistant", "content": [*draw(st.lists(TEXT | REASONING, max_size=2)), *calls]}
    ]
    _remark(draw, steps)
    order = draw(st.permutations(calls))
    results = [draw(_result(call["toolUse"]["toolUseId"])) for call in order]
    if draw(st.booleans()):
        steps.append({"role": "user", "content": [*results, *draw(st.lists(USERS, max_size=2))]})
    else:
        steps += [{"role": "user", "content": [result]} for result in results]
    return steps


def _result(identity: str) -> st.SearchStrategy[Json]:
    values = VALUES | st.just(REFERRING)
    content = st.lists(TEXT | FILES | values.map(lambda value: {"json": value}), max_size=3)
    result = st.fixed_dictionaries(
        {"toolUseId": st.just(identity), "content": content},
        optional={"status": st.sampled_from(["success", "error"])},
    )
    return result.map(lambda found: {"toolResult": found})


def _choices(specs: list[Json]) -> st.SearchStrategy[Any]:
    named = [{"tool": {"name": spec["toolSpec"]["name"]}} for spec in specs]
    return st.sampled_from([None, {"auto": {}}, {"any": {}}, *named])


def _settings() -> st.SearchStrategy[Json]:
    schema = json.dumps({"type": "object", "properties": {"a": {"type": "string"}}})
    structure = {"jsonSchema": {"schema": schema, "name": "r"}}
    return st.fixed_dictionaries(
        {},
        optional={
            "system": st.lists(TEXT | st.just(CACHE), max_size=3),
            "inferenceConfig": st.fixed_dictionaries(
                {},
                optional={
                    "maxTokens": st.integers(1, 100_000),
                    "temperature": st.floats(0, 1),
                    "topP": st.floats(0, 1),
                    "stopSequences": st.lists(WORDS, max_size=7),
                },
            ),
            "outputConfig": st.sampled_from(
                [
                    {"effort": "low"},
                    {"effort": "?"},
                    {"textFormat": {"type": "json_schema", "structure": structure}},
                ]
            ),
            "additionalModelRequestFields": st.sampled_from(
                [
                    {"thinking": {"type": "enabled", "budget_tokens": 1024}},
                    {"thinking": {"type": "disabled"}},
                    {"reasoning_effort": "high", "top_k": 40},
                    {"tool_choice": {"disable_parallel_tool_use": True}},
                    {"unknown": 1},
                ]
            ),
            "additionalModelResponseFieldPaths": st.just(["/usage"]),
            "requestMetadata": st.just({"a": "b"}),
        },
    )
