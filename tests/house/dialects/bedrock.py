"""Samples of Bedrock's Converse."""

from __future__ import annotations

import json

import msgspec

from dragoman.dialects.bedrock import ConverseClient, blocks, model_fields, wire
from tests.house.dialects.anthropic import PNG, SCHEMA
from tests.house.dialects.field_table import MODEL, Json, Page, Sample

HELLO: Json = {"role": "user", "content": [{"text": "Hello"}]}
TOOLS: list[Json] = [
    {"toolSpec": {"name": "weather", "description": "of a city", "inputSchema": {"json": SCHEMA}}}
]
CALL: Json = {"toolUse": {"toolUseId": "t1", "name": "weather", "input": {"city": "Oslo"}}}
SOUND: Json = {"format": "mp4", "source": {"bytes": "AAAA"}}


def user(block: Json) -> Json:
    return {"messages": [{"role": "user", "content": [block]}]}


def done(**fields: object) -> Json:
    result = {"toolResult": {"toolUseId": "t1", "content": [{"text": "rain"}], **fields}}
    called = {"role": "assistant", "content": [CALL]}
    return {
        "toolConfig": {"tools": TOOLS},
        "messages": [HELLO, called, {"role": "user", "content": [result]}],
    }


def said(block: Json) -> Json:
    return {"messages": [HELLO, {"role": "assistant", "content": [block, {"text": "Hi"}]}, HELLO]}


def config(**fields: object) -> Json:
    return {"inferenceConfig": fields}


def choosing(name: str, choice: Json) -> Sample:
    field = f"toolConfig.toolChoice: {name}"
    return Sample(field, {"toolConfig": {"toolChoice": {name: choice}}}, {"toolConfig": {"tools": TOOLS}})


def extra(**fields: object) -> Json:
    return {"additionalModelRequestFields": fields}


SAMPLES = [
    Sample("modelId", {"modelId": "anthropic.claude-sonnet-4-5-v1:0"}),
    Sample("system", {"system": [{"text": "Be brief."}]}),
    Sample("system: cachePoint", {"system": [{"cachePoint": {"type": "default"}}]}),
    Sample("inferenceConfig.maxTokens", config(maxTokens=500)),
    Sample("inferenceConfig.temperature", config(temperature=0.5)),
    Sample("inferenceConfig.topP", config(topP=0.5)),
    Sample("inferenceConfig.topK", config(topK=5)),
    Sample("inferenceConfig.stopSequences", config(stopSequences=["END"])),
    Sample("toolConfig.tools", {"toolConfig": {"tools": TOOLS}}),
    choosing("auto", {}),
    choosing("any", {}),
    choosing("tool", {"name": "weather"}),
    Sample(
        "outputConfig.textFormat",
        {
            "outputConfig": {
                "textFormat": {
                    "type": "json_schema",
                    "structure": {"jsonSchema": {"schema": json.dumps(SCHEMA)}},
                }
            }
        },
    ),
    Sample("outputConfig.effort", {"outputConfig": {"effort": "low"}}),
    Sample(
        "additionalModelRequestFields.thinking", extra(thinking={"type": "enabled", "budget_tokens": 2000})
    ),
    Sample(
        "additionalModelRequestFields.reasoning_config",
        extra(reasoning_config={"type": "enabled", "budget_tokens": 2000}),
    ),
    Sample("additionalModelRequestFields.output_config", extra(output_config={"effort": "low"})),
    Sample(
        "additionalModelRequestFields.tool_choice",
        extra(tool_choice={"type": "any"}),
        {"toolConfig": {"tools": TOOLS}},
    ),
    Sample("additionalModelRequestFields.top_k", extra(top_k=5)),
    Sample("additionalModelRequestFields.topK", extra(topK=5)),
    Sample(
        "additionalModelRequestFields.reasoningConfig",
        extra(reasoningConfig={"type": "enabled", "maxReasoningEffort": "low"}),
    ),
    Sample("additionalModelRequestFields.inferenceConfig", extra(inferenceConfig={"topK": 5})),
    *(
        Sample(f"additionalModelRequestFields.{name}", extra(**{name: value}))
        for name, value in {
            "reasoning": {"effort": "low"},
            "reasoning_effort": "low",
            "seed": 7,
            "presence_penalty": 0.5,
            "frequency_penalty": 0.5,
            "anthropic_beta": ["x"],
            "hologram": 1,
        }.items()
    ),
    Sample("additionalModelResponseFieldPaths", {"additionalModelResponseFieldPaths": ["/stop_sequence"]}),
    Sample("promptVariables", {"promptVariables": {"a": {"text": "b"}}}),
    Sample("guardrailConfig", {"guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"}}),
    Sample("performanceConfig", {"performanceConfig": {"latency": "optimized"}}),
    Sample("requestMetadata", {"requestMetadata": {"a": "b"}}),
    Sample("serviceTier", {"serviceTier": {"type": "priority"}}),
    Sample("messages[].content[]: text", user({"text": "Good day"})),
    Sample("messages[].content[]: image", user({"image": {"format": "png", "source": {"bytes": PNG}}})),
    Sample(
        "messages[].content[]: image from S3",
        user({"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/k"}}}}),
    ),
    Sample(
        "messages[].content[]: document",
        user({"document": {"format": "txt", "name": "a", "source": {"bytes": "d29yZHM="}}}),
    ),
    Sample(
        "messages[].content[]: document in docx",
        user({"document": {"format": "docx", "name": "a", "source": {"bytes": "d29yZHM="}}}),
    ),
    Sample("messages[].content[]: video", user({"video": SOUND})),
    Sample("messages[].content[]: audio", user({"audio": {"format": "wav", "source": {"bytes": "AAAA"}}})),
    Sample(
        "messages[].content[]: searchResult",
        user({"searchResult": {"source": "s", "title": "t", "content": [{"text": "words"}]}}),
    ),
    Sample("messages[].content[]: guardContent", user({"guardContent": {"text": {"text": "words"}}})),
    Sample(
        "messages[].content[]: cachePoint",
        {"messages": [{"role": "user", "content": [{"text": "Hello"}, {"cachePoint": {"type": "default"}}]}]},
    ),
    Sample(
        "messages[].content[]: citationsContent",
        said({"citationsContent": {"content": [{"text": "words"}], "citations": []}}),
    ),
    Sample("messages[].content[]: toolUse", done()),
    Sample("messages[].content[]: toolResult", done(content=[{"json": {"sky": "rain"}}])),
    Sample("messages[].content[]: toolResult with status error", done(status="error")),
    Sample(
        "messages[].content[]: reasoningContent",
        said({"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "of-claude"}}}),
    ),
    Sample("messages[].content[]: an unknown member", user({"hologram": {}})),
]

PAGE = Page(
    file="bedrock.md",
    title="Bedrock Converse",
    intro="`POST /model/MODEL/converse` and `/converse-stream` ([Bedrock](../bedrock.md)). `InvokeModel` has a "
    "[Messages](anthropic.md) body. Tools that are added or removed during a conversation "
    "(`toolAddition`, `toolRemoval`) are supported. The code is `src/dragoman/dialects/bedrock`.",
    client=lambda: ConverseClient(MODEL),
    base={"messages": [HELLO]},
    samples=SAMPLES,
    required=[
        *(field.encode_name for field in msgspec.structs.fields(wire.Body)),
        *(f"inferenceConfig.{field.encode_name}" for field in msgspec.structs.fields(wire.InferenceConfig)),
        *(
            f"additionalModelRequestFields.{field.encode_name}"
            for field in msgspec.structs.fields(model_fields.ModelFields)
        ),
        *(
            f"messages[].content[]: {kind}"
            for kind in (*blocks._CONTENT, *blocks._READERS)
            if kind not in ("toolAddition", "toolRemoval")
        ),
    ],
)
