"""Good requests to start from: every feature, both front doors, all methods and framings."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from dragoman.emulator.service import HttpRequest
from tests.unit.emulator.builders import (
    PLAIN_PATHS,
    STUDIO,
    VERTEX,
    declare,
    function_responses,
    model_calls,
    model_text,
    talk,
    user,
)

Json = dict[str, Any]

_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_IMAGE = {"inlineData": {"mimeType": "image/png", "data": _PNG}}
_SCHEMA: Json = {
    "type": "OBJECT",
    "description": "where to look",
    "required": ["path", "options"],
    "propertyOrdering": ["path", "options"],
    "properties": {
        "path": {"type": "STRING", "minLength": "1", "maxLength": 400, "pattern": "^/", "nullable": True},
        "kind": {"type": "string", "format": "enum", "enum": ["file", "folder"], "default": "file"},
        "depth": {"type": "INTEGER", "minimum": 1, "maximum": 9, "format": "int32", "example": 3},
        "since": {"type": "STRING", "format": "date-time"},
        "options": {
            "type": "OBJECT",
            "properties": {"names": {"type": "ARRAY", "minItems": 1, "items": {"type": "STRING"}}},
        },
        "limit": {"anyOf": [{"type": "NUMBER"}, {"type": "BOOLEAN"}]},
    },
}
_JSON_SCHEMA: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
    "properties": {
        "root": {"$ref": "#/$defs/node"},
        "count": {"type": ["integer", "null"], "exclusiveMinimum": 0, "multipleOf": 5},
        "mode": {"oneOf": [{"const": "a"}, {"enum": ["b", 3, None]}]},
        "list": {"type": "array", "prefixItems": [{"type": "string"}], "minItems": 1, "maxItems": 3},
        "mail": {"allOf": [{"type": "string", "format": "email"}, {"minLength": 3}]},
    },
    "required": ["root", "count", "mode", "list", "mail"],
    "additionalProperties": False,
}
_CONFIG: Json = {
    "temperature": 0.5,
    "topP": 0.9,
    "topK": 40,
    "seed": 7,
    "maxOutputTokens": "64",
    "stopSequences": ["END"],
    "candidateCount": 1,
    "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "low"},
}
_SAFETY = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
_FORCED = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["find"]}}

#: Taken by both front doors.
BODIES: dict[str, Json] = {
    "words": talk(user("Say hello to Ada, then say goodbye")),
    "settings": talk(
        user("hello"),
        generationConfig=_CONFIG,
        systemInstruction={"parts": [{"text": "be brief"}]},
        safetySettings=_SAFETY,
        labels={"team": "a"},
    ),
    "snake case": {
        "contents": {"role": "user", "parts": {"text": "x"}},
        "system_instruction": {"parts": [{"text": "y"}]},
        "generation_config": {"max_output_tokens": 9, "stop_sequences": "z"},
    },
    "picture": talk({"role": "user", "parts": [{"text": "what is it"}, _IMAGE]}),
    "tools": talk(
        user('use find with {"path": "/tmp", "options": {"names": ["a"]}} then say done'),
        tools=declare("find", "stat", parameters=_SCHEMA),
        toolConfig={"functionCallingConfig": {"mode": "auto"}},
    ),
    "forced": talk(user("anything"), tools=declare("find", "other", parameters=_SCHEMA), toolConfig=_FORCED),
    "json schema": talk(user("anything"), tools=declare("find", schema=_JSON_SCHEMA), toolConfig=_FORCED),
    "answer in json": talk(
        user("make one"), generationConfig={"responseMimeType": "application/json", "responseSchema": _SCHEMA}
    ),
    "answer in json by json schema": talk(
        user("make one"),
        generationConfig={"responseMimeType": "application/json", "responseJsonSchema": _JSON_SCHEMA},
    ),
    "parallel calls": talk(
        user("read both"),
        model_calls("find", "stat", ids=True),
        function_responses("stat", "find", ids=("id-1", "id-0"), output=["x", {"y": None}]),
        tools=declare("find", "stat", parameters=_SCHEMA),
    ),
    "long history": talk(
        user("a"),
        model_text("b"),
        user("c"),
        model_calls("find"),
        function_responses("find", output="1"),
        model_calls("find"),
        function_responses("find", error="2"),
        model_text("d"),
        user("e"),
        tools=declare("find", schema=_JSON_SCHEMA),
    ),
    "media in a response": talk(
        user("look"),
        model_calls("find"),
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "name": "find",
                        "response": {"image": {"$ref": "it.png"}},
                        "parts": [{"inlineData": {**_IMAGE["inlineData"], "displayName": "it.png"}}],
                    }
                }
            ],
        },
        tools=declare("find", parameters=_SCHEMA),
    ),
    "search": talk(user("weather in Paris"), tools=[{"googleSearch": {}}]),
}

_ONLY_STUDIO: dict[str, Json] = {
    "mixed tools": talk(
        user("hello"),
        tools=[{"googleSearch": {}, **declare("find", parameters=_SCHEMA)[0]}],
        toolConfig={"includeServerSideToolInvocations": True},
    ),
    "studio fields": talk(user("x"), serviceTier="flex", store=False, model="models/x"),
}

_MODELS = ("gemini-3.8-flash", "gemini-3-flash-preview", "gemini-4-argon")
_METHODS = (("generateContent", ""), ("streamGenerateContent", "sse"), ("streamGenerateContent", ""))


def _ask(path: str, model: str, method: str, alt: str, body: Json) -> HttpRequest:
    return HttpRequest(
        method="POST", path=path.format(model, method), alt=alt, body=json.dumps(body).encode()
    )


_COUNTED = {field: BODIES["tools"][field] for field in ("contents", "tools")}


def _questions() -> list[HttpRequest]:
    found = [
        _ask(PLAIN_PATHS[number % len(PLAIN_PATHS)], _MODELS[number % len(_MODELS)], method, alt, body)
        for number, body in enumerate(BODIES.values())
        for method, alt in _METHODS
    ]
    found += [
        _ask(STUDIO, "gemini-3.8-flash", *_METHODS[number % 3], body)
        for number, body in enumerate(_ONLY_STUDIO.values())
    ]
    found += [
        _ask(VERTEX, "gemini-3.8-flash", "countTokens", "", _COUNTED),
        _ask(STUDIO, "gemini-3.8-flash", "countTokens", "", {"contents": BODIES["picture"]["contents"]}),
        _ask(
            STUDIO,
            "gemini-3.8-flash",
            "countTokens",
            "",
            {"generateContentRequest": {"model": "models/gemini-3.8-flash", **BODIES["long history"]}},
        ),
    ]
    return found


QUESTIONS = _questions()


def with_body(question: HttpRequest, body: bytes) -> HttpRequest:
    return msgspec.structs.replace(question, body=body)
