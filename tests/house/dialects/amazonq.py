"""Samples of Amazon Q and Kiro; the page about them says more than a table can, and has this one at its end."""

from __future__ import annotations

import msgspec

from dragoman.dialects import CLIENTS
from dragoman.dialects.amazonq import messages, wire
from tests.house.dialects.anthropic import PNG, SCHEMA
from tests.house.dialects.field_table import MODEL, Json, Page, Sample

TOOLS: list[Json] = [
    {"toolSpecification": {"name": "weather", "description": "of a city", "inputSchema": {"json": SCHEMA}}}
]
CALL: Json = {"toolUseId": "t1", "name": "weather", "input": {"city": "Oslo"}}


def asked(**fields: object) -> Json:
    return {"conversationState": {"currentMessage": {"userInputMessage": fields}}}


def context(**fields: object) -> Json:
    return asked(userInputMessageContext=fields)


def history(**answer: object) -> Json:
    said = [
        {"userInputMessage": {"content": "Hello"}},
        {"assistantResponseMessage": {"content": "Hi", **answer}},
    ]
    return {"conversationState": {"history": said}}


def done(**fields: object) -> Json:
    result = {"toolUseId": "t1", "content": [{"text": "rain"}], "status": "success", **fields}
    current = {
        "userInputMessage": {
            "content": "",
            "modelId": MODEL,
            "userInputMessageContext": {"toolResults": [result], "tools": TOOLS},
        }
    }
    return {
        "conversationState": {
            "history": history(toolUses=[CALL])["conversationState"]["history"],
            "currentMessage": current,
        }
    }


def extra(**fields: object) -> Json:
    return {"additionalModelRequestFields": fields}


SAMPLES = [
    Sample("conversationState.currentMessage", asked(content="Good day")),
    Sample("conversationState.conversationId", {"conversationState": {"conversationId": "c1"}}),
    Sample("conversationState.history", history()),
    Sample("conversationState.chatTriggerType", {"conversationState": {"chatTriggerType": "MANUAL"}}),
    Sample("userInputMessage.modelId", asked(modelId="claude-sonnet-4.5")),
    Sample("userInputMessage.origin", asked(origin="CLI")),
    Sample("userInputMessage.userIntent", asked(userIntent="EXPLAIN_CODE_SELECTION")),
    Sample("userInputMessage.images", asked(images=[{"format": "png", "source": {"bytes": PNG}}])),
    Sample("userInputMessage.images: gif", asked(images=[{"format": "gif", "source": {"bytes": PNG}}])),
    Sample(
        "userInputMessage.documents",
        asked(documents=[{"format": "txt", "name": "a", "source": {"bytes": "d29yZHM="}}]),
    ),
    Sample(
        "userInputMessage.documents: docx",
        asked(documents=[{"format": "docx", "name": "a", "source": {"bytes": "d29yZHM="}}]),
    ),
    Sample("userInputMessageContext.tools", context(tools=TOOLS)),
    Sample("userInputMessageContext.tools: cachePoint", context(tools=[{"cachePoint": {"type": "default"}}])),
    Sample("userInputMessageContext.toolResults", done()),
    Sample("userInputMessageContext.toolResults: an error", done(status="error")),
    Sample("userInputMessageContext.envState", context(envState={"operatingSystem": "linux"})),
    Sample(
        "userInputMessageContext.userSettings", context(userSettings={"hasConsentedToCrossRegionCalls": True})
    ),
    Sample("assistantResponseMessage.toolUses", done()),
    Sample(
        "assistantResponseMessage.reasoningContent",
        history(reasoningContent={"reasoningText": {"text": "Hm.", "signature": "of-claude"}}),
    ),
    *(
        Sample(f"assistantResponseMessage.{name}", history(**{name: [{"a": "b"}]}))
        for name in messages._BESIDE
    ),
    Sample("systemPrompt", {"systemPrompt": "Be brief."}),
    Sample(
        "additionalModelRequestFields.thinking", extra(thinking={"type": "enabled", "budget_tokens": 2000})
    ),
    Sample("additionalModelRequestFields.output_config", extra(output_config={"effort": "low"})),
    Sample("additionalModelRequestFields.reasoning", extra(reasoning={"effort": "low"})),
    Sample("additionalModelRequestFields.effort", extra(effort="low")),
    Sample("additionalModelRequestFields.max_tokens", extra(max_tokens=500)),
    Sample("additionalModelRequestFields.temperature", extra(temperature=0.5)),
    Sample("additionalModelRequestFields.top_p", extra(top_p=0.5)),
    Sample("additionalModelRequestFields.top_k", extra(top_k=5)),
    Sample("additionalModelRequestFields.stop_sequences", extra(stop_sequences=["END"])),
    Sample("additionalModelRequestFields.hologram", extra(hologram=1)),
    Sample("profileArn", {"profileArn": "arn:aws:x"}),
    Sample("dryRun", {"dryRun": True}),
]

PAGE = Page(
    file="amazonq.md",
    title="Amazon Q and Kiro",
    intro="",
    client=lambda: CLIENTS["amazonq"],
    base={
        "conversationState": {"currentMessage": {"userInputMessage": {"content": "Hello", "modelId": MODEL}}}
    },
    samples=SAMPLES,
    required=[
        *(field.encode_name for field in msgspec.structs.fields(wire.Body)),
        *(
            f"additionalModelRequestFields.{field.encode_name}"
            for field in msgspec.structs.fields(wire.ModelFields)
        ),
        *(
            f"conversationState.{field.encode_name}"
            for field in msgspec.structs.fields(wire.ConversationState)
        ),
    ],
)
