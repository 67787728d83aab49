"""Compaction in both its forms, from the first request to the session that goes on."""

from __future__ import annotations

import json

import pytest

from dragoman.dialects import openai_responses
from dragoman.dialects.base import Answer
from dragoman.dialects.openai_responses import CompactClient
from dragoman.dialects.openai_responses.compaction import (
    PREFACE,
    SUMMARY_PROMPT,
    compact_request,
    compact_response,
    open_summary,
    seal_summary,
)
from dragoman.dialects.openai_responses.conversation_state import input_items
from dragoman.errors import DragomanError
from dragoman.ir import Text, collect
from tests.unit.dialects.openai_responses.builders import body, call, message, output, user
from tests.unit.dialects.openai_responses.stream_checks import text
from tests.unit.dialects.stream_checks import whole_stream


@pytest.mark.parametrize("words", ["", "we fixed it", "ünï 😀\n" * 10_000])
def test_g3_a_summary_comes_back_whole(words: str) -> None:
    assert open_summary(seal_summary(words)) == words


def test_g3_a_bomb_is_not_unpacked() -> None:
    assert open_summary(seal_summary("a" * (9 * 1024 * 1024))) is None


@pytest.mark.parametrize("word", ["", "x", "dgmc1.", "dgmc1.ä", "dgmc1.eA==", seal_summary("words")[:-8]])
def test_g3_what_is_not_ours_is_not_read(word: str) -> None:
    assert open_summary(word) is None


def test_g3_the_endpoint_asks_compacts_and_goes_on() -> None:
    given = body(message("developer", "base"), user("fix a"), call(), output(), user("and b"), stream=True)
    asked = compact_request(given)
    decoded = openai_responses.decode_request(asked, {})
    assert not decoded.request.stream
    assert decoded.request.messages[-1].parts == (Text(text=SUMMARY_PROMPT),)
    answer = Answer(id="resp_1", model="gpt-5", created_s=9, echo=decoded.echo)
    response = openai_responses.encode_response(collect(whole_stream(text("a is fixed"))), answer)
    compacted = json.loads(compact_response(response, input_items(given, "t")))
    assert (compacted["object"], compacted["created_at"], compacted["id"]) == (
        "response.compaction",
        9,
        "resp_1",
    )
    assert [item["type"] for item in compacted["output"]] == ["message", "message", "compaction"]
    assert [item.get("content") for item in compacted["output"]] == ["fix a", "and b", None]
    assert compacted["usage"]["total_tokens"] == 0
    later = openai_responses.decode_request(body(*compacted["output"], user("go on")), {}).request
    (said,) = later.messages
    assert [part.text for part in said.parts if isinstance(part, Text)] == [
        "fix a",
        "and b",
        PREFACE + "a is fixed",
        "go on",
    ]


@pytest.mark.parametrize(
    ("given", "count"),
    [(b'{"model":"m","input":"hi"}', 2), (b'{"model":"m"}', 1), (b'{"model":"m","input":null}', 1)],
)
def test_g3_any_input_can_be_compacted(given: bytes, count: int) -> None:
    asked = json.loads(compact_request(given))
    assert len(asked["input"]) == count
    assert asked["input"][-1] == {"type": "compaction_trigger"}
    openai_responses.decode_request(compact_request(given), {})


def test_g3_the_endpoint_as_a_dialect_of_its_own() -> None:
    dialect = CompactClient("t")
    decoded = dialect.decode_request(body(user("fix a")), {})
    answer = Answer(id="resp_1", model="gpt-5", echo=decoded.echo)
    events = whole_stream(text("a is fixed"))
    compacted = json.loads(dialect.encode_response(collect(events), answer))
    assert [item["type"] for item in compacted["output"]] == ["message", "compaction"]
    stream = dialect.stream(answer)
    assert b'"type":"compaction"' in stream.open() + b"".join(map(stream.feed, events))
    assert dialect.encode_error(DragomanError("no", kind="not_found")).status == 404
    assert dialect.encode_count(3) == openai_responses.encode_count(3)
