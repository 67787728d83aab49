"""A request in the words of each dialect reaches Gemini whole, and its answer is read back as it was ordered."""

from __future__ import annotations

from contextlib import suppress
from typing import get_args
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from benchmarks.answer_checks import (
    MinorDeviation,
    UnexpectedStop,
    WrongAnswer,
    check_upstream,
    expected_blocks,
    read_answer,
)
from benchmarks.conversation import AGENT, Conversation
from benchmarks.fake_answers import AnswerSpec, encode_answer, encode_stream, find_answer_spec
from benchmarks.http_client import GATEWAY_KEY, HttpAnswer, build_post
from benchmarks.request_encoders import HEADERS, PATHS, Style, encode_request
from benchmarks.response_readers import read_blocks
from dragoman.dialects.base import Target
from dragoman.gateway.routes import find_route
from dragoman.ids import new_id
from dragoman.translation.exchange import Exchange

ORDER = AnswerSpec(id="abc1", chunks=9)
NEXT = AnswerSpec(id="abc2")
STYLES: list[Style] = [style for style in get_args(Style) if style != "floor"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("style", STYLES)
def test_two_turns_in_every_dialect(style: Style, stream: bool) -> None:
    session = Conversation(AGENT, "s", stream=stream)
    said, sent = exchange(style, session, ORDER, stream=stream)
    assert find_answer_spec(sent) == ORDER
    session.take(read_answer(answered(said), ORDER, style, stream=stream))
    _, sent = exchange(style, session, NEXT, stream=stream)
    with suppress(MinorDeviation):  # nobody kept the signature for those who cannot carry it
        check_upstream(sent, session, ORDER)


@pytest.mark.parametrize("style", STYLES)
def test_the_next_request_repeats_what_was_said(style: Style) -> None:
    """Otherwise a next turn would be measured that is none."""
    session = Conversation(AGENT, "s", stream=False)
    first = encode_request(style, session.body(ORDER))
    session.take(expected_blocks(ORDER))
    second = encode_request(style, session.body(NEXT))
    results = [msgspec.json.encode(text)[1:-1] for text in session.texts("tool_result")]
    assert len(results) > 20
    *known, _, _ = [second.index(result) for result in results]
    assert known == sorted(known)
    said = second[known[0] : known[-1]]
    assert said in first


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("stream", [False, True])
def test_half_an_answer_is_wrong_in_every_dialect(style: Style, stream: bool) -> None:
    said, _ = exchange(style, Conversation(AGENT, "s", stream=stream), ORDER, stream=stream)
    for broken in (said[: len(said) // 2], said.replace(b"abc1.py", b"abc7.py"), b""):
        with pytest.raises(WrongAnswer) as caught:
            read_answer(answered(broken), ORDER, style, stream=stream)
        assert not isinstance(caught.value, MinorDeviation)


@pytest.mark.parametrize(("style", "events"), [("anthropic", 1), ("openai_chat", 2), ("openai_responses", 1)])
def test_a_stream_without_its_end_is_wrong(style: Style, events: int) -> None:
    said, _ = exchange(style, Conversation(AGENT, "s", stream=True), ORDER, stream=True)
    cut = said.rstrip().rsplit(b"\n\n", events)[0] + b"\n\n"
    with pytest.raises(WrongAnswer, match="no end"):
        read_answer(answered(cut), ORDER, style, stream=True)


def test_a_finished_chat_without_its_done_is_odd() -> None:
    said, _ = exchange("openai_chat", Conversation(AGENT, "s", stream=True), ORDER, stream=True)
    with pytest.raises(UnexpectedStop, match="and no"):
        read_answer(answered(said.replace(b"data: [DONE]", b"")), ORDER, "openai_chat", stream=True)


def test_a_call_without_its_signature_is_read() -> None:
    said = encode_answer(ORDER).replace(b'"thoughtSignature"', b'"forgotten"')
    thinking, *_ = read_answer(answered(said), ORDER, "gemini", stream=False)
    assert thinking["signature"] == ""


def test_another_ending_is_odd_and_brings_its_blocks() -> None:
    said, _ = exchange("anthropic", Conversation(AGENT, "s", stream=False), ORDER, stream=False)
    broken = said.replace(b'"stop_reason":"tool_use"', b'"stop_reason":"end_turn"')
    with pytest.raises(UnexpectedStop, match="end_turn") as caught:
        read_answer(answered(broken), ORDER, "anthropic", stream=False)
    assert caught.value.blocks[-1]["input"] == ORDER.arguments


def test_a_lost_signature_is_odd_and_a_lost_call_or_tool_is_wrong() -> None:
    session = Conversation(AGENT, "s", stream=False)
    session.take(expected_blocks(ORDER))
    _, sent = exchange("anthropic", session, NEXT, stream=False)
    with pytest.raises(MinorDeviation, match="signature"):
        check_upstream(sent, session, ORDER)
    for lost in (sent.replace(b"abc1.py", b"abc7.py"), sent.replace(b'"name":"Glob"', b'"name":"Glib"')):
        with pytest.raises(WrongAnswer) as caught:
            check_upstream(lost, session, ORDER)
        assert not isinstance(caught.value, MinorDeviation)


def test_a_result_that_never_arrived_is_wrong() -> None:
    session = Conversation(AGENT, "s", stream=False)
    _, sent = exchange("anthropic", session, ORDER, stream=False)
    known = msgspec.json.decode(sent)
    last = known["contents"][-1]
    last["parts"] = [part for part in last["parts"] if "functionResponse" not in part]
    with pytest.raises(WrongAnswer, match="results"):
        check_upstream(msgspec.json.encode(known), session, ORDER)


def test_both_spellings_of_google_are_read() -> None:
    session = Conversation(AGENT, "s", stream=False)
    session.take(expected_blocks(ORDER))
    _, sent = exchange("anthropic", session, NEXT, stream=False)
    sent = sent.replace(b'"functionResponse"', b'"function_response"').replace(
        b'"functionCall"', b'"function_call"'
    )
    with pytest.raises(MinorDeviation):
        check_upstream(sent, session, ORDER)


def test_what_a_wrong_answer_should_have_said_is_what_was_ordered() -> None:
    text, call = expected_blocks(ORDER)
    assert (text["text"], call["input"]) == (ORDER.text, ORDER.arguments)


def test_a_streamed_text_is_the_whole_one_for_any_number_of_chunks() -> None:
    for chunks in range(1, 12):
        order = AnswerSpec(id="abc", chunks=chunks)
        blocks, _ = read_blocks("floor", b"".join(encode_stream(order)), stream=True)
        assert blocks[1]["text"] == order.text
        assert len(encode_stream(order)) == chunks + 2


def test_a_peers_headers_take_the_place_of_our_key() -> None:
    assert GATEWAY_KEY in build_post("anthropic", b"{}", stream=False).decode()
    post = build_post("openai_chat", b"{}", stream=False, headers="x-portkey-provider: google\r\n").decode()
    assert GATEWAY_KEY not in post
    assert "\r\nx-portkey-provider: google\r\ncontent-length: 2\r\n\r\n{}" in post


def exchange(style: Style, session: Conversation, order: AnswerSpec, *, stream: bool) -> tuple[bytes, bytes]:
    """What the client reads and what Gemini got, as the gateway's routes would do it."""
    place = urlsplit(PATHS[style][stream])
    lines = (line.partition(": ") for line in HEADERS[style].strip().split("\r\n"))
    headers = {name: value for name, _, value in lines}
    dialect = find_route("POST", place.path, headers, dict(parse_qsl(place.query))).dialect
    one = Exchange(dialect, new_id=new_id)
    one.decode(encode_request(style, session.body(order)), headers)
    sent = one.encode(Target(model="gemini-flash-latest"))
    streams = stream or style == "amazonq"
    opening = one.open() if streams else b""
    answer = encode_stream(order) if streams else [encode_answer(order)]
    return opening + b"".join(map(one.receive, answer)) + one.finish(), sent


def answered(body: bytes, status: int = 200) -> HttpAnswer:
    return HttpAnswer(status=status, body=body, first_byte_s=0.0, total_s=0.0, reads=1)
