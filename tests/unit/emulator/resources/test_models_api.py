"""The models' list in pages, one model's card, and the methods no emulator has."""

from __future__ import annotations

import base64

import pytest

from tests.unit.emulator.resources.resource_client import PROJECT, ResourceClient, user

HUGE = base64.b64encode(b"from:" + b"9" * 5001).decode()


@pytest.fixture
def desk() -> ResourceClient:
    return ResourceClient()


@pytest.mark.parametrize(
    ("place", "field"),
    [
        ("/v1beta/models", "models"),
        ("/v1/models", "models"),
        ("/v1beta1/publishers/google/models", "publisherModels"),
        (f"{PROJECT}/publishers/google/models", "publisherModels"),
    ],
)
def test_pages_together_are_the_whole_list(desk: ResourceClient, place: str, field: str) -> None:
    whole = desk.good("GET", place)
    assert "nextPageToken" not in whole
    pages, token = [], ""
    while True:
        page = desk.good("GET", f"{place}?pageSize=4&pageToken={token}")
        pages += page[field]
        assert len(page[field]) <= 4
        token = page.get("nextPageToken", "")
        if not token:
            break
    assert pages == whole[field]
    assert len(pages) > 8


@pytest.mark.parametrize(
    "query", ["pageSize=x", "pageSize=-1", "pageToken=zzz", "pageToken=ZnJvbTp4", f"pageToken={HUGE}"]
)
def test_a_page_that_cannot_be_is_refused(desk: ResourceClient, query: str) -> None:
    assert desk.bad("GET", f"/v1beta/models?{query}")[:2] == (400, "INVALID_ARGUMENT")


def test_v1_has_no_aliases(desk: ResourceClient) -> None:
    def names(version: str) -> set[str]:
        return {model["name"] for model in desk.good("GET", f"/{version}/models")["models"]}

    assert names("v1beta") - names("v1") == {
        "models/gemini-flash-latest",
        "models/gemini-flash-lite-latest",
        "models/gemini-pro-latest",
    }
    assert desk.bad("GET", "/v1/models/gemini-flash-latest")[0] == 404


@pytest.mark.parametrize(
    ("model", "methods"),
    [
        ("gemini-3.8-flash", ["generateContent", "countTokens", "createCachedContent"]),
        ("gemini-4-argon", ["generateContent", "countTokens"]),
        ("gemini-embedding-001", ["embedContent", "countTokens"]),
        ("gemini-embedding-2", ["embedContent", "countTokens"]),
    ],
)
def test_a_model_says_what_it_can_do(desk: ResourceClient, model: str, methods: list[str]) -> None:
    card = desk.good("GET", f"/v1beta/models/{model}")
    assert card["supportedGenerationMethods"] == methods
    assert card in desk.good("GET", "/v1beta/models")["models"]


def test_an_unknown_model_is_not_found_in_the_words_of_get(desk: ResourceClient) -> None:
    assert desk.bad("GET", "/v1beta/models/gpt-5") == (
        404,
        "NOT_FOUND",
        "Model is not found: models/gpt-5 for api version v1beta",
    )


def test_batches_are_refused_as_not_implemented(desk: ResourceClient) -> None:
    url = "/v1beta/models/gemini-3.8-flash:batchGenerateContent"
    assert desk.bad("POST", url, {"batch": {}})[:2] == (501, "UNIMPLEMENTED")


@pytest.mark.parametrize("text", ["", "a", "12345", "123456789", "x" * 103])
def test_vertex_shows_as_many_tokens_as_it_counts(desk: ResourceClient, text: str) -> None:
    place = f"{PROJECT}/publishers/google/models/gemini-3.8-flash"
    asked = {"contents": [user(text, "more")]}
    info = desk.good("POST", f"{place}:computeTokens", asked)["tokensInfo"][0]
    assert info["role"] == "user"
    assert len(info["tokens"]) == len(info["tokenIds"])
    assert len(info["tokens"]) == desk.good("POST", f"{place}:countTokens", asked)["totalTokens"]


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("DELETE", "/v1beta/models/gemini-3.8-flash"),
        ("POST", "/v1beta/models/gemini-3.8-flash:predict"),
        ("POST", f"{PROJECT}/publishers/google/models/gemini-3.8-flash:batchEmbedContents"),
        ("POST", "/v1beta/files"),
        ("PATCH", "/v1beta/cachedContents"),
        ("POST", "/v1beta/cachedContents/x:generateContent"),
        ("GET", "/upload/v1beta/files"),
        ("GET", f"{PROJECT}/files"),
    ],
)
def test_what_google_does_not_have_is_the_html_page(desk: ResourceClient, verb: str, path: str) -> None:
    answer = desk.ask(verb, path)
    assert (answer.status, answer.content_type) == (404, "text/html; charset=UTF-8")
