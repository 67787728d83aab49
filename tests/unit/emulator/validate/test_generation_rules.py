"""Stage 3, first half: what each model can be asked for."""

from __future__ import annotations

import pytest

from tests.unit.emulator.builders import OLD_MODEL, VERTEX, Json, ask, declare, error, hello, message, talk

BUILT_IN = [{"googleSearch": {}}, *declare("f")]
THINKING_ONLY = "Budget 0 is invalid. This model only works in thinking mode."


def thinking(**settings: object) -> Json:
    return hello(generationConfig={"thinkingConfig": settings})


def json_mode(**rest: object) -> Json:
    return hello(generationConfig={"responseMimeType": "application/json"}, tools=declare("f"), **rest)


REFUSED = {
    "minimal on 3.8": (
        "gemini-3.8-flash",
        thinking(thinkingLevel="minimal"),
        "Thinking level MINIMAL is not supported for this model.",
    ),
    "minimal on 3.7": (
        "gemini-3.7-flash",
        thinking(thinkingLevel="MINIMAL"),
        "Thinking level MINIMAL is not supported for this model.",
    ),
    "minimal on 4": (
        "gemini-4-argon",
        thinking(thinkingLevel="MINIMAL"),
        "Thinking level MINIMAL is not supported for this model.",
    ),
    "minimal on 3.1-pro": (
        "gemini-3.1-pro-preview",
        thinking(thinkingLevel="MINIMAL"),
        "Thinking level MINIMAL is not supported for this model.",
    ),
    "level on 2.5": (
        "gemini-2.5-flash",
        thinking(thinkingLevel="low"),
        "Thinking level is not supported for this model.",
    ),
    "level and budget": (
        "gemini-3.5-flash",
        thinking(thinkingLevel="low", thinkingBudget=1),
        "You can only set only one of thinking budget and thinking level.",
    ),
    "budget out of range": (
        "gemini-2.5-pro",
        thinking(thinkingBudget=64000),
        "The thinking budget 64000 is invalid. Please choose a value between 128 and 32768.",
    ),
    "budget 0 on 2.5-pro": ("gemini-2.5-pro", thinking(thinkingBudget=0), THINKING_ONLY),
    "budget 0 on 3.1-pro": ("gemini-3.1-pro-preview", thinking(thinkingBudget=0), THINKING_ONLY),
    "budget below the range": (
        "gemini-2.5-flash-lite",
        thinking(thinkingBudget=100),
        "The thinking budget 100 is invalid. Please choose a value between 512 and 24576.",
    ),
    "budget 0 on 3.5-flash-lite": (
        "gemini-3.5-flash-lite",
        thinking(thinkingBudget=0),
        "Request contains an invalid argument.",
    ),
    "penalty on 3.8": (
        "gemini-3.8-flash",
        hello(generationConfig={"presencePenalty": 0.1}),
        "Penalty is not enabled for this model",
    ),
    "penalty on 2.5": (
        "gemini-2.5-flash",
        hello(generationConfig={"frequencyPenalty": 0.1}),
        "Penalty is not enabled for models/gemini-2.5-flash",
    ),
    "two candidates on 3.8": (
        "gemini-3.8-flash",
        hello(generationConfig={"candidateCount": 2}),
        "Multiple candidates is not enabled for this model",
    ),
    "logprobs": (
        "gemini-2.5-flash",
        hello(generationConfig={"responseLogprobs": True}),
        "Logprobs is not enabled for models/gemini-2.5-flash",
    ),
    "functions and json on 2.5": (
        "gemini-2.5-flash",
        json_mode(),
        "Function calling with a response mime type: 'application/json' is unsupported",
    ),
    "mode ANY and json": (
        "gemini-3.8-flash",
        json_mode(toolConfig={"functionCallingConfig": {"mode": "ANY"}}),
        "Function calling mode ANY with a response mime type: 'application/json' is unsupported",
    ),
    "schema without json": (
        "gemini-3.8-flash",
        hello(generationConfig={"responseJsonSchema": {"type": "object"}}),
        "Response_schema with a response mime type 'text/plain' is unsupported",
    ),
    "built-in tools on 2.5": (
        "gemini-2.5-flash",
        hello(tools=BUILT_IN),
        "Tool use with function calling is unsupported",
    ),
    "built-in tools without the flag": (
        "gemini-3.8-flash",
        hello(tools=BUILT_IN),
        "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools "
        "with Function calling.",
    ),
    "mode AUTO beside built-in tools": (
        "gemini-3.8-flash",
        hello(
            tools=BUILT_IN,
            toolConfig={
                "includeServerSideToolInvocations": True,
                "functionCallingConfig": {"mode": "AUTO"},
            },
        ),
        "Request contains an invalid argument.",
    ),
    "built-in tools and json on 2.5": (
        "gemini-2.5-flash",
        hello(tools=[{"urlContext": {}}], generationConfig={"responseMimeType": "application/json"}),
        "Tool use with a response mime type: 'application/json' is unsupported",
    ),
    "duplicate functions": (
        "gemini-3.8-flash",
        hello(tools=declare("f", "f")),
        "Duplicate function declaration found: f",
    ),
    "config without functions": (
        "gemini-3.8-flash",
        hello(tools=[{"googleSearch": {}}], toolConfig={"functionCallingConfig": {"mode": "AUTO"}}),
        "Function calling config is set without function_declarations.",
    ),
    "unsupported mime type": (
        "gemini-3.8-flash",
        talk({"role": "user", "parts": [{"inlineData": {"mimeType": "image/gif", "data": "aaaa"}}]}),
        "Unsupported MIME type: image/gif",
    ),
    "empty image": (
        "gemini-3.8-flash",
        talk({"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": ""}}]}),
        "Unable to process input image. Please retry or report in "
        "https://developers.generativeai.google/guide/troubleshooting",
    ),
    "prompt over the window": (
        "gemma-4-31b-it",
        talk({"role": "user", "parts": [{"text": "x" * 4 * 262_145}]}),
        "The input token count (262145) exceeds the maximum number of tokens allowed (262144).",
    ),
}


@pytest.mark.parametrize(("model", "body", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(model: str, body: Json, words: str) -> None:
    assert message(body, model=model) == words


ACCEPTED = {
    "minimal on 3.6": ("gemini-3.6-flash", thinking(thinkingLevel="minimal")),
    "level with thoughts": ("gemini-3.8-flash", thinking(thinkingLevel="HIGH", includeThoughts=True)),
    "unspecified level and budget": (
        "gemini-3.8-flash",
        thinking(thinkingLevel="THINKING_LEVEL_UNSPECIFIED", thinkingBudget=5),
    ),
    "budget 0 on 3.7": ("gemini-3.7-flash", thinking(thinkingBudget=0)),
    "budget 0 on 2.5-flash": ("gemini-2.5-flash", thinking(thinkingBudget=0)),
    "dynamic budget": ("gemini-2.5-flash-lite", thinking(thinkingBudget=-1)),
    "two candidates on 2.5": ("gemini-2.5-flash", hello(generationConfig={"candidateCount": 2})),
    "functions and json on 3.8": ("gemini-3.8-flash", json_mode()),
    "built-in tools with the flag": (
        "gemini-3.8-flash",
        hello(tools=BUILT_IN, toolConfig={"includeServerSideToolInvocations": True}),
    ),
    "built-in tools and json on 3.8": (
        "gemini-3.8-flash",
        hello(tools=[{"urlContext": {}}], generationConfig={"responseMimeType": "application/json"}),
    ),
}


@pytest.mark.parametrize(("model", "body"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(model: str, body: Json) -> None:
    ask(body, model=model)


def test_vertex_names_an_unsupported_level_its_own_way() -> None:
    words = message(thinking(thinkingLevel="MINIMAL"), path=VERTEX)
    assert words == "Thinking level is unsupported: THINKING_LEVEL_MINIMAL"


def test_vertex_allows_penalties_on_old_models_and_no_mixed_tools() -> None:
    ask(hello(generationConfig={"presencePenalty": 1}), model=OLD_MODEL, path=VERTEX)
    assert "all search tools" in message(hello(tools=BUILT_IN), path=VERTEX)


def test_vertex_lets_searches_stand_together_and_nothing_else() -> None:
    search: list[Json] = [{"googleSearch": {}}, {"urlContext": {}}]
    code: Json = {"codeExecution": {}}
    ask(hello(tools=search), path=VERTEX)
    ask(hello(tools=[code]), path=VERTEX)
    assert "all search tools" in message(hello(tools=[*search, code]), path=VERTEX)
    ask(hello(tools=[*search, code]))


def test_the_catch_all_explains_itself_in_a_debug_detail() -> None:
    twice = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}] * 2
    found = error(hello(safetySettings=twice))
    assert found["message"] == "Request contains an invalid argument."
    assert found["details"][0]["detail"] == "emulator: more than one safety setting for a category"


def test_the_first_stage_that_fails_answers_alone() -> None:
    body = hello(foo=1, tools=declare("f", "f"), generationConfig={"temperature": 9})
    assert "foo" in message(body)
    del body["foo"]
    assert "temperature" in message(body)
    del body["generationConfig"]
    assert "Duplicate" in message(body)
