"""The table of dialects: who is recognised by what, and what a request's path makes of its dialect."""

from __future__ import annotations

import pytest

from dragoman.dialects import DIALECTS, recognize_dialect
from dragoman.dialects.base import ClientDialect

ROWS = {row.name: row for row in DIALECTS}


def create(name: str, method: str, query: dict[str, str] | None = None) -> ClientDialect:
    row = ROWS[name]
    assert row.create is not None
    return row.create({"model": "gemini-pro-latest", "method": method}, {}, query or {})


@pytest.mark.parametrize(
    ("path", "header", "name"),
    [
        ("/v1/messages", "", "anthropic"),
        ("/nowhere", "anthropic-version", "anthropic"),
        ("/v1beta/models/m:generateContent", "", "gemini"),
        ("/v1/models", "x-goog-api-key", "gemini"),
        ("/model/m/converse", "", "bedrock"),
        ("/", "x-amz-target", "amazonq"),
        ("/generateAssistantResponse", "", "amazonq"),
        ("/generateassistantresponse", "", "amazonq"),
        ("/nowhere", "", "openai_chat"),
        ("/v1/responses", "", "openai_chat"),  # its routes are exact: recognition decides unknown paths only
    ],
)
def test_a_dialect_is_recognised_by_its_paths_and_headers(path: str, header: str, name: str) -> None:
    assert recognize_dialect(path, {header: "1"} if header else {}).name == name


@pytest.mark.parametrize(
    ("method", "query", "stream_type"),
    [
        ("streamGenerateContent", {"alt": "sse"}, "text/event-stream"),
        ("streamGenerateContent", {"$alt": "sse"}, "text/event-stream"),
        ("streamGenerateContent", {}, "application/json"),
        ("generateContent", {"alt": "sse"}, "application/json"),
        ("countTokens", {}, "application/json"),
    ],
)
def test_a_gemini_path_decides_the_framing(method: str, query: dict[str, str], stream_type: str) -> None:
    assert create("gemini", method, query).stream_type.startswith(stream_type)


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("converse", "ConverseClient"),
        ("converse-stream", "ConverseClient"),
        ("invoke", "InvokeClient"),
        ("invoke-with-response-stream", "InvokeClient"),
        ("count-tokens", "CountClient"),
    ],
)
def test_a_bedrock_path_decides_the_operation(method: str, kind: str) -> None:
    assert type(create("bedrock", method)).__name__ == kind


def test_amazon_q_gets_a_conversation_of_its_own() -> None:
    first, second = create("amazonq", ""), create("amazonq", "")
    assert vars(first) != vars(second)


def test_a_path_with_parentheses_is_a_pattern() -> None:
    patterns = {route.path: route.is_pattern for row in DIALECTS for route in row.routes}
    assert not patterns["/v1/messages"]
    assert patterns["/v1/responses/(?P<id>[^/]+)"]
