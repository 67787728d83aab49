"""Embeddings: vectors of length one that put like texts near each other, in each of Google's shapes."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.unit.emulator.resources.resource_client import PROJECT, Json, ResourceClient, user

STUDIO = "/v1beta/models/{}:{}"
VERTEX = PROJECT + "/publishers/google/models/{}:{}"
MODELS = ("gemini-embedding-001", "gemini-embedding-2")


@pytest.fixture
def desk() -> ResourceClient:
    return ResourceClient()


def embed(desk: ResourceClient, text: str, model: str = MODELS[0], **fields: Any) -> list[float]:
    body = {"content": user(text), **fields}
    values: list[float] = desk.good("POST", STUDIO.format(model, "embedContent"), body)["embedding"]["values"]
    return values


def closeness(one: list[float], two: list[float]) -> float:
    return sum(a * b for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("size", [None, 1, 10, 768, 3072])
def test_vectors_have_the_wanted_size_and_length_one(
    desk: ResourceClient, model: str, size: int | None
) -> None:
    values = embed(desk, "the cat sat on the mat", model, **({"outputDimensionality": size} if size else {}))
    assert len(values) == (size or 3072)
    assert math.isclose(sum(value * value for value in values), 1)


@pytest.mark.parametrize("size", [64, 768, 3072])
def test_like_texts_are_nearer_than_unlike_ones(desk: ResourceClient, size: int) -> None:
    cat, cats, ship = (
        embed(desk, text, outputDimensionality=size)
        for text in (
            "The cat sleeps on the sofa.",
            "A cat was sleeping on a sofa",
            "Quarterly shipping costs rose",
        )
    )
    assert closeness(cat, cats) > closeness(cat, ship) + 0.25


def test_the_same_text_is_the_same_vector_and_the_task_moves_it_a_little(desk: ResourceClient) -> None:
    plain = embed(desk, "weather in Oslo")
    assert plain == embed(desk, "weather in Oslo")
    query = embed(desk, "weather in Oslo", taskType="RETRIEVAL_QUERY")
    assert plain != query
    assert closeness(plain, query) > 0.95


def test_a_batch_is_its_texts_one_by_one(desk: ResourceClient) -> None:
    def one(text: str) -> Json:
        return {"model": f"models/{MODELS[0]}", "content": user(text), "outputDimensionality": 8}

    url = STUDIO.format(MODELS[0], "batchEmbedContents")
    many = desk.good("POST", url, {"requests": [one("a cat"), one("a ship")]})["embeddings"]
    assert [each["values"] for each in many] == [
        embed(desk, text, outputDimensionality=8) for text in ("a cat", "a ship")
    ]
    assert "at most 100 requests" in desk.bad("POST", url, {"requests": [one("x")] * 101})[2]
    nameless = {"requests": [one("x"), {"content": user("y")}]}
    assert desk.bad("POST", url, nameless)[2].startswith("* BatchEmbedContentsRequest.requests[1].model: ")


def test_vertex_embeds_with_settings_of_its_own_and_counts(desk: ResourceClient) -> None:
    url = VERTEX.format("gemini-embedding-2", "embedContent")
    config = {"outputDimensionality": 10, "taskType": "RETRIEVAL_DOCUMENT", "autoTruncate": True}
    answer = desk.good("POST", url, {"content": user("12345678"), "embedContentConfig": config})
    assert len(answer["embedding"]["values"]) == 10
    assert answer["usageMetadata"]["promptTokenCount"] == 2


def test_vertex_predicts(desk: ResourceClient) -> None:
    url = VERTEX.format("gemini-embedding-001", "predict")
    instances = [{"content": "a cat", "task_type": "RETRIEVAL_QUERY"}, {"content": "a ship"}]
    answer = desk.good("POST", url, {"instances": instances, "parameters": {"outputDimensionality": 8}})
    first, second = (each["embeddings"] for each in answer["predictions"])
    assert first["values"] == embed(desk, "a cat", outputDimensionality=8, taskType="RETRIEVAL_QUERY")
    assert (len(second["values"]), second["statistics"]) == (8, {"truncated": False, "token_count": 2})
    assert answer["metadata"] == {"billableCharacterCount": 11}
    wrong = [{"content": "a", "task_type": []}]
    for body in ({"instances": ["a cat"]}, {"instances": wrong}, {"instances": instances, "parameters": 5}):
        assert desk.bad("POST", url, body)[:2] == (400, "INVALID_ARGUMENT")


def test_media_are_embedded_by_the_model_that_can(desk: ResourceClient) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    body = {"content": user("a cat", picture)}
    alone = embed(desk, "a cat", "gemini-embedding-2")
    both = desk.good("POST", STUDIO.format("gemini-embedding-2", "embedContent"), body)["embedding"]["values"]
    assert alone != both
    assert desk.bad("POST", STUDIO.format("gemini-embedding-001", "embedContent"), body)[0] == 400


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "* EmbedContentRequest.content: content is empty"),
        ({"content": user("")}, "* EmbedContentRequest.content: content is empty"),
        ({"content": user("x"), "outputDimensionality": 0}, "* EmbedContentRequest.output_dimensionality: "),
        (
            {"content": user("x"), "outputDimensionality": 4000},
            "* EmbedContentRequest.output_dimensionality: ",
        ),
        (
            {"content": user("x"), "taskType": "DANCE"},
            "Invalid value at 'task_type' (type.googleapis.com/google.ai.",
        ),
        (
            {"content": user("x"), "autoTruncate": True},
            'Invalid JSON payload received. Unknown name "autoTruncate"',
        ),
    ],
)
def test_what_cannot_be_embedded_is_refused(desk: ResourceClient, body: Json, words: str) -> None:
    code, _, message = desk.bad("POST", STUDIO.format(MODELS[0], "embedContent"), body)
    assert code == 400
    assert message.startswith(words)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("place", [STUDIO, VERTEX])
def test_embedding_models_do_not_talk_and_talking_ones_do_not_embed(
    desk: ResourceClient, model: str, place: str
) -> None:
    asked = {"contents": [user("hi")]}
    assert desk.bad("POST", place.format(model, "generateContent"), asked)[:2] == (404, "NOT_FOUND")
    body = {"content": user("hi")}
    assert desk.bad("POST", place.format("gemini-3.8-flash", "embedContent"), body)[:2] == (404, "NOT_FOUND")
    assert desk.good("POST", place.format(model, "countTokens"), asked)["totalTokens"] == 1
