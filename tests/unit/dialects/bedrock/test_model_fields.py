"""Settings: Bedrock's own, and those of the models that clients believe to be behind it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.ir import OutputFormat, Sampling, Thinking, ToolChoice
from tests.unit.dialects.bedrock.builders import Json, notes, refused, request, spec

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
FIELDS = "additionalModelRequestFields"


def test_inference_config() -> None:
    config = {"maxTokens": 100, "temperature": 0.5, "topP": 0.9, "stopSequences": ["x"]}
    assert request(inferenceConfig=config).sampling == Sampling(
        max_tokens=100, temperature=0.5, top_p=0.9, stop=("x",)
    )
    assert request().sampling == Sampling()


@pytest.mark.parametrize(
    "fields",
    [
        {"inferenceConfig": {"topK": 20}},
        {FIELDS: {"top_k": 20}},
        {FIELDS: {"topK": 20}},
        {FIELDS: {"inferenceConfig": {"topK": 20}}},
    ],
)
def test_top_k_wherever_it_is_said(fields: Json) -> None:
    assert request(**fields).sampling == Sampling(top_k=20)
    assert notes(**fields) == []


def test_what_other_models_of_bedrocks_take() -> None:
    fields = {"seed": 7, "presence_penalty": 0.5, "frequency_penalty": 1}
    assert request(**{FIELDS: fields}).sampling == Sampling(seed=7, presence_penalty=0.5, frequency_penalty=1)


#: What is said, and how Gemini is to think.
THINKING: dict[str, tuple[Json, Thinking]] = {
    "nothing": ({}, Thinking()),
    "null": ({FIELDS: {"thinking": None}}, Thinking()),
    "claude, a budget": (
        {FIELDS: {"thinking": {"type": "enabled", "budget_tokens": 2048}}},
        Thinking(mode="on", budget_tokens=2048, show=True),
    ),
    "claude, adaptive": ({FIELDS: {"thinking": {"type": "adaptive"}}}, Thinking(mode="on", show=True)),
    "claude, adaptive has no budget": (
        {FIELDS: {"thinking": {"type": "adaptive", "budget_tokens": 5}}},
        Thinking(mode="on", show=True),
    ),
    "claude, not shown": (
        {FIELDS: {"thinking": {"type": "adaptive", "display": "omitted"}}},
        Thinking(mode="on", show=False),
    ),
    "claude, off": ({FIELDS: {"thinking": {"type": "disabled"}}}, Thinking(mode="off")),
    "claude, an effort alone": ({"outputConfig": {"effort": "high"}}, Thinking(effort="high")),
    "claude, an effort in its own place": (
        {FIELDS: {"output_config": {"effort": "low"}}},
        Thinking(effort="low"),
    ),
    "claude, an effort counts more than a budget": (
        {FIELDS: {"thinking": {"type": "enabled", "budget_tokens": 9}}, "outputConfig": {"effort": "low"}},
        Thinking(mode="on", effort="low", show=True),
    ),
    "amazon's first name for it": (
        {FIELDS: {"reasoning_config": {"type": "enabled", "budget_tokens": 2048}}},
        Thinking(mode="on", budget_tokens=2048, show=True),
    ),
    "nova": (
        {FIELDS: {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}}},
        Thinking(mode="on", effort="low", show=True),
    ),
    "nova, a budget": (
        {FIELDS: {"reasoningConfig": {"type": "enabled", "budgetTokens": 512}}},
        Thinking(mode="on", budget_tokens=512, show=True),
    ),
    "nova, off": ({FIELDS: {"reasoningConfig": {"type": "disabled"}}}, Thinking(mode="off")),
    "gpt": ({FIELDS: {"reasoning_effort": "medium"}}, Thinking(mode="on", effort="medium", show=True)),
    "gpt, newer": (
        {FIELDS: {"reasoning": {"effort": "xhigh"}}},
        Thinking(mode="on", effort="max", show=True),
    ),
    "gpt, off": ({FIELDS: {"reasoning_effort": "none"}}, Thinking(mode="off")),
}


@pytest.mark.parametrize("name", THINKING)
def test_thinking(name: str) -> None:
    fields, thinking = THINKING[name]
    assert request(**fields).thinking == thinking
    assert notes(**fields) == []


@pytest.mark.parametrize(
    ("fields", "where", "thinking"),
    [
        ({"outputConfig": {"effort": "?"}}, "outputConfig.effort", Thinking()),
        ({FIELDS: {"reasoning_effort": "?"}}, f"{FIELDS}.reasoning_effort", Thinking()),
        ({FIELDS: {"thinking": {"type": "?"}}}, f"{FIELDS}.thinking", Thinking()),
    ],
)
def test_words_nobody_knows_are_dropped_with_a_note(fields: Json, where: str, thinking: Thinking) -> None:
    assert request(**fields).thinking == thinking
    assert notes(**fields) == [("dropped", where)]


def test_unknown_fields_of_a_model_are_dropped_with_notes() -> None:
    fields = {"anthropic_beta": ["x"], "anthropic_version": "y", "tools": [], "logit_bias": {}}
    assert notes(additionalModelRequestFields=fields) == [
        ("dropped", f"{FIELDS}.tools"),
        ("dropped", f"{FIELDS}.logit_bias"),
    ]


def text_format(schema: Any, **more: Any) -> Json:
    structure = {"jsonSchema": {"schema": schema, "name": "n", **more}}
    return {"outputConfig": {"textFormat": {"type": "json_schema", "structure": structure}}}


def test_b16_the_schema_of_an_answer_is_json_inside_a_string() -> None:
    schema = json.dumps(SCHEMA)
    assert request(**text_format(schema)).output == OutputFormat(schema=schema.encode())


def test_b16_the_schema_of_an_answer_in_claudes_place() -> None:
    wanted = {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}
    assert request(**{FIELDS: wanted}).output == OutputFormat(schema=json.dumps(SCHEMA).encode())
    assert request(**{FIELDS: {"output_config": {"format": {"type": "text"}}}}).output is None
    assert request(outputConfig={"effort": "low"}).output is None


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        (text_format("{"), "outputConfig.textFormat.structure.jsonSchema.schema"),
        (text_format("[]"), "outputConfig.textFormat.structure.jsonSchema.schema"),
        (text_format({}), "outputConfig.textFormat.structure.jsonSchema.schema"),
        (
            {"outputConfig": {"textFormat": {"type": "json_schema", "structure": {"xml": {}}}}},
            "outputConfig.textFormat.structure",
        ),
        (
            {FIELDS: {"output_config": {"format": {"type": "json_schema"}}}},
            f"{FIELDS}.output_config.format.schema",
        ),
    ],
)
def test_a_schema_that_is_none_is_refused_at_its_place(fields: Json, where: str) -> None:
    assert refused(**fields).where == where


#: Bedrock's choice, what the model behind it is told beside it, and what is meant.
CHOICES: dict[str, tuple[Any, Any, ToolChoice]] = {
    "none said": (None, None, ToolChoice()),
    "empty": ({}, None, ToolChoice()),
    "auto": ({"auto": {}}, None, ToolChoice()),
    "any": ({"any": {}}, None, ToolChoice(mode="any")),
    "tool": ({"tool": {"name": "Read"}}, None, ToolChoice(mode="any", names=("Read",))),
    "nulls": ({"auto": None, "any": {}}, None, ToolChoice(mode="any")),
    "one at a time": (
        {"any": {}},
        {"disable_parallel_tool_use": True},
        ToolChoice(mode="any", parallel=False),
    ),
    "beside, auto": (None, {"type": "auto", "disable_parallel_tool_use": True}, ToolChoice(parallel=False)),
    "beside, none": (None, {"type": "none"}, ToolChoice(mode="none")),
    "beside, tool": (None, {"type": "tool", "name": "Read"}, ToolChoice(mode="any", names=("Read",))),
    "a system tool": ({"tool": {"name": "nova_grounding"}}, None, ToolChoice()),
}


@pytest.mark.parametrize("name", CHOICES)
def test_tool_choice(name: str) -> None:
    wire, beside, choice = CHOICES[name]
    tools = [spec(), {"systemTool": {"name": "nova_grounding"}}]
    config: Json = {"tools": tools, "toolChoice": wire}
    assert (
        request(toolConfig=config, additionalModelRequestFields={"tool_choice": beside}).tool_choice == choice
    )


@pytest.mark.parametrize(
    ("choice", "where"),
    [
        ({"maybe": {}}, "toolConfig.toolChoice"),
        ({"auto": {}, "any": {}}, "toolConfig.toolChoice"),
        ({"tool": {}}, "toolConfig.toolChoice.tool"),
    ],
)
def test_a_choice_that_is_none_is_refused(choice: Json, where: str) -> None:
    assert refused(toolConfig={"tools": [spec()], "toolChoice": choice}).where == where
