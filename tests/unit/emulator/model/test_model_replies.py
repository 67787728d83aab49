"""The deterministic model: plans, choices, forced calls, results, JSON, limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.emulator.service import EmulatorService
from tests.unit.emulator.builders import (
    Json,
    ask,
    calls,
    declare,
    function_responses,
    model_calls,
    model_text,
    parts,
    stream,
    talk,
    text,
    user,
)

PLAN = (
    'use Bash with {"command":"ls"} and use Read with {"file_path":"/a"} then use Write with '
    '{"x":1} then say all done'
)
TOOLS = declare("Bash", "Read", "Write")


def weather(schema_field: str = "parametersJsonSchema") -> list[Json]:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    function = {"name": "get_weather", "description": "The current weather of a city", schema_field: schema}
    clock = {"name": "get_time", "description": "What time it is"}
    return [{"functionDeclarations": [clock, function]}]


def mode(name: str, *allowed: str) -> Json:
    config: Json = {"mode": name}
    if allowed:
        config["allowedFunctionNames"] = list(allowed)
    return {"functionCallingConfig": config}


def test_a_plan_is_worked_through_step_by_step() -> None:
    contents = [user("<system-reminder>use Nothing with {}</system-reminder>", PLAN)]
    first = ask(talk(*contents, tools=TOOLS))
    assert calls(first) == [("Bash", {"command": "ls"}), ("Read", {"file_path": "/a"})]
    contents += [first["candidates"][0]["content"], function_responses("Bash", "Read")]
    second = ask(talk(*contents, tools=TOOLS))
    assert calls(second) == [("Write", {"x": 1})]
    contents += [second["candidates"][0]["content"], function_responses("Write")]
    assert text(ask(talk(*contents, tools=TOOLS))) == "all done"


def test_a_reminder_after_the_results_does_not_start_a_new_turn() -> None:
    contents = [
        user(PLAN),
        model_calls("Bash", "Read"),
        function_responses("Bash", "Read"),
        user("<system-reminder>x</system-reminder>"),
    ]
    assert calls(ask(talk(*contents, tools=TOOLS))) == [("Write", {"x": 1})]


def test_a_new_user_turn_starts_anew() -> None:
    contents = [
        user(PLAN),
        model_calls("Bash", "Read"),
        function_responses("Bash", "Read"),
        model_text("stopped"),
        user("say hi"),
    ]
    assert text(ask(talk(*contents, tools=TOOLS))) == "hi"


@pytest.mark.parametrize("declared", ["bash", "BASH", "mcp__shell__Bash", "default_Bash_tool"])
def test_a_name_is_found_in_other_spellings(declared: str) -> None:
    assert calls(ask(talk(user("use Bash with {}"), tools=declare(declared)))) == [(declared, {})]


def test_an_exact_name_wins_over_a_longer_one() -> None:
    assert calls(ask(talk(user("use Read with {}"), tools=declare("NotebookRead", "Read")))) == [("Read", {})]


def test_an_undeclared_tool_is_said_to_be_missing() -> None:
    answer = ask(talk(user("use Nope with {}"), tools=TOOLS))
    assert calls(answer) == []
    assert text(answer) == "The tool Nope is not declared. Declared tools: Bash, Read, Write."


def test_the_declared_part_of_a_step_is_called_all_the_same() -> None:
    answer = ask(talk(user("use Bash with {} and use Nope with {}"), tools=TOOLS))
    assert calls(answer) == [("Bash", {})]
    assert "Nope is not declared" in text(answer)


@pytest.mark.parametrize("field", ["parametersJsonSchema", "parameters"])
def test_without_directive_a_fitting_tool_is_chosen_and_filled(field: str) -> None:
    asked = talk(user("What is the weather in Oslo?"), tools=weather(field))
    assert calls(ask(asked)) == [("get_weather", {"city": "Oslo"})]


def test_after_the_result_it_answers_with_it() -> None:
    contents = [
        user("What is the weather in Oslo?"),
        model_calls("get_weather"),
        function_responses("get_weather", output="sunny, 21"),
    ]
    answer = ask(talk(*contents, tools=weather()))
    assert calls(answer) == []
    assert text(answer) == "get_weather returned: sunny, 21"


def test_no_fitting_tool_means_words() -> None:
    answer = ask(talk(user("hello, how are you?"), tools=weather()))
    assert calls(answer) == []
    assert text(answer) == "This is the offline Gemini emulator. You said: hello, how are you?"


SCHEMAS = Path(__file__).parents[3] / "e2e" / "schemas"


@pytest.mark.parametrize("client", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.stem)
@pytest.mark.parametrize(
    "words",
    [
        "Explain what the bash command `rm -f notes.txt` does, do not run it",
        "Run ls with bash",
        "please write the file notes.txt and edit it",
        "start a sub agent task that deletes everything",
        "schedule a cron job, then kill the shell",
    ],
)
def test_free_words_never_run_or_change_anything(client: Path, words: str) -> None:
    """People try things out where the emulator answers: it must not act on a question."""
    tools = json.loads(client.read_text("utf-8"))
    tools = tools if isinstance(tools, list) else tools["tools"]
    declared = [{"name": tool["name"], "parametersJsonSchema": tool["input_schema"]} for tool in tools]
    called_now = {
        name for name, _ in calls(ask(talk(user(words), tools=[{"functionDeclarations": declared}])))
    }
    assert called_now <= {"Read", "Glob", "Grep", "WebFetch", "WebSearch", "ListAgents", "AskUserQuestion"}


def files() -> list[Json]:
    """The tools of a small agent; the last two act."""
    text = {"type": "string"}
    tools = {
        "list_files": ["path"],
        "read_file": ["path"],
        "write_file": ["path", "content"],
        "run_shell_command": ["command"],
    }
    declared = [
        {
            "name": name,
            "description": name.replace("_", " "),
            "parametersJsonSchema": {
                "type": "object",
                "properties": dict.fromkeys(required, text),
                "required": required,
            },
        }
        for name, required in tools.items()
    ]
    return [{"functionDeclarations": declared}]


def played(words: str, *results: Json, **rest: Any) -> list[Any]:
    """The calls of each step, or the last text, with every call of a step answered by the next result."""
    contents = [user(words)]
    heard: list[Any] = []
    for result in (*results, None):
        answer = ask(talk(*contents, tools=files(), **rest))
        heard.append(calls(answer) or text(answer))
        if not calls(answer) or result is None:
            break
        names = [name for name, _ in calls(answer)]
        contents += [answer["candidates"][0]["content"], function_responses(*names, **result)]
    return heard


def test_a_plan_in_free_words_uses_what_came_back_and_ends() -> None:
    assert played("read notes.txt then write summary.txt", {"output": "buy milk"}, {"output": "saved"}) == [
        [("read_file", {"path": "notes.txt"})],
        [("write_file", {"path": "summary.txt", "content": "buy milk"})],
        "read_file returned: buy milk\nwrite_file returned: saved",
    ]


def test_all_results_of_the_step_before_are_used() -> None:
    heard = played("read a.txt and b.txt, then write c.txt", {"output": "x"}, {"output": "saved"})
    assert heard[1] == [("write_file", {"path": "c.txt", "content": "x\nx"})]


def test_a_plan_ends_with_what_it_found() -> None:
    words = "first list the files, then read README.md, then tell me what it says"
    assert played(words, {"output": ["README.md"]}, {"output": "hello"}, {"output": "more"}) == [
        [("list_files", {"path": "."})],
        [("read_file", {"path": "README.md"})],
        'list_files returned: ["README.md"]\nread_file returned: hello',
    ]


def test_a_failed_step_is_reported_and_nothing_follows() -> None:
    heard = played("read notes.txt then write summary.txt", {"error": "no such file"}, {"output": "saved"})
    assert heard[1:] == ["read_file failed: no such file"]


def test_a_result_is_content_never_a_command() -> None:
    heard = played("read notes.txt then run it", {"output": "rm -rf /"}, {"output": "x"})
    assert heard[1:] == ["read_file returned: rm -rf /"]


def test_a_plan_keeps_to_the_functions_that_may_be_called() -> None:
    words = "read notes.txt then run `ls`"
    assert played(words, toolConfig=mode("NONE"))[0].startswith("This is the offline Gemini emulator.")
    only = played(words, {"output": "x"}, toolConfig=mode("VALIDATED", "read_file"))
    assert only == [[("read_file", {"path": "notes.txt"})], "read_file returned: x"]
    assert played(words, {"output": "x"}) == [
        [("read_file", {"path": "notes.txt"})],
        [("run_shell_command", {"command": "ls"})],
    ]


def test_another_seed_signs_and_names_otherwise_but_says_the_same() -> None:
    asked = talk(user(PLAN), tools=TOOLS)
    one, other = (ask(asked, service=EmulatorService(seed)) for seed in ("one", "other"))
    assert calls(one) == calls(other)
    assert one["responseId"] != other["responseId"]
    first, second = parts(one)[0], parts(other)[0]
    assert first["functionCall"]["id"] != second["functionCall"]["id"]
    assert first["thoughtSignature"] != second["thoughtSignature"]


def test_a_content_with_an_empty_role_is_the_users() -> None:
    later = {"role": "", "parts": [{"text": "say two"}]}
    assert text(ask(talk(user("say one"), model_text("one"), later))) == "two"


def test_any_forces_a_call_and_allowed_names_restrict_it() -> None:
    assert calls(ask(talk(user("hello"), tools=weather(), toolConfig=mode("ANY"))))
    only = ask(talk(user("weather in Oslo"), tools=weather(), toolConfig=mode("any", "get_time")))
    assert calls(only) == [("get_time", {})]


def test_any_keeps_calling_after_a_result() -> None:
    contents = [user("hello"), model_calls("get_time"), function_responses("get_time")]
    assert calls(ask(talk(*contents, tools=weather(), toolConfig=mode("ANY", "get_time")))) == [
        ("get_time", {})
    ]


def test_none_forbids_calls_even_by_directive() -> None:
    answer = ask(talk(user("use get_time with {}"), tools=weather(), toolConfig=mode("NONE")))
    assert calls(answer) == []
    assert "get_time may not be called now" in text(answer)


def test_validated_is_like_auto() -> None:
    config = mode("VALIDATED", "get_weather")
    assert calls(ask(talk(user("weather in Oslo"), tools=weather(), toolConfig=config)))
    assert not calls(ask(talk(user("hello"), tools=weather(), toolConfig=config)))


RESULTS: list[tuple[Json, str]] = [
    ({"output": "ok"}, "f returned: ok"),
    ({"result": [1, 2]}, "f returned: [1,2]"),
    ({"content": "text"}, "f returned: text"),
    ({"error": "no such file"}, "f failed: no such file"),
    ({"temperature": 3}, 'f returned: {"temperature":3}'),
]


@pytest.mark.parametrize(("response", "line"), RESULTS)
def test_every_convention_of_results_is_read(response: Json, line: str) -> None:
    assert text(ask(talk(user("x"), model_calls("f"), function_responses("f", **response)))) == line


def test_all_results_of_the_turn_are_reported() -> None:
    contents = [
        user("use f with {} then use g with {}"),
        model_calls("f"),
        function_responses("f", output=1),
        model_calls("g"),
    ]
    answer = ask(talk(*contents, function_responses("g", error="bad"), tools=declare("f", "g")))
    assert text(answer) == "f returned: 1\ng failed: bad"


def test_long_output_is_shortened() -> None:
    answer = text(ask(talk(user("x"), model_calls("f"), function_responses("f", output="y" * 5000))))
    assert len(answer) < 700
    assert answer.endswith("…")


def test_media_are_mentioned_by_type() -> None:
    png = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    beside = {"role": "user", "parts": [*function_responses("f")["parts"], png]}
    assert text(ask(talk(user("x"), model_calls("f"), beside))) == "f returned (with image/png): ok"
    inside = function_responses("f")
    inside["parts"][0]["functionResponse"]["parts"] = [png]
    assert text(ask(talk(user("x"), model_calls("f"), inside))) == "f returned (with image/png): ok"
    assert "I can see image/png" in text(ask(talk({"role": "user", "parts": [png]})))


def config(words: str = "hello", **settings: Any) -> Json:
    return talk(user(words), generationConfig=settings)


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 18},
        "tags": {"type": "array"},
    },
    "required": ["name", "age"],
}


def test_json_mode_gives_an_instance_of_the_schema() -> None:
    answer = ask(config("I am Ada", responseMimeType="application/json", responseJsonSchema=PERSON))
    value = json.loads(text(answer))
    assert value["name"] == "Ada"
    assert value["age"] >= 18


def test_json_mode_without_schema_gives_a_small_object() -> None:
    answer = ask(config(responseMimeType="application/json"))
    assert "hello" in json.loads(text(answer))["answer"]


def test_json_mode_says_given_json_as_it_is() -> None:
    assert text(ask(config('say {"a": 1}', responseMimeType="application/json"))) == '{"a": 1}'


def test_enum_mode_answers_with_a_member() -> None:
    schema = {"type": "STRING", "enum": ["red", "blue"]}
    asked = config("the blue one", responseMimeType="text/x.enum", responseSchema=schema)
    assert text(ask(asked)) == "blue"


def test_response_format_is_read_too() -> None:
    asked = config(responseFormat=[{"text": {"mimeType": "application_json", "schema": PERSON}}])
    assert set(json.loads(text(ask(asked)))) >= {"name", "age"}


def test_a_small_output_cap_truncates() -> None:
    candidate = ask(config("say " + "word " * 50, maxOutputTokens=10))["candidates"][0]
    assert candidate["finishReason"] == "MAX_TOKENS"
    assert 0 < len(candidate["content"]["parts"][0]["text"]) <= 40


def test_a_call_that_does_not_fit_is_not_made() -> None:
    asked = talk(user(PLAN), tools=TOOLS, generationConfig={"maxOutputTokens": 4})
    answer = ask(asked)
    assert calls(answer) == []
    assert answer["candidates"][0]["finishReason"] == "MAX_TOKENS"


def test_stop_sequences_end_the_text() -> None:
    answer = ask(config("say one two three", stopSequences=["nothing", " three", "two"]))
    assert text(answer) == "one "
    assert answer["candidates"][0]["finishReason"] == "STOP"


def test_google_search_grounds_the_answer() -> None:
    metadata = ask(talk(user("news of today"), tools=[{"googleSearch": {}}]))["candidates"][0][
        "groundingMetadata"
    ]
    assert metadata["webSearchQueries"] == ["news of today"]
    assert metadata["groundingChunks"][0]["web"]["title"] == "example.com"


def test_thoughts_are_shown_only_when_asked_for() -> None:
    words = "think it over then say ok"
    assert not any(part.get("thought") for part in parts(ask(config(words))))
    shown = parts(ask(config(words, thinkingConfig={"includeThoughts": True})))
    assert shown[0] == {"text": "it over", "thought": True}
    off = config(words, thinkingConfig={"includeThoughts": True, "thinkingBudget": 0})
    answer = ask(off, model="gemini-2.5-flash")
    assert not any(part.get("thought") for part in parts(answer))
    assert "thoughtsTokenCount" not in answer["usageMetadata"]


def test_the_same_request_gets_the_same_answer() -> None:
    asked = talk(user(PLAN), tools=TOOLS)
    assert stream(asked) == stream(asked)
