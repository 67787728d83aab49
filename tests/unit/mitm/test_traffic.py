"""Which traffic is Gemini's, and answers in every framing there and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects.base import Target
from dragoman.mitm.proxy import (
    Framing,
    decode_request,
    decode_response,
    encode_response,
    is_gemini,
    prepend_text,
    response_text,
    target_of,
)

CHUNKS: list[dict[str, Any]] = [
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "a\u2028b"}]}}]},
    {
        "candidates": [
            {"content": {"parts": [{"text": "c"}, {"text": "x", "thought": True}]}, "finishReason": "STOP"}
        ]
    },
]


@pytest.mark.parametrize(
    ("host", "wanted"),
    [
        ("generativelanguage.googleapis.com", True),
        ("GENERATIVELANGUAGE.googleapis.com", True),
        ("aiplatform.googleapis.com", True),
        ("us-central1-aiplatform.googleapis.com", True),
        ("aiplatform.eu.rep.googleapis.com", True),
        ("storage.googleapis.com", False),
        ("generativelanguage.googleapis.com.evil.example", False),
        ("evil-generativelanguage.googleapis.com", False),
        ("example.com", False),
        ("", False),
    ],
)
def test_only_googles_gemini_hosts_are_opened(host: str, wanted: bool) -> None:
    assert is_gemini(host) == wanted


@pytest.mark.parametrize(
    ("host", "path", "target"),
    [
        ("g", "/v1beta/models/m-1:generateContent?key=x", Target(model="m-1")),
        ("g", "/v1/models/m-1:streamGenerateContent?alt=sse", Target(model="m-1")),
        (
            "us-aiplatform.x",
            "/v1/projects/p/locations/l/publishers/google/models/m:generateContent",
            Target(model="m", backend="vertex"),
        ),
        ("g", "/v1beta/models/m-1:countTokens", None),
        ("g", "/v1beta/models", None),
        ("g", "/v1beta/files?x=/models/m:generateContent", None),
    ],
)
def test_only_requests_that_generate_are_changed(host: str, path: str, target: Target | None) -> None:
    assert target_of(host, path) == target


def test_what_is_no_object_is_left_to_google() -> None:
    assert decode_request(b'{"contents":[]}') == {"contents": []}
    for body in (b"", b"[]", b"{", b"\xff", b"[" * 100_000):
        assert decode_request(body) is None


@pytest.mark.parametrize("framing", ["array", "sse"])
def test_a_stream_comes_back_in_its_own_framing(framing: Framing) -> None:
    raw = encode_response(CHUNKS, framing)
    assert decode_response(raw) == (CHUNKS, framing)
    assert b"\xe2\x80\xa8" not in raw or framing == "array"


def test_a_whole_answer_stays_one() -> None:
    assert decode_response(encode_response(CHUNKS[:1], "whole")) == (CHUNKS[:1], "whole")
    one = json.loads(encode_response(CHUNKS, "whole"))
    assert [part["text"] for part in one["candidates"][0]["content"]["parts"]] == ["a\u2028b", "c", "x"]
    assert one["candidates"][0]["finishReason"] == "STOP"


@pytest.mark.parametrize("body", [b"", b"<html>", b"data: nonsense\n\n", b"[1]", b"{", b"\xff"])
def test_what_is_no_answer_is_passed_as_it_is(body: bytes) -> None:
    assert decode_response(body) is None


def test_words_of_earlier_rounds_come_first() -> None:
    assert response_text(CHUNKS) == "a\u2028bc"
    assert response_text([{}, {"candidates": [{"finishReason": "STOP"}]}]) == ""
    assert prepend_text(CHUNKS, "") is CHUNKS
    assert response_text(prepend_text(CHUNKS, "So.")) == "So.\n\na\u2028bc"
