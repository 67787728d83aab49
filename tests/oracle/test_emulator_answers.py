"""Google's own SDK parses every form of answer the emulator writes, on both surfaces, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import types

from dragoman.emulator.service import EmulatorService, HttpRequest

SERVICE = EmulatorService("oracle")
MODERN, OLD, LONG = "gemini-3.8-flash", "gemini-2.5-flash", "gemini-4-argon"
STUDIO, VERTEX = "studio", "vertex"
Parts = list[types.Part]


def answer(request: httpx2.Request) -> httpx2.Response:
    """The emulator as the SDK's network."""
    found = SERVICE.handle(
        HttpRequest(
            method=request.method,
            path=request.url.path,
            alt=request.url.params.get("alt", ""),
            key=request.headers.get("x-goog-api-key", ""),
            body=request.read(),
        )
    )
    return httpx2.Response(found.status, headers={"content-type": found.content_type}, content=found.body)


@cache
def client(surface: str) -> genai.Client:
    """One for all tests: a client that nobody holds closes itself."""
    options = types.HttpOptions(
        base_url="http://emulator.invalid", client_args={"transport": httpx2.MockTransport(answer)}
    )
    return genai.Client(vertexai=surface == VERTEX, api_key="any", http_options=options)


def function(name: str) -> types.FunctionDeclaration:
    return types.FunctionDeclaration(name=name, description=name, parameters_json_schema={"type": "object"})


FUNCTIONS = types.Tool(function_declarations=[function("f"), function("g")])
BUILT_IN = [
    types.Tool(google_search=types.GoogleSearch()),
    types.Tool(url_context=types.UrlContext()),
    types.Tool(code_execution=types.ToolCodeExecution()),
]
ARGS = '{"path": "/tmp/a file with a long name that comes in pieces.txt", "n": 5, "deep": {"l": [true, null, "x"]}}'
SHOWN = types.ToolConfig(include_server_side_tool_invocations=True)
PIECES = types.ToolConfig(
    function_calling_config=types.FunctionCallingConfig(stream_function_call_arguments=True)
)
RATED = [
    types.SafetySetting(
        category=types.HarmCategory.HARM_CATEGORY_HARASSMENT, threshold=types.HarmBlockThreshold.BLOCK_NONE
    )
]

#: surface, model, words, settings, and what the answer must have brought.
CASES: dict[str, tuple[str, str, str, dict[str, Any], str]] = {
    "text": (STUDIO, MODERN, "say " + "word " * 40, {}, "text"),
    "text on Vertex": (VERTEX, MODERN, "say " + "word " * 40, {}, "text"),
    "old text": (STUDIO, OLD, "say " + "word " * 40, {}, "text"),
    "thoughts": (
        STUDIO,
        MODERN,
        "think hard then say x",
        {"thinking_config": types.ThinkingConfig(include_thoughts=True)},
        "thought",
    ),
    "calls": (
        STUDIO,
        MODERN,
        f"use f with {ARGS} and use g with {{}}",
        {"tools": [FUNCTIONS]},
        "function_call",
    ),
    "old calls": (
        STUDIO,
        OLD,
        f"use f with {ARGS} and use g with {{}}",
        {"tools": [FUNCTIONS]},
        "function_call",
    ),
    "calls in pieces": (
        VERTEX,
        MODERN,
        f"use f with {ARGS}",
        {"tools": [FUNCTIONS], "tool_config": PIECES},
        "function_call",
    ),
    "candidates": (STUDIO, OLD, "say " + "word " * 40, {"candidate_count": 3}, "text"),
    "built-in tools": (STUDIO, OLD, "what is 2 + 3 on https://a.org", {"tools": BUILT_IN}, "executable_code"),
    "code on Vertex": (VERTEX, MODERN, "what is 2 + 3", {"tools": BUILT_IN[2:]}, "code_execution_result"),
    "searches on Vertex": (VERTEX, MODERN, "read https://a.org", {"tools": BUILT_IN[:2]}, "text"),
    "tools that show": (
        STUDIO,
        MODERN,
        "search the web for https://a.org then use f with {}",
        {"tools": [*BUILT_IN[:2], FUNCTIONS], "tool_config": SHOWN},
        "tool_call",
    ),
    "citations": (STUDIO, MODERN, "say x then cite https://a.org", {}, "text"),
    "citations on Vertex": (VERTEX, MODERN, "say x then cite https://a.org", {}, "text"),
    "logprobs": (VERTEX, OLD, "say " + "word " * 9, {"response_logprobs": True, "logprobs": 3}, "text"),
    "ratings": (VERTEX, MODERN, "say x", {"safety_settings": RATED}, "text"),
    "cut": (STUDIO, MODERN, "say " + "word " * 40, {"max_output_tokens": 5}, "text"),
}


def config(settings: dict[str, Any]) -> types.GenerateContentConfig:
    off = types.AutomaticFunctionCallingConfig(disable=True)
    return types.GenerateContentConfig(automatic_function_calling=off, **settings)


def all_parts(answers: Iterator[types.GenerateContentResponse]) -> tuple[Parts, list[types.Candidate]]:
    candidates = [candidate for found in answers for candidate in found.candidates or []]
    contents = [candidate.content for candidate in candidates if candidate.content is not None]
    return [part for content in contents for part in content.parts or []], candidates


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_sdk_reads_every_answer(case: tuple[str, str, str, dict[str, Any], str], streamed: bool) -> None:
    surface, model, words, settings, wanted = case
    models = client(surface).models
    if streamed:
        answers = models.generate_content_stream(model=model, contents=words, config=config(settings))
    else:
        answers = iter([models.generate_content(model=model, contents=words, config=config(settings))])
    parts, candidates = all_parts(answers)
    assert any(getattr(part, wanted) for part in parts)
    assert candidates[-1].finish_reason is not None
    assert candidates[-1].finish_reason.name in types.FinishReason.__members__


def ending(name: str) -> types.Candidate:
    surface, model, words, settings, _ = CASES[name]
    found = client(surface).models.generate_content(model=model, contents=words, config=config(settings))
    assert found.candidates
    return found.candidates[-1]


def test_what_stands_beside_the_content_arrives() -> None:
    assert ending("candidates").index == 2
    assert ending("logprobs").logprobs_result is not None
    assert ending("ratings").safety_ratings
    assert ending("citations").citation_metadata is not None
    assert ending("citations on Vertex").citation_metadata is not None
    assert ending("built-in tools").grounding_metadata is not None
    assert ending("built-in tools").url_context_metadata is not None
    grounding = ending("searches on Vertex").grounding_metadata
    assert grounding is not None
    assert [chunk.web.domain for chunk in grounding.grounding_chunks or () if chunk.web] == [
        None,
        "example.com",
        "example.org",
    ]


def test_the_sdk_resumes_a_long_answer_by_itself() -> None:
    words = "word " * 59_999 + "end"
    models = client(STUDIO).models
    whole = models.generate_content(model=LONG, contents=f"say {words}")
    streamed = models.generate_content_stream(model=LONG, contents=f"say {words}")
    assert whole.text == words
    assert "".join(chunk.text or "" for chunk in streamed) == words
    once = models.generate_content(
        model=LONG, contents=f"say {words}", config=config({"automatic_continuation": False})
    )
    assert once.candidates
    assert once.candidates[0].finish_reason == types.FinishReason.CONTINUATION
    assert once.candidates[0].continuation_token


def test_the_sdks_own_replay_of_shown_tools_is_accepted() -> None:
    chat = client(STUDIO).chats.create(
        model=MODERN, config=config({"tools": [*BUILT_IN[:1], FUNCTIONS], "tool_config": SHOWN})
    )
    first = chat.send_message("search the web then use f with {}")
    (call,) = first.function_calls or []
    response = types.FunctionResponse(id=call.id, name=call.name, response={"output": "done"})
    assert chat.send_message([types.Part(function_response=response)]).text == "f returned: done"
