"""One gateway behind every dialect: the same conversation is the same request, the same answer the same answer."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response

from dragoman.dialects import CLIENTS
from dragoman.dialects.base import ClientDialect, Target
from dragoman.dialects.bedrock import ConverseClient
from dragoman.dialects.gemini.client import GeminiClient
from dragoman.http.aws_eventstream import EventStreamDecoder
from dragoman.http.sse import SseDecoder
from dragoman.translation.exchange import Exchange
from tests.props.conversation_strategies import Talk, talks
from tests.props.dialect_encoders import LACKS, TONGUES, speak
from tests.props.hypothesis_settings import examples
from tests.props.sdk_accumulators import FOLDS, Neutral
from tests.unit.dialects.anthropic.strategies import ARGS, WORDS
from tests.unit.dialects.scripted_client import refusal

Json = dict[str, Any]

HELLO = b'data: {"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}\r\n\r\n'
MODELS = (
    "gemini-2.5-flash",
    "gemini-3-flash-preview",
    "gemini-3.5-flash",
    "gemini-3.8-flash",
    "gemini-4-argon",
)
#: Those who frame their events as Amazon does.
AMAZONS = frozenset({"amazonq", "bedrock"})


def _exchange(tongue: str, body: bytes, *, stream: bool = False) -> Exchange:
    tokens = iter(range(10**6))
    made: dict[str, ClientDialect] = {
        "gemini": GeminiClient("m", "sse" if stream else "whole"),
        "bedrock": ConverseClient("m", stream=stream),
    }
    dialect = made.get(tongue) or CLIENTS[tongue]
    exchange = Exchange(dialect, new_id=lambda: f"{next(tokens):016d}", created_s=1)
    exchange.decode(body)
    return exchange


def _upstream(tongue: str, talk: Talk, target: Target) -> bytes:
    """The request Google gets, with the call ids numbered in the order of their appearance."""
    body = _exchange(tongue, speak(tongue, talk)).encode(target)
    parts = [part for content in json.loads(body)["contents"] for part in content["parts"]]
    ids = [part["functionCall"].get("id") for part in parts if "functionCall" in part]
    for number, identity in enumerate(filter(None, ids)):
        body = body.replace(b'"id":"%b"' % identity.encode(), b'"id":"#%d"' % number)
    return body


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("backend", ["gemini", "vertex"])
@examples(40)
@given(talk=talks())
def test_the_same_conversation_is_the_same_request_byte_for_byte(
    model: str, backend: str, talk: Talk
) -> None:
    speakers = [tongue for tongue in TONGUES if not LACKS[tongue] & talk.needs]
    assert len(speakers) >= 2
    target = Target(model=model, backend=backend)
    first, *others = (_upstream(tongue, talk, target) for tongue in speakers)
    for tongue, body in zip(speakers[1:], others, strict=True):
        assert (tongue, body.decode()) == (tongue, first.decode())


@pytest.mark.parametrize("tongue", TONGUES)
@examples(20)
@given(talk=talks())
def test_line_breaks_in_a_request_change_nothing(tongue: str, talk: Talk) -> None:
    """People write JSON over many lines, and some of it comes back inside an event of one line."""
    body = speak(tongue, msgspec.structs.replace(talk, output=None))  # a schema may be quoted as it came
    folded, spread = (
        _spoken(tongue, text) for text in (body, json.dumps(json.loads(body), indent=2).encode())
    )
    assert spread == folded


def _spoken(tongue: str, body: bytes) -> tuple[Any, list[Any]]:
    """What Google gets, and the fields of every event the client hears."""
    exchange = _exchange(tongue, body, stream=True)
    exchange.request = msgspec.structs.replace(exchange.request, stream=True)
    sent = json.loads(exchange.encode(Target(model="gemini-3.8-flash")))
    out = exchange.open() + exchange.receive(HELLO) + exchange.finish()
    return sent, [json.loads(data).keys() for data in _payloads(tongue, out) if data != b"[DONE]"]


def _payloads(tongue: str, out: bytes) -> list[bytes]:
    if tongue in AMAZONS:
        return [message.payload for message in EventStreamDecoder().feed(out)]
    decoder = SseDecoder()
    return [event.data for event in decoder.feed(out) + decoder.close()]


@examples(30)
@given(talk=talks())
def test_google_takes_it_from_everybody(talk: Talk) -> None:
    for tongue in TONGUES:
        if not LACKS[tongue] & talk.needs:
            body = _exchange(tongue, speak(tongue, talk)).encode(Target(model="gemini-3.8-flash"))
            assert refusal("gemini-3.8-flash", body) == ""


#: One question, asked so that the answer's form leaves nothing out.
ASKED: dict[str, Json] = {
    "anthropic": {
        "model": "m",
        "max_tokens": 9000,
        "messages": [{"role": "user", "content": "q"}],
        "tools": [{"name": "Read", "input_schema": {"type": "object"}}],
    },
    "openai_chat": {
        "model": "m",
        "messages": [{"role": "user", "content": "q"}],
        "tools": [{"type": "function", "function": {"name": "Read"}}],
        "stream_options": {"include_usage": True},
    },
    "openai_responses": {"model": "m", "input": "q", "tools": [{"type": "function", "name": "Read"}]},
    "gemini": {"contents": "q", "tools": [{"functionDeclarations": [{"name": "Read"}]}]},
    "amazonq": {
        "conversationState": {
            "currentMessage": {
                "userInputMessage": {
                    "content": "q",
                    "userInputMessageContext": {"tools": [{"toolSpecification": {"name": "Read"}}]},
                }
            }
        }
    },
    "bedrock": {
        "messages": [{"role": "user", "content": [{"text": "q"}]}],
        "toolConfig": {
            "tools": [{"toolSpec": {"name": "Read", "inputSchema": {"json": {"type": "object"}}}}]
        },
        "additionalModelResponseFieldPaths": ["/usage"],
    },
}
PARTS = st.one_of(
    WORDS.map(lambda words: {"text": words}),
    WORDS.map(lambda words: {"text": words, "thought": True}),
    WORDS.map(lambda words: {"text": words, "thoughtSignature": "YQ=="}),
    st.builds(
        lambda name, args, more: {"functionCall": {"name": name, "args": args}, **more},
        st.sampled_from(["Read", "unknown"]),
        ARGS,
        st.sampled_from([{}, {"thoughtSignature": "Yg=="}]),
    ),
)
COUNTS = st.tuples(st.integers(1, 99), st.integers(0, 50), st.integers(1, 99), st.integers(0, 99))
REASONS = st.sampled_from(["STOP", "STOP", "MAX_TOKENS", "SAFETY"])


@st.composite
def answers(draw: st.DrawFn) -> list[Json]:
    """Google's chunks, the last one with the reason and the counts."""
    prompt, cached, said, thoughts = draw(COUNTS)
    parts = draw(st.lists(st.lists(PARTS, min_size=1, max_size=3), min_size=1, max_size=4))
    candidates: list[Json] = [{"content": {"parts": entry, "role": "model"}} for entry in parts]
    candidates[-1]["finishReason"] = draw(REASONS)
    chunks: list[Json] = [{"candidates": [candidate], "modelVersion": "m"} for candidate in candidates]
    chunks[-1]["usageMetadata"] = {
        "promptTokenCount": prompt + cached,
        "cachedContentTokenCount": cached,
        "candidatesTokenCount": said,
        "thoughtsTokenCount": thoughts,
        "totalTokenCount": prompt + cached + said + thoughts,
    }
    return chunks


def _told(tongue: str, chunks: list[Json], *, stream: bool) -> Neutral:
    body = {**ASKED[tongue], **({"stream": stream} if tongue in CLIENTS else {})}
    exchange = _exchange(tongue, json.dumps(body).encode(), stream=stream)
    exchange.request = msgspec.structs.replace(exchange.request, stream=stream)
    exchange.encode(Target(model="gemini-3.8-flash"))
    data = b"".join(b"data: %b\r\n\r\n" % json.dumps(chunk).encode() for chunk in chunks)
    return FOLDS[tongue](exchange.open() + exchange.receive(data) + exchange.finish(), stream=stream)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@examples(80)
@given(chunks=answers())
def test_the_same_answer_means_the_same_to_every_vendors_sdk(stream: bool, chunks: list[Json]) -> None:
    counts = chunks[-1]["usageMetadata"]
    parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    reason = chunks[-1]["candidates"][0]["finishReason"]
    meaning = {"MAX_TOKENS": "cut", "SAFETY": "blocked"}.get(reason, "calls" if calls else "end")
    said = Neutral(
        text="".join(part["text"] for part in parts if "text" in part and not part.get("thought")),
        calls=[(call["name"], call["args"]) for call in calls],
        finish=meaning,
        tokens=(
            counts["promptTokenCount"],
            counts["cachedContentTokenCount"],
            counts["candidatesTokenCount"] + counts["thoughtsTokenCount"],
            counts["thoughtsTokenCount"],
        ),
    )
    without_thoughts = msgspec.structs.replace(said, tokens=(*said.tokens[:3], 0))
    for tongue in TONGUES:
        expected = without_thoughts if tongue == "amazonq" else said
        assert (tongue, _told(tongue, chunks, stream=stream)) == (tongue, expected)


def test_the_nested_form_of_tools_is_told_back_in_a_form_openais_types_know() -> None:
    """The Responses API repeats tools and choice in its answer; a typed client reads them."""
    function = {"name": "Read", "parameters": {"type": "object", "properties": {}}}
    nested = {"type": "function", "function": function}
    choice = {"type": "function", "function": {"name": "Read"}}
    body = {"model": "m", "input": "q", "tools": [nested], "tool_choice": choice}
    exchange = _exchange("openai_responses", json.dumps(body).encode())
    exchange.encode(Target(model="gemini-3.8-flash"))
    exchange.receive(HELLO)
    response = Response.model_validate_json(exchange.finish(), strict=True)
    assert [tool.type for tool in response.tools] == ["function"]
