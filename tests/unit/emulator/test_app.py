"""The ASGI shell, the paths, the models and the keys."""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.emulator import create_emulator
from dragoman.emulator.http_messages import header_fields
from dragoman.emulator.models import MODELS
from dragoman.emulator.service import HttpRequest
from tests.unit.emulator.builders import (
    PLAIN_PATHS,
    SERVICE,
    STUDIO,
    VERTEX,
    Json,
    ask,
    declare,
    error,
    hello,
    model_calls,
    send,
    talk,
    user,
)

Message = MutableMapping[str, Any]


async def run(scope: Message, *received: Message) -> list[Message]:
    """Everything the app sends for a scope and what it may receive."""
    incoming = list(received)
    sent: list[Message] = []

    async def receive() -> Message:
        return incoming.pop(0)

    async def collect(event: Message) -> None:
        sent.append(event)

    await create_emulator()(scope, receive, collect)
    return sent


def http(
    path: str, query: bytes = b"", method: str = "POST", headers: tuple[tuple[bytes, bytes], ...] = ()
) -> Message:
    return {"type": "http", "method": method, "path": path, "query_string": query, "headers": headers}


def body(document: Json) -> Message:
    return {"type": "http.request", "body": json.dumps(document).encode(), "more_body": False}


async def test_lifespan() -> None:
    sent = await run({"type": "lifespan"}, {"type": "lifespan.startup"}, {"type": "lifespan.shutdown"})
    assert [event["type"] for event in sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_a_stream_is_sent_chunk_by_chunk() -> None:
    sent = await run(http("/v1beta/models/gemini-3.8-flash:streamGenerateContent", b"alt=sse"), body(hello()))
    start, *rest = sent
    assert start["status"] == 200
    assert (b"content-type", b"text/event-stream") in start["headers"]
    assert len(rest) > 3
    assert [event["more_body"] for event in rest] == [True] * (len(rest) - 1) + [False]


async def test_a_body_in_pieces_is_joined() -> None:
    raw = json.dumps(hello()).encode()
    pieces = [
        {"type": "http.request", "body": raw[index : index + 1], "more_body": True}
        for index in range(len(raw))
    ]
    sent = await run(http("/v1/models/gemini-3.8-flash:generateContent"), *pieces, {"type": "http.request"})
    assert sent[0]["status"] == 200
    assert dict(sent[0]["headers"])[b"content-length"] == str(len(sent[1]["body"])).encode()


async def test_a_client_that_leaves_gets_nothing() -> None:
    assert await run(http("/v1/models/gemini-3.8-flash:generateContent"), {"type": "http.disconnect"}) == []


@pytest.mark.parametrize(
    ("query", "headers"), [(b"key=invalid-key", ()), (b"", ((b"X-Goog-Api-Key", b"invalid-key"),))]
)
async def test_the_invalid_key_is_refused_like_google_does(
    query: bytes, headers: tuple[tuple[bytes, bytes], ...]
) -> None:
    sent = await run(
        http("/v1beta/models/gemini-3.8-flash:generateContent", query, headers=headers), body(hello())
    )
    found = json.loads(sent[1]["body"])["error"]
    assert sent[0]["status"] == found["code"] == 400
    assert found["message"] == "API key not valid. Please pass a valid API key."
    assert found["details"][0]["reason"] == "API_KEY_INVALID"


def test_parsing_comes_before_the_key_and_the_key_before_the_model() -> None:
    assert "Unknown name" in error({"foo": 1}, key="invalid-key")["message"]
    assert "API key not valid" in error(hello(), key="invalid-key", model="nope")["message"]


def get(path: str) -> tuple[int, Any]:
    answer = SERVICE.handle(HttpRequest(method="GET", path=path))
    return answer.status, json.loads(answer.body_writes[0])


@pytest.mark.parametrize("path", PLAIN_PATHS)
def test_every_address_of_a_model_works(path: str) -> None:
    assert ask(hello(), path=path)["candidates"]


UNKNOWN = [
    "/",
    "/v2/models/gemini-3.8-flash:generateContent",
    "/v1beta/models/google/x:generateContent",
    "/v1beta/models/gemini-3.8-flash:embedText",
    "/v1beta1/models/gemini-3.8-flash:generateContent",
    "/v1beta/publishers/google/models/gemini-3.8-flash:generateContent",
]


@pytest.mark.parametrize("path", UNKNOWN)
def test_unknown_paths_get_the_html_page(path: str) -> None:
    answer = SERVICE.handle(HttpRequest(method="POST", path=path))
    assert (answer.status, answer.content_type) == (404, "text/html; charset=UTF-8")
    assert b"Error 404 (Not Found)!!1" in answer.body_writes[0]


DEAD = ["gemini-2.0-flash", "gemini-1.5-pro", "gemini-3-pro-preview", "gemini-pro", "gpt-5", "claude-opus-4"]


@pytest.mark.parametrize("model", DEAD)
def test_dead_and_foreign_models_are_not_found(model: str) -> None:
    answer = send(hello(), model=model)
    found = json.loads(answer.body_writes[0])["error"]
    assert (answer.status, found["code"], found["status"]) == (404, 404, "NOT_FOUND")
    assert found["message"] == (
        f"models/{model} is not found for API version v1beta, or is not supported for generateContent. "
        "Call ModelService.ListModels to see the list of available models and their supported methods."
    )
    assert get(f"/v1beta/models/{model}")[1]["error"]["message"] == (
        f"Model is not found: models/{model} for api version v1beta"
    )


def test_vertex_has_its_own_words_for_a_missing_model() -> None:
    answer = send(hello(), model="nope", path=VERTEX)
    words = json.loads(answer.body_writes[0])["error"]["message"]
    assert words.startswith(
        "Publisher Model `projects/p/locations/global/publishers/google/models/nope` was not found"
    )


def test_unknown_gemini_models_behave_like_the_newest_flash() -> None:
    assert ask(hello(), model="gemini-9.9-flash")["modelVersion"] == "gemini-9.9-flash"
    assert (
        "ending with a model turn"
        in error(talk(user("a"), model_calls("f")), model="gemini-9.9-flash")["message"]
    )


def test_variants_have_the_facts_of_their_model() -> None:
    asked = talk(user("use f with {}"), tools=declare("f"))
    call = ask(asked, model="gemini-2.5-flash-lite-preview-09")["candidates"][0]["content"]["parts"][0]
    assert "id" not in call["functionCall"]
    ask(hello(), model="gemini-3.1-pro-preview-customtools")


def test_aliases_live_on_v1beta_only() -> None:
    for path in PLAIN_PATHS:
        found = send(hello(), model="gemini-flash-latest", path=path).status == 200
        assert found is (path == STUDIO)


def test_models_are_listed_and_described() -> None:
    status, listed = get("/v1beta/models")
    names = {model["name"] for model in listed["models"]}
    assert status == 200
    assert names == {f"models/{model.id}" for model in MODELS} | {
        "models/gemini-flash-latest",
        "models/gemini-flash-lite-latest",
        "models/gemini-pro-latest",
        "models/gemini-embedding-001",
        "models/gemini-embedding-2",
    }
    _, one = get("/v1/models/gemini-3.8-flash")
    assert one["inputTokenLimit"] == 1_048_576
    assert one in get("/v1/models")[1]["models"]
    assert get("/v1beta1/publishers/google/models")[1]["publisherModels"]
    assert get("/v1/publishers/google/models/gemini-3.8-flash")[0] == 200


NAMES = """
contents role parts text functionCall functionResponse name args response id thoughtSignature tools
functionDeclarations parameters parametersJsonSchema type properties items required anyOf $ref
toolConfig functionCallingConfig mode generationConfig thinkingConfig maxOutputTokens
responseMimeType responseSchema inlineData data mimeType
"""
KEYS = st.sampled_from(NAMES.split())
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.sampled_from(
        ["", "user", "model", "object", "array", "f", "ANY", "application/json", "use f with {}", "abcd"]
    ),
    st.text(max_size=5),
)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


@settings(max_examples=300, deadline=None)
@given(DOCUMENTS, st.sampled_from(["gemini-3.8-flash", "gemini-2.5-flash"]), st.sampled_from(PLAIN_PATHS))
def test_whatever_arrives_the_answer_is_googles(document: Any, model: str, path: str) -> None:
    for wrapped in (document, {**hello(), **document} if isinstance(document, dict) else document):
        answer = send(wrapped, model=model, path=path)
        decoded = json.loads(answer.body_writes[0])
        assert (
            "candidates" in decoded
            if answer.status == 200
            else decoded["error"]["status"] == "INVALID_ARGUMENT"
        )


def test_only_ai_studio_names_its_service_tier() -> None:
    tier = ("x-gemini-service-tier", "standard")
    for path, named in ((STUDIO, True), (VERTEX, False)):
        assert (tier in send(hello(), path=path).headers) is named
        assert (tier in send(hello(), method="streamGenerateContent", path=path, alt="sse").headers) is named
    assert tier not in header_fields(send(hello(), path="/v1/nowhere/{}:{}"))
