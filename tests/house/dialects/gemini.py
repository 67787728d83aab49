"""Samples of Gemini's own API, as its clients speak it to the gateway."""

from __future__ import annotations

from dragoman.dialects.gemini.client import GeminiClient, contents, decode
from tests.house.dialects.anthropic import PNG, SCHEMA
from tests.house.dialects.field_table import MODEL, Json, Page, Sample

HELLO: Json = {"role": "user", "parts": [{"text": "Hello"}]}
FUNCTION: Json = {"name": "weather", "description": "of a city", "parametersJsonSchema": SCHEMA}
TOOLS: list[Json] = [{"functionDeclarations": [FUNCTION]}]
CALL: Json = {"functionCall": {"name": "weather", "args": {"city": "Oslo"}}}
DONE: Json = {"functionResponse": {"name": "weather", "response": {"output": "rain"}}}


def choosing(mode: str, **more: object) -> Sample:
    config = {"functionCallingConfig": {"mode": mode, **more}}
    return Sample(f"toolConfig: {mode}", {"toolConfig": config}, {"tools": TOOLS})


def part(one: Json) -> Json:
    return {"contents": [{"role": "user", "parts": [one]}]}


def generation(**fields: object) -> Json:
    return {"generationConfig": fields}


def after(*more: Json) -> Json:
    return {"contents": [HELLO, *more]}


CALLED = after({"role": "model", "parts": [CALL]}, {"role": "user", "parts": [DONE]})
SAMPLES = [
    Sample("model", {"model": "models/gemini-3.5-flash"}),
    Sample("contents", {"contents": [HELLO, {"role": "model", "parts": [{"text": "Hi"}]}, HELLO]}),
    Sample(
        "contents[].role: function",
        after({"role": "model", "parts": [CALL]}, {"role": "function", "parts": [DONE]}),
    ),
    Sample(
        "contents[].role: system", {"contents": [{"role": "system", "parts": [{"text": "Be brief."}]}, HELLO]}
    ),
    Sample("contents[].parts[]: text", part({"text": "Good day"})),
    Sample(
        "contents[].parts[]: text with thought",
        {
            "contents": [
                HELLO,
                {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": "Hi"}]},
                HELLO,
            ]
        },
    ),
    Sample("contents[].parts[]: functionCall", CALLED),
    Sample(
        "contents[].parts[]: functionCall with its signature",
        after(
            {"role": "model", "parts": [{**CALL, "thoughtSignature": "c2ln"}]},
            {"role": "user", "parts": [DONE]},
        ),
    ),
    Sample("contents[].parts[]: functionResponse", CALLED),
    Sample("contents[].parts[]: functionResponse without its call", after({"role": "user", "parts": [DONE]})),
    Sample("contents[].parts[]: inlineData", part({"inlineData": {"mimeType": "image/png", "data": PNG}})),
    Sample(
        "contents[].parts[]: fileData",
        part({"fileData": {"fileUri": "https://example.com/a.pdf", "mimeType": "application/pdf"}}),
    ),
    Sample(
        "contents[].parts[]: executableCode",
        {
            "contents": [
                HELLO,
                {"role": "model", "parts": [{"executableCode": {"language": "PYTHON", "code": "1"}}]},
                HELLO,
            ]
        },
    ),
    Sample(
        "contents[].parts[]: videoMetadata",
        part({"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}, "videoMetadata": {"fps": 1}}),
    ),
    Sample("systemInstruction", {"systemInstruction": {"parts": [{"text": "Be brief."}]}}),
    Sample("system_instruction", {"system_instruction": {"parts": [{"text": "Be brief."}]}}),
    Sample("tools: functionDeclarations", {"tools": TOOLS}),
    Sample(
        "tools: functionDeclarations with parameters",
        {
            "tools": [
                {
                    "functionDeclarations": [
                        {
                            "name": "weather",
                            "parameters": {
                                "type": "OBJECT",
                                "properties": {"city": {"type": "STRING", "nullable": True}},
                            },
                        }
                    ]
                }
            ]
        },
    ),
    Sample("tools: googleSearch", {"tools": [{"googleSearch": {}}]}),
    Sample("tools: urlContext", {"tools": [{"urlContext": {}}]}),
    Sample("tools: codeExecution", {"tools": [{"codeExecution": {}}]}),
    choosing("ANY", allowedFunctionNames=["weather"]),
    choosing("NONE"),
    choosing("VALIDATED"),
    Sample("generationConfig.maxOutputTokens", generation(maxOutputTokens=500)),
    Sample("generationConfig.temperature", generation(temperature=0.5)),
    Sample("generationConfig.topP", generation(topP=0.5)),
    Sample("generationConfig.topK", generation(topK=5)),
    Sample("generationConfig.seed", generation(seed=7)),
    Sample("generationConfig.presencePenalty", generation(presencePenalty=0.5)),
    Sample("generationConfig.frequencyPenalty", generation(frequencyPenalty=0.5)),
    Sample("generationConfig.stopSequences", generation(stopSequences=["END"])),
    Sample(
        "generationConfig.thinkingConfig.thinkingLevel", generation(thinkingConfig={"thinkingLevel": "LOW"})
    ),
    Sample(
        "generationConfig.thinkingConfig.thinkingBudget", generation(thinkingConfig={"thinkingBudget": 2000})
    ),
    Sample(
        "generationConfig.responseJsonSchema",
        generation(responseMimeType="application/json", responseJsonSchema=SCHEMA),
    ),
    Sample("generationConfig.candidateCount", generation(candidateCount=1)),
    Sample(
        "safetySettings",
        {"safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]},
    ),
    Sample("cachedContent", {"cachedContent": "cachedContents/x"}),
    Sample("labels", {"labels": {"a": "b"}}),
    Sample("a field nobody knows", {"hologram": True}),
]

PAGE = Page(
    file="gemini.md",
    title="Gemini",
    intro="`POST /v1beta/models/MODEL:generateContent` and related paths, with the same repairs as for other clients "
    "([Gemini](../gemini.md)). Unknown fields are sent unchanged. The code is "
    "`src/dragoman/dialects/gemini/client`.",
    client=lambda: GeminiClient(MODEL),
    base={"contents": [HELLO]},
    samples=SAMPLES,
    required=[
        *decode._READ,
        *(f"generationConfig.{name}" for name in decode._SAMPLING),
        *(f"contents[].parts[]: {kind}" for kind in contents._READERS),
    ],
)
