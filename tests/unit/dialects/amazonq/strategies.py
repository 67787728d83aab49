"""Hypothesis invents whole conversations as a client of Amazon's would send them."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import strategies as st

from dragoman.ir import AFTER_TEXT, ON_THOUGHT, Signature, seal
from tests.unit.dialects.amazonq.builders import (
    assistant,
    document,
    image,
    reasoning,
    result,
    tool,
    use,
    user,
)
from tests.unit.dialects.anthropic.strategies import ARGS, NAMES, SAID, SCHEMAS, VALUES, WORDS

Json = dict[str, Any]

#: Of other models, damaged, ours of another family: none may be forwarded.
REASONING: st.SearchStrategy[Json] = st.sampled_from(
    [
        {},
        reasoning("hm", "EqQBCgIYAhIkYmFzZTY0"),
        reasoning("", None),
        reasoning("hm", seal(Signature("eA", "vertex-g9"), ON_THOUGHT)),
        reasoning("hm", seal(Signature("eA", "vertex-g9"), AFTER_TEXT)),
        reasoning("hm", seal(Signature("eA", "gemini-g3"), ON_THOUGHT)[:-1]),
        {"reasoningContent": {"redactedContent": "AAAA"}},
        {"supplementaryWebLinks": [{"url": "u", "title": "t"}], "messageId": "m"},
    ]
)
STATES = st.fixed_dictionaries(
    {},
    optional={
        "envState": st.sampled_from(
            [
                None,
                {},
                {"operatingSystem": "linux"},
                {"operatingSystem": "linux", "currentWorkingDirectory": "/w"},
            ]
        ),
        "gitState": st.just({"status": "clean"}),
        "editorState": VALUES,
        "userSettings": st.just({"a": True}),
    },
)
BLOCKS = st.one_of(
    WORDS.map(lambda words: {"text": words}),
    VALUES.map(lambda value: {"json": value}),
    st.just({"json": {"a": {"$ref": "#/b"}}}),
)
FILES = st.fixed_dictionaries(
    {},
    optional={
        "images": st.lists(st.sampled_from([image(), image("gif", "R0lGODlh")]), max_size=2),
        "documents": st.lists(st.sampled_from([document(), document("txt", "eA==", None)]), max_size=1),
    },
)


@st.composite
def conversations(draw: st.DrawFn) -> Json:
    """A request: settled rounds, then an open one; ids are unique, every tool use has its result."""
    tools = draw(st.lists(_tools(), max_size=4, unique_by=lambda tool: tool["toolSpecification"]["name"]))
    numbers = itertools.count(1)
    messages: list[Json] = []
    for _ in range(draw(st.integers(0, 2))):
        messages += draw(_round(tools, numbers))
        messages.append(assistant(draw(WORDS), **draw(REASONING)))
    messages += draw(_round(tools, numbers))
    *history, current = messages
    asked = current["userInputMessage"]
    listed: list[Json] = [*tools, *([{"cachePoint": {"type": "default"}}] if draw(st.booleans()) else [])]
    asked["userInputMessageContext"] = {
        **(asked.get("userInputMessageContext") or {}),
        "tools": draw(st.permutations(listed)),
    }
    asked["modelId"] = draw(st.sampled_from([None, "auto", "claude-sonnet-4"]))
    state = {"conversationId": draw(WORDS), "history": history, "currentMessage": current}
    return {"conversationState": state} | draw(_settings())


def _tools() -> st.SearchStrategy[Json]:
    return st.builds(
        lambda name, schema, more: tool(name, schema, **more),
        NAMES,
        SCHEMAS,
        st.fixed_dictionaries({}, optional={"description": WORDS}),
    )


@st.composite
def _round(draw: st.DrawFn, tools: list[Json], numbers: Any) -> list[Json]:
    """The user asks, the model uses tools a few times; refused tools may come with a new prompt."""
    messages = [user(draw(SAID), context=draw(STATES | st.none()), **draw(FILES))]
    for _ in range(draw(st.integers(0, 2))):
        messages += draw(_step(tools, numbers))
    return messages


@st.composite
def _step(draw: st.DrawFn, tools: list[Json], numbers: Any) -> list[Json]:
    declared = [tool["toolSpecification"]["name"] for tool in tools]
    names = st.sampled_from(declared) | NAMES if declared else NAMES
    uses = [
        use(f"tooluse_{next(numbers):016d}", draw(names), input=draw(ARGS | st.none()))
        for _ in range(draw(st.integers(1, 3)))
    ]
    given = [
        result(
            *draw(st.lists(BLOCKS, max_size=3)),
            identity=one["toolUseId"],
            status=draw(st.sampled_from([None, "success", "error"])),
        )
        for one in draw(st.permutations(uses))
    ]
    context = {**draw(STATES), "toolResults": given}
    return [
        assistant(draw(WORDS), *uses, **draw(REASONING)),
        user(draw(WORDS | st.just("")), context=context, **draw(FILES)),
    ]


def _settings() -> st.SearchStrategy[Json]:
    fields = st.fixed_dictionaries(
        {},
        optional={
            "thinking": st.sampled_from([{"type": "adaptive"}, {"type": "enabled", "budget_tokens": 1024}]),
            "output_config": st.just({"effort": "low"}),
            "max_tokens": st.integers(1, 100_000),
            "temperature": st.floats(0, 1),
            "stop_sequences": st.lists(WORDS, max_size=3),
            "unknown": st.just(1),
        },
    )
    return st.fixed_dictionaries(
        {},
        optional={
            "systemPrompt": WORDS,
            "additionalModelRequestFields": fields,
            "agentMode": st.just("vibe"),
        },
    )
