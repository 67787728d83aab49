"""A benchmark that measures something else than it says is worse than none."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.answer_checks import WrongAnswer, check_upstream, read_answer
from benchmarks.conversation import AGENT, Conversation
from benchmarks.fake_answers import AnswerSpec, encode_answer, encode_stream, find_answer_spec
from benchmarks.http_client import HttpAnswer
from dragoman.dialects import anthropic
from dragoman.dialects.base import Target
from dragoman.ids import new_id
from dragoman.translation.exchange import Exchange

ORDER = AnswerSpec(id="abc1", chunks=3)


def answered(body: bytes, status: int = 200) -> HttpAnswer:
    return HttpAnswer(status=status, body=body, first_byte_s=0.0, total_s=0.0, reads=1)


def test_a_first_request_is_as_big_as_an_agents() -> None:
    assert 100_000 < len(Conversation(AGENT, "s", stream=False).body(ORDER)) < 120_000


def test_the_next_request_repeats_the_messages_before_the_cache_point() -> None:
    conversation = Conversation(AGENT, "s", stream=False)
    first = msgspec.json.decode(conversation.body(ORDER))["messages"]
    conversation.take(read_answer(answered(encode_answer(ORDER)), ORDER, "gemini", stream=False))
    second = msgspec.json.decode(conversation.body(AnswerSpec(id="abc2")))["messages"]
    assert second[: len(first) - 1] == first[:-1]
    assert len(second) > len(first)


def test_two_sessions_share_tools_but_no_message() -> None:
    bodies = [msgspec.json.decode(Conversation(AGENT, seed, stream=False).body(ORDER)) for seed in ("s", "t")]
    assert bodies[0]["tools"] == bodies[1]["tools"]
    assert not [message for message in bodies[0]["messages"] if message in bodies[1]["messages"]]


def test_the_last_mark_is_the_order() -> None:
    assert find_answer_spec(f"{AnswerSpec(id='old').mark()} {ORDER.mark()}".encode()) == ORDER
    assert find_answer_spec(b"nothing here") is None


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_through_the_exchange_is_the_one_ordered(stream: bool) -> None:
    body, sent = through_exchange(stream)
    blocks = read_answer(answered(body), ORDER, "anthropic", stream=stream)
    assert [block["type"] for block in blocks] == ["thinking", "text", "thinking", "tool_use"]
    assert find_answer_spec(sent) == ORDER


@pytest.mark.parametrize("stream", [False, True])
def test_a_wrong_answer_does_not_count(stream: bool) -> None:
    body, _ = through_exchange(stream)
    for broken in (answered(body.replace(b"the whole file", b"a file", 1)), answered(body, status=500)):
        with pytest.raises(WrongAnswer):
            read_answer(broken, ORDER, "anthropic", stream=stream)


def test_a_lost_result_is_noticed_upstream() -> None:
    conversation = Conversation(AGENT, "s", stream=False)
    exchange = Exchange(anthropic, new_id=new_id)
    exchange.decode(conversation.body(ORDER))
    sent = exchange.encode(Target(model="gemini-flash-latest"))
    with pytest.raises(WrongAnswer, match="results"):
        check_upstream(sent.replace(b"     1\\t", b"", 1), conversation, ORDER)


def through_exchange(stream: bool) -> tuple[bytes, bytes]:
    exchange = Exchange(anthropic, new_id=new_id)
    exchange.decode(Conversation(AGENT, "s", stream=stream).body(ORDER))
    sent = exchange.encode(Target(model="gemini-flash-latest"))
    opening = exchange.open()
    chunks = encode_stream(ORDER) if stream else [encode_answer(ORDER)]
    return opening + b"".join(map(exchange.receive, chunks)) + exchange.finish(), sent
