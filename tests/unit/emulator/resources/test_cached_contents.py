"""Explicit caches: who may make one, how long it lives, and what a request with one is taken for."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.unit.emulator.resources.resource_client import PROJECT, Json, ResourceClient, user

MODEL = "gemini-3.8-flash"
LONG = "word " * 4000  # 5000 tokens
GENERATE = f"/v1beta/models/{MODEL}:generateContent"
COUNT = f"/v1beta/models/{MODEL}:countTokens"
CACHES = "/v1beta/cachedContents"
VERTEX_CACHES = f"{PROJECT}/cachedContents"
VERTEX_MODEL = f"projects/p/locations/global/publishers/google/models/{MODEL}"
TOOL = {"functionDeclarations": [{"name": "get_time", "description": "What time it is"}]}


def cache(**fields: Any) -> Json:
    return {"model": f"models/{MODEL}", "contents": [user(LONG)], **fields}


@pytest.fixture
def desk() -> ResourceClient:
    return ResourceClient()


def make(desk: ResourceClient, **fields: Any) -> str:
    name: str = desk.good("POST", CACHES, cache(**fields))["name"]
    return name


def test_a_cache_lives_an_hour_and_shows_nothing_of_what_it_holds(desk: ResourceClient) -> None:
    made = desk.good("POST", CACHES, cache(displayName="Notes"))
    assert re.fullmatch(r"cachedContents/[a-z0-9]{40}", made["name"])
    assert made == {
        "name": made["name"],
        "model": f"models/{MODEL}",
        "displayName": "Notes",
        "createTime": "2026-11-15T12:00:00.000000Z",
        "updateTime": "2026-11-15T12:00:00.000000Z",
        "expireTime": "2026-11-15T13:00:00.000000Z",
        "usageMetadata": {"totalTokenCount": 5000},
    }
    assert desk.good("GET", f"/v1beta/{made['name']}") == made


@pytest.mark.parametrize(
    ("life", "end"),
    [
        ({"ttl": "300s"}, "2026-11-15T12:05:00.000000Z"),
        ({"expireTime": "2026-11-16T00:00:00Z"}, "2026-11-16T00:00:00.000000Z"),
        ({"expire_time": "2026-11-16T02:00:00+02:00"}, "2026-11-16T00:00:00.000000Z"),
    ],
)
def test_its_end_can_be_chosen(desk: ResourceClient, life: Json, end: str) -> None:
    assert desk.good("POST", CACHES, cache(**life))["expireTime"] == end


def test_after_its_end_it_is_as_if_it_had_never_been(desk: ResourceClient) -> None:
    name = make(desk, ttl="300s")
    desk.advance_clock(seconds=299)
    assert desk.good("POST", GENERATE, {"contents": [user("hi")], "cachedContent": name})
    desk.advance_clock(seconds=1)
    gone = (403, "PERMISSION_DENIED", "CachedContent not found (or permission denied)")
    assert desk.bad("POST", GENERATE, {"contents": [user("hi")], "cachedContent": name}) == gone
    assert desk.bad("GET", f"/v1beta/{name}") == gone
    assert desk.bad("PATCH", f"/v1beta/{name}", {"ttl": "5s"}) == gone
    assert desk.bad("DELETE", f"/v1beta/{name}") == gone
    assert desk.good("GET", CACHES) == {}


def test_its_life_can_be_prolonged_and_nothing_else_changed(desk: ResourceClient) -> None:
    name = make(desk, ttl="300s")
    desk.advance_clock(seconds=100)
    patched = desk.good("PATCH", f"/v1beta/{name}?updateMask=ttl", {"ttl": "600s"})
    assert patched["expireTime"] == "2026-11-15T12:11:40.000000Z"
    assert patched["updateTime"] == "2026-11-15T12:01:40.000000Z"
    assert patched["createTime"] == "2026-11-15T12:00:00.000000Z"
    assert desk.good("GET", f"/v1beta/{name}") == patched
    more = {"ttl": "900s", "contents": [user("x")]}
    only = (400, "INVALID_ARGUMENT", "Only the expiration of a CachedContent can be updated.")
    assert desk.bad("PATCH", f"/v1beta/{name}", more) == only
    assert desk.bad("PATCH", f"/v1beta/{name}?updateMask=ttl,displayName", {"ttl": "9s"}) == only
    assert desk.good("GET", f"/v1beta/{name}") == patched
    assert desk.bad("PATCH", f"/v1beta/{name}", {})[0] == 400
    assert desk.bad("PATCH", f"/v1beta/{name}", {"ttl": "-1s"})[0] == 400


def test_deleted_is_gone(desk: ResourceClient) -> None:
    name = make(desk)
    assert desk.good("DELETE", f"/v1beta/{name}") == {}
    assert desk.bad("GET", f"/v1beta/{name}")[0] == 403


def test_the_list_comes_in_pages_newest_first(desk: ResourceClient) -> None:
    names = [make(desk) for _ in range(5)]
    first = desk.good("GET", f"{CACHES}?pageSize=2")
    second = desk.good("GET", f"{CACHES}?pageSize=2&pageToken={first['nextPageToken']}")
    third = desk.good("GET", f"{CACHES}?pageSize=2&pageToken={second['nextPageToken']}")
    listed = [one["name"] for page in (first, second, third) for one in page["cachedContents"]]
    assert listed == names[::-1]
    assert "nextPageToken" not in third


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            cache(contents=[user("short")]),
            "Cached content is too small. total_token_count=2, min_total_token_count=4096",
        ),
        (
            {"model": "models/gemini-2.5-flash", "contents": [user("short")]},
            "Cached content is too small. total_token_count=2, min_total_token_count=1024",
        ),
        (
            cache(model=MODEL),
            "* CreateCachedContentRequest.cached_content.model: unexpected model name format\n",
        ),
        (
            cache(ttl="5s", expireTime="2026-11-16T00:00:00Z"),
            "Invalid value at '' (oneof), oneof field 'expiration' is already set. Cannot set 'expireTime'",
        ),
        (
            cache(expireTime="2026-11-15T12:00:00Z"),
            "The expiration of a CachedContent must be in the future.",
        ),
        (cache(expireTime="2027-02-31T12:00:00Z"), "Request contains an invalid argument."),
        (cache(ttl="99999999999999s"), "Request contains an invalid argument."),
        (cache(nonsense=1), 'Invalid JSON payload received. Unknown name "nonsense": Cannot find field.'),
        (
            cache(tools=[{"functionDeclarations": [{"name": "1st"}]}]),
            "* CreateCachedContentRequest.cached_content.tools[0].function_declarations[0].name: Invalid function name.",
        ),
    ],
)
def test_what_cannot_be_cached_is_refused(desk: ResourceClient, body: Json, words: str) -> None:
    code, status, message = desk.bad("POST", CACHES, body)
    assert (code, status) == (400, "INVALID_ARGUMENT")
    assert message.startswith(words)


@pytest.mark.parametrize(
    "model", ["gemini-4-argon", "gemini-embedding-001", "gemini-2.0-flash", "gemma-4-31b-it"]
)
def test_models_without_caches_say_so(desk: ResourceClient, model: str) -> None:
    code, status, message = desk.bad("POST", CACHES, cache(model=f"models/{model}"))
    assert (code, status) == (404, "NOT_FOUND")
    assert f"models/{model} is not found for API version v1beta" in message
    assert "not supported for createCachedContent" in message


def test_a_system_instruction_alone_can_be_cached(desk: ResourceClient) -> None:
    body = {"model": f"models/{MODEL}", "systemInstruction": {"parts": [{"text": LONG}]}}
    assert desk.good("POST", CACHES, body)["usageMetadata"]["totalTokenCount"] == 5000


def test_a_request_with_a_cache_counts_it_as_prompt_and_as_cached(desk: ResourceClient) -> None:
    name = make(desk)
    answer = desk.good("POST", GENERATE, {"contents": [user("say good morning")], "cachedContent": name})
    assert answer["candidates"][0]["content"]["parts"][0]["text"] == "good morning"
    usage = answer["usageMetadata"]
    assert usage["promptTokenCount"] == 5004
    assert usage["cachedContentTokenCount"] == 5000
    assert usage["cacheTokensDetails"] == [{"modality": "TEXT", "tokenCount": 5000}]


def test_every_chunk_of_a_stream_counts_the_cache(desk: ResourceClient) -> None:
    name = make(desk)
    path = GENERATE.replace("generateContent", "streamGenerateContent") + "?alt=sse"
    answer = desk.ask("POST", path, {"contents": [user("say one two three")], "cachedContent": name})
    assert len(answer.body_writes) > 1
    assert all(b'"cachedContentTokenCount":5000' in piece for piece in answer.body_writes)


def test_the_tools_of_a_cache_can_be_called(desk: ResourceClient) -> None:
    name = make(desk, tools=[TOOL])
    asked = {"contents": [user("use get_time with {}")], "cachedContent": name}
    parts = desk.good("POST", GENERATE, asked)["candidates"][0]["content"]["parts"]
    assert [part["functionCall"]["name"] for part in parts if "functionCall" in part] == ["get_time"]


def test_cached_turns_stand_before_the_new_ones(desk: ResourceClient) -> None:
    """A result whose call was cached finds it."""
    asked = {"contents": [user(LONG + "\n\nuse get_time with {}")], "tools": [TOOL]}
    turn = desk.good("POST", GENERATE, asked)["candidates"][0]["content"]
    name = make(desk, contents=[*asked["contents"], turn], tools=[TOOL])
    call = next(part["functionCall"] for part in turn["parts"] if "functionCall" in part)
    result = {"functionResponse": {"id": call["id"], "name": "get_time", "response": {"output": "noon"}}}
    answer = desk.good("POST", GENERATE, {"contents": [user(result)], "cachedContent": name})
    assert "noon" in answer["candidates"][0]["content"]["parts"][0]["text"]


@pytest.mark.parametrize(
    "field", [{"systemInstruction": user("be brief")}, {"tools": [TOOL]}, {"toolConfig": {}}]
)
def test_what_the_cache_says_may_not_be_said_again(desk: ResourceClient, field: Json) -> None:
    asked = {"contents": [user("hi")], "cachedContent": make(desk), **field}
    assert desk.bad("POST", GENERATE, asked) == (
        400,
        "INVALID_ARGUMENT",
        "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.",
    )


def test_another_model_cannot_use_it(desk: ResourceClient) -> None:
    asked = {"contents": [user("hi")], "cachedContent": make(desk)}
    code, _, message = desk.bad("POST", GENERATE.replace("3.8", "3.5"), asked)
    assert code == 400
    assert (
        "(models/gemini-3.5-flash) and CachedContent (models/gemini-3.8-flash) has to be the same" in message
    )


def test_contents_are_needed_all_the_same(desk: ResourceClient) -> None:
    message = desk.bad("POST", GENERATE, {"cachedContent": make(desk)})[2]
    assert "contents is not specified" in message


def test_wrong_fields_are_reported_before_an_unknown_cache(desk: ResourceClient) -> None:
    asked = {"contents": [{"role": "user"}], "cachedContent": "cachedContents/nope"}
    assert "parts must not be empty" in desk.bad("POST", GENERATE, asked)[2]


@pytest.mark.parametrize("name", ["batchPredictionJobs/123", "projects/p/locations/l/cachedContents/1", "x"])
def test_a_name_of_the_wrong_shape_is_an_invalid_argument(desk: ResourceClient, name: str) -> None:
    assert desk.bad("POST", GENERATE, {"contents": [user("hi")], "cachedContent": name})[:2] == (
        400,
        "INVALID_ARGUMENT",
    )


def test_count_tokens_counts_the_cache(desk: ResourceClient) -> None:
    asked = {"model": f"models/{MODEL}", "contents": [user("12345678")], "cachedContent": make(desk)}
    counted = desk.good("POST", COUNT, {"generateContentRequest": asked})
    assert (counted["totalTokens"], counted["cachedContentTokenCount"]) == (5002, 5000)


def test_vertex_names_are_full_and_its_caches_its_own(desk: ResourceClient) -> None:
    made = desk.good("POST", VERTEX_CACHES, cache(model=VERTEX_MODEL))
    assert re.fullmatch(r"projects/p/locations/global/cachedContents/\d{19}", made["name"])
    assert desk.good("GET", f"/v1/{made['name']}") == made
    generate = f"{PROJECT}/publishers/google/models/{MODEL}:generateContent"
    answer = desk.good("POST", generate, {"contents": [user("hi")], "cachedContent": made["name"]})
    assert answer["usageMetadata"]["cachedContentTokenCount"] == 5000
    assert desk.good("GET", CACHES) == {}
    other = f"{VERTEX_CACHES.replace('/p/', '/q/')}"
    assert desk.good("GET", other) == {}
    assert desk.bad("GET", f"{other}/123")[:2] == (404, "NOT_FOUND")
    assert (
        desk.bad("POST", generate, {"contents": [user("hi")], "cachedContent": "cachedContents/1"})[0] == 400
    )


def test_the_key_is_asked_for_after_the_body_is_read(desk: ResourceClient) -> None:
    assert "Unknown name" in desk.bad("POST", f"{CACHES}?key=invalid-key", {"foo": 1})[2]
    assert "API key not valid" in desk.bad("POST", f"{CACHES}?key=invalid-key", cache())[2]
    assert "API key not valid" in desk.bad("GET", f"{CACHES}?key=invalid-key")[2]


def test_a_model_named_as_on_vertex_is_not_found_on_ai_studio(desk: ResourceClient) -> None:
    named = cache(model=f"models/publishers/google/models/{MODEL}")
    assert desk.bad("POST", CACHES, named)[:2] == (404, "NOT_FOUND")
