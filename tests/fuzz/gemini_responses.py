"""Whether an answer looks like one of Google's, whatever was asked."""

from __future__ import annotations

import json
from typing import Any

from google.genai import types

from dragoman.emulator.http_messages import HttpResponse
from dragoman.emulator.validate.descriptors import PART_DATA

_STATUS_WORDS = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
_COUNT_FIELDS = {"totalTokens", "totalBillableCharacters", "promptTokensDetails", "cachedContentTokenCount"}


def check_answer(answer: HttpResponse, method: str, alt: str) -> None:
    """AssertionError or ValueError where Google would never have said this."""
    if answer.status != 200:
        _check_error(answer, as_list=method == "streamGenerateContent" and alt != "sse")
    elif method == "countTokens":
        _check_count(json.loads(answer.body))
    else:
        _check_chunks(_read_chunks(answer, method, alt))


def _check_error(answer: HttpResponse, *, as_list: bool) -> None:
    body = json.loads(answer.body)
    if as_list:
        assert isinstance(body, list)
        assert len(body) == 1
        body = body[0]
    assert body.keys() == {"error"}
    error = body["error"]
    assert {"code", "message", "status"} <= error.keys() <= {"code", "message", "status", "details"}
    assert (error["code"], error["status"]) == (answer.status, _STATUS_WORDS[answer.status])
    assert isinstance(error["message"], str)
    assert error["message"]
    for detail in error.get("details", []):
        assert detail["@type"].startswith("type.googleapis.com/google.rpc.")


def _check_count(body: dict[str, Any]) -> None:
    assert body.keys() <= _COUNT_FIELDS
    assert isinstance(body["totalTokens"], int)
    assert body["totalTokens"] == sum(item["tokenCount"] for item in body.get("promptTokensDetails", []))


def _read_chunks(answer: HttpResponse, method: str, alt: str) -> list[dict[str, Any]]:
    if method == "generateContent":
        return [json.loads(answer.body)]
    if alt != "sse":
        chunks: list[dict[str, Any]] = json.loads(answer.body)
        return chunks
    for piece in answer.body_writes:
        assert piece.startswith(b"data: ")
        assert piece.endswith(b"\r\n\r\n")
    return [json.loads(piece.removeprefix(b"data: ")) for piece in answer.body_writes]


def _check_chunks(chunks: list[dict[str, Any]]) -> None:
    assert chunks
    for chunk in chunks:
        _check_types(chunk)
        assert len(chunk["candidates"]) == 1
        for part in chunk["candidates"][0]["content"].get("parts", []):
            assert len(part.keys() & set(PART_DATA)) == 1
    reasons = [chunk["candidates"][0].get("finishReason") for chunk in chunks]
    assert reasons[-1] in ("STOP", "MAX_TOKENS", "CONTINUATION")
    assert set(reasons[:-1]) <= {None}
    assert chunks[-1]["usageMetadata"]["totalTokenCount"] > 0


def _check_types(chunk: dict[str, Any]) -> None:
    """The SDK's types forbid what they do not know; the service tier they drop before."""
    usage = {name: value for name, value in chunk["usageMetadata"].items() if name != "serviceTier"}
    types.GenerateContentResponse.model_validate({**chunk, "usageMetadata": usage})
