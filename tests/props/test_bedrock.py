"""What holds for Bedrock's clients alone; the rest in `test_exchange_properties` and `test_exchange_play`."""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects import CLIENTS
from dragoman.dialects.base import Answer
from dragoman.dialects.bedrock import ConverseClient, InvokeClient
from dragoman.errors import DragomanError
from dragoman.ir import (
    AFTER_TEXT,
    ON_TEXT,
    ON_THOUGHT,
    Event,
    Failed,
    Finished,
    Native,
    Signature,
    SignatureDelta,
    Started,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
    collect,
)
from dragoman.ir.grammar import check_events as check_events
from tests.props.dialect_cases import WIRES
from tests.props.exchange_harness import BREAKS, CHUNKS, ENDS, client_bytes, sse
from tests.props.hypothesis_settings import examples
from tests.unit.dialects.anthropic.strategies import ARGS, WORDS
from tests.unit.dialects.anthropic.stream_checks import assembled, parse
from tests.unit.dialects.bedrock.grammar import frames_of, read_stream
from tests.unit.dialects.bedrock.strategies import REFERRING

Json = dict[str, Any]

WIRE = WIRES["bedrock"]


@examples(40)
@given(request=WIRE.conversations)
def test_every_call_and_result_arrives(request: Json) -> None:
    _, body = WIRE.exchange(request, "gemini-3.8-flash")
    parts = [part for content in json.loads(body)["contents"] for part in content["parts"]]
    sent = [part["functionCall"] for part in parts if "functionCall" in part]
    answered = [part["functionResponse"] for part in parts if "functionResponse" in part]
    blocks = [block for message in request["messages"] for block in message["content"]]
    uses = [block["toolUse"] for block in blocks if "type" not in block.get("toolUse", {"type": 1})]
    results = {one["toolUseId"]: one for block in blocks if (one := block.get("toolResult")) is not None}
    assert [call["id"] for call in sent] == [use["toolUseId"] for use in uses]
    assert [response["id"] for response in answered] == [use["toolUseId"] for use in uses]
    for call, response, use in zip(sent, answered, uses, strict=True):
        assert call["args"] == use["input"]
        result = results[use["toolUseId"]]
        (only,) = result["content"] if len(result["content"]) == 1 else ({},)
        value = only.get("json")
        if value == REFERRING:
            assert "#/b" in str(response["response"])
        elif isinstance(value, dict):
            failed = result.get("status") == "error"
            assert _has(response["response"], {"error": value} if failed else value)


def _has(response: Json, value: Json) -> bool:
    """A remark of the program may stand beside what the tool answered, or behind its words."""
    return all(
        response.get(key) == item or (isinstance(item, str) and str(response.get(key)).startswith(item))
        for key, item in value.items()
    )


MESSAGES_REQUEST: Json = {
    "anthropic_version": "bedrock-2023-05-31",
    "max_tokens": 9000,
    "messages": [{"role": "user", "content": "q"}],
    "tools": [{"name": "Read", "input_schema": {"type": "object"}}],
}


@examples(40)
@given(chunks=CHUNKS, broken=BREAKS, question=WIRE.questions)
def test_e7_a_broken_answer_is_an_exception_to_everybody(
    chunks: list[Json], broken: list[Json], question: Json
) -> None:
    streamed, _ = WIRE.client_bytes(question, [sse(chunks + broken)], stream=True)
    told = read_stream(streamed)
    assert told.failure is not None
    assert told.metadata == {}


@examples(60)
@given(chunks=CHUNKS, end=ENDS, thinking=st.sampled_from([{}, {"thinking": {"type": "adaptive"}}]))
def test_invoke_says_what_the_messages_api_says(chunks: list[Json], end: Json, thinking: Json) -> None:
    asked = {**MESSAGES_REQUEST, **thinking}
    data = sse([*chunks, end])
    messages = CLIENTS["anthropic"]
    wrapped, known = client_bytes(InvokeClient(messages, "m", stream=True), asked, [data], stream=True)
    events = [base64.b64decode(json.loads(frame.payload)["bytes"]) for frame in frames_of(wrapped)]
    framed = b"".join(b"event: %b\ndata: %b\n\n" % (json.loads(one)["type"].encode(), one) for one in events)
    plain, same = client_bytes(messages, {**asked, "model": "m", "stream": True}, [data], stream=True)
    assert [event["data"] for event in parse(framed)] == [event["data"] for event in parse(plain)]
    assert known == same
    whole, _ = client_bytes(InvokeClient(messages, "m", stream=False), asked, [data], stream=False)
    assert {**assembled(framed), "id": ""} == {**json.loads(whole), "id": ""}


SIGNATURES = st.builds(Signature, st.sampled_from(["c2ln", "b3RoZXI="]), st.just("gemini-g3"))
CALLS = st.builds(
    lambda number, name, signature, args: [
        ToolCall(id=f"t{number}", name=name, args=args, signature=signature)
    ],
    st.integers(0, 99),
    st.sampled_from(["Read", "Bash"]),
    st.none() | SIGNATURES,
    ARGS.map(json.dumps).map(str.encode),
)
ITEMS: st.SearchStrategy[list[Any]] = st.one_of(
    WORDS.map(lambda words: [TextDelta(words)]),
    WORDS.map(lambda words: [ThoughtDelta(words)]),
    st.builds(SignatureDelta, SIGNATURES, st.sampled_from([ON_TEXT, AFTER_TEXT, ON_THOUGHT])).map(
        lambda event: [event]
    ),
    st.builds(Usage, input_tokens=st.integers(0, 99), output_tokens=st.integers(0, 99)).map(
        lambda event: [event]
    ),
    st.just([Native(json=b"{}")]),
    CALLS,
)
ENDINGS: st.SearchStrategy[Event] = st.one_of(
    st.sampled_from([Finished(reason="end"), Finished(reason="blocked"), Finished(reason="max_tokens")]),
    st.just(Failed(DragomanError("cut", kind="overloaded"))),
)


@examples(300)
@given(
    items=st.lists(ITEMS, max_size=8),
    ending=ENDINGS,
    cut=st.none() | st.integers(0, 30),
    thinking=st.booleans(),
    pinging=st.booleans(),
)
def test_e1_any_legal_events_give_a_legal_stream(
    items: list[list[Event]], ending: Event, cut: int | None, thinking: bool, pinging: bool
) -> None:
    """Also one that fails in the middle of anything; heartbeats may come at any moment."""
    events = [Started("m", "r"), *(event for item in items for event in item)]
    if cut is not None:
        events, ending = events[: 1 + cut], Failed(DragomanError("cut", kind="overloaded"))
    events = [*events, ending]
    assert check_events(events) is None
    answer = Answer(id="a", model="m", with_thinking=thinking, elapsed_ms=lambda: 3)
    client = ConverseClient("m", stream=True)
    stream = client.stream(answer)
    data = stream.open() + b"".join((stream.ping() if pinging else b"") + stream.feed(e) for e in events)
    told = read_stream(data)
    assert (told.failure is not None) == isinstance(ending, Failed)
    if told.failure is None:
        assert told.as_whole() == json.loads(client.encode_response(collect(events), answer))
