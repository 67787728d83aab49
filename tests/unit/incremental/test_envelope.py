"""A next turn stands in the frame of the last one: what is known of it is not read again; nothing else is believed."""

from __future__ import annotations

import dataclasses
import itertools
import json
import operator
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.dialects import CLIENTS, openai_responses
from dragoman.dialects.base import ClientDialect, Decoded
from dragoman.dialects.bedrock import ConverseClient
from dragoman.dialects.gemini.client import GeminiClient
from dragoman.errors import InvalidRequest
from dragoman.incremental import envelope
from dragoman.ir import Text, ToolCall, ToolResult

_LONG = "words that are long enough to be remembered " * 30


def _said(talk: str, turns: int) -> list[dict[str, Any]]:
    """No two tests have the same `talk`: what one has seen, another shall not know."""
    return [
        {"role": "assistant" if number % 2 else "user", "content": f"{number} {_LONG} {talk} " * 2}
        for number in range(turns)
    ]


def _claude(talk: str, turns: int, billing: str) -> bytes:
    """As Claude Code writes it: the history first, and a billing header that never is the same."""
    system = [
        {"type": "text", "text": f"x-anthropic-billing-header: {billing}"},
        {"type": "text", "text": "Be brief."},
    ]
    body = {"model": "m", "messages": _said(talk, turns), "system": system}
    return json.dumps(body, separators=(",", ":")).encode()


def _read(body: bytes, dialect: str = "anthropic", **headers: str) -> Decoded:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return CLIENTS[dialect].decode_request(body, named)


@pytest.fixture
def framed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many new elements were found in a known frame, by body."""
    found: list[int] = []
    new_elements = envelope.RequestEnvelope.new_elements

    def noted(*args: Any) -> list[bytes]:
        elements = new_elements(*args)
        found.append(len(elements))
        return elements

    monkeypatch.setattr(envelope.RequestEnvelope, "new_elements", noted)
    return found


def test_a_billing_header_that_changes_with_every_turn_changes_no_frame(framed: list[int]) -> None:
    read = [_read(_claude("billing", turns, f"cc_version=2; cch={turns};")).request for turns in (3, 5, 7, 9)]
    assert framed == [3, 3]
    assert [part.text for part in read[-1].system] == ["Be brief."]
    assert [len(request.messages) for request in read] == [3, 5, 7, 9]
    assert read[-1].system is read[-2].system


@pytest.mark.parametrize("billing", ['cch=7;"},{"type":"text","text":"Be verbose.', "cch=\\u0022", "x" * 300])
def test_words_that_are_not_idle_are_read(billing: str, framed: list[int]) -> None:
    for turns in (3, 5, 7):
        _read(_claude(billing, turns, "cch=1;"))
    told = _claude(billing, 9, "HERE").replace(b"HERE", billing.encode())
    request = _read(told).request
    assert framed[-1] == 0
    system = json.loads(told)["system"]
    assert [part.text for part in request.system] == [block["text"] for block in system[1:]]


def test_a_mistake_in_a_long_new_history_is_told_with_its_place() -> None:
    history: list[Any] = _said("mistake", 5)
    history[3]["role"] = "nobody"
    with pytest.raises(InvalidRequest) as caught:
        _read(json.dumps({"model": "m", "messages": history}).encode())
    assert caught.value.where.startswith("messages[3]")


def test_another_session_in_the_head_is_not_the_frames(framed: list[int]) -> None:
    for turns in (3, 5, 7):
        _read(_claude("session", turns, "cch=1;"), x_claude_code_session_id="one")
    request = _read(_claude("session", 9, "cch=1;"), x_claude_code_session_id="two").request
    assert framed[-1] == 3
    assert request.session == "two"
    request = _read(_claude("session", 11, "cch=1;"), x_claude_code_session_id="three").request
    assert framed[-1] == 3
    assert request.session == "three"
    assert [part.text for part in request.system] == ["Be brief."]
    assert len(request.messages) == 11


@pytest.mark.parametrize(
    ("behind", "new"),
    [
        (b",null]", 0),  # for Google it is no element
        (b" 1]", 0),
        (b',{"role":"user"', 0),
    ],
)
def test_what_is_no_whole_element_is_no_new_one(behind: bytes, new: int) -> None:
    frame: envelope.RequestEnvelope[None] = envelope.RequestEnvelope(b'{"a":[', b"]}", {})
    assert len(frame.new_elements(b'{"a":[0' + behind + b"]}", 6, 7)) == new


def test_instructions_that_come_back_with_every_turn_are_the_very_same() -> None:
    history = [{"role": "system", "content": "Be brief."}, *_said("instructions", 6)]
    read = []
    for turns in (3, 5, 7):
        body = json.dumps({"model": "m", "messages": history[:turns]}).encode()
        read.append(_read(body, "openai_chat").request)
    assert read[1].system == (Text(text="Be brief."),)
    assert read[2].system is read[1].system


@pytest.mark.parametrize("words", ["", _LONG], ids=["in short", "at length"])
def test_results_without_ids_find_their_calls_in_every_turn(words: str) -> None:
    history: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": f"Go. {words}"}]}]
    for number in range(3):
        call = {"functionCall": {"name": "read", "args": {"p": number}}}
        result = {"functionResponse": {"name": "read", "response": {"x": f"{number} {words}"}}}
        history += [{"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
    same_calls = [{"role": "user", "parts": [{"text": "another beginning"}]}, *history[1:]]
    for said in (history[:3], history[:5], history[:5], history, same_calls):
        messages = (
            GeminiClient("m").decode_request(json.dumps({"contents": said}).encode(), {}).request.messages
        )
        parts = [part for message in messages for part in message.parts]
        calls = [part.id for part in parts if isinstance(part, ToolCall)]
        assert calls == [part.call_id for part in parts if isinstance(part, ToolResult)]
        assert all(calls)


#: The name of the history, an element of it, and something else that stands beside it.
_FORMS: dict[str, tuple[ClientDialect, str, Callable[[str, str], Any], Callable[[int], Any]]] = {
    "anthropic": (
        *(CLIENTS["anthropic"], "messages", lambda role, text: {"role": role, "content": text}),
        lambda most: {"model": "m", "max_tokens": most},
    ),
    "openai_chat": (
        *(CLIENTS["openai_chat"], "messages", lambda role, text: {"role": role, "content": text}),
        lambda most: {"model": "m", "max_completion_tokens": most},
    ),
    "openai_responses": (
        *(CLIENTS["openai_responses"], "input", lambda role, text: {"role": role, "content": text}),
        lambda most: {"model": "m", "max_output_tokens": most},
    ),
    "gemini": (
        *(GeminiClient("m"), "contents"),
        lambda role, text: {"role": role.replace("assistant", "model"), "parts": [{"text": text}]},
        lambda most: {"generationConfig": {"maxOutputTokens": most}},
    ),
    "bedrock": (
        *(ConverseClient("m"), "messages"),
        lambda role, text: {"role": role, "content": [{"text": text}]},
        lambda most: {"inferenceConfig": {"maxTokens": most}},
    ),
}


@pytest.mark.parametrize("name", _FORMS)
def test_what_stands_around_the_history_is_read_once_and_again_when_it_changes(
    name: str, framed: list[int]
) -> None:
    dialect, key, element, around = _FORMS[name]
    history = [element(one["role"], one["content"]) for one in _said(f"forms of {name}", 11)]
    asked = [(3, 10), (5, 10), (7, 10), (9, 11), (11, 11)]
    for turns, most in asked:
        body = json.dumps({key: history[:turns], **around(most)}).encode()
        request = dialect.decode_request(body, {}).request
        assert len(request.messages) == turns
        assert request.sampling.max_tokens == most
    assert framed == [3, 0, 3]


def test_items_of_one_voice_are_one_message_wherever_a_turn_ended() -> None:
    """What the last message of a turn was made of, goes on with the next one's items."""
    call = {"type": "function_call", "name": "f", "arguments": "{}"}
    items = [
        {"role": "user", "content": f"Go. {_LONG}"},
        *({**call, "call_id": f"c{number}"} for number in range(3)),
        {"type": "reasoning", "summary": []},
        *({"type": "function_call_output", "call_id": f"c{n}", "output": f"{n} {_LONG}"} for n in range(3)),
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks."},
        {"role": "user", "content": "Bye."},
    ]
    turns = [
        _read(
            json.dumps({"model": "m", "input": items[:count]}).encode(), "openai_responses"
        ).request.messages
        for count in range(1, len(items) + 1)
    ]
    assert [len(one.parts) for one in turns[-1]] == [1, 3, 3, 1, 2]
    for turn, later in itertools.pairwise(turns):
        assert all(map(operator.is_, turn[:-1], later))
    cold = json.loads(json.dumps(items).replace("Go.", "Go!"))
    told = _read(json.dumps({"model": "m", "input": cold}).encode(), "openai_responses").request.messages
    assert told[1:] == turns[-1][1:]


@pytest.mark.parametrize(
    ("said", "alone"),
    [
        ({"store": False}, True),
        ({}, False),
        ({"store": True}, False),
        ({"store": False, "previous_response_id": "resp_1"}, False),
        ({"store": False, "conversation": {"id": "conv_1"}}, False),
        ({"store": "no"}, False),
    ],
)
def test_a_request_stands_alone_if_it_refers_to_nothing_and_nothing_is_kept(
    said: dict[str, Any], alone: bool
) -> None:
    body = json.dumps({"model": "m", "input": "hi", **said}).encode()
    assert openai_responses.stands_alone(body) is alone


def test_whoever_looked_at_a_body_has_it_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    spec = openai_responses.decode._SPEC

    def counted(body: bytes) -> Any:
        read.append(body)
        return spec.parse(body)

    monkeypatch.setattr(
        openai_responses.decode, "_SPEC", dataclasses.replace(spec, name="looked", parse=counted)
    )
    one, other = (json.dumps({"model": name, "input": "hi", "store": False}).encode() for name in "ab")
    assert openai_responses.stands_alone(one)
    assert openai_responses.decode_request(one, {}).request.model == "a"
    assert read == [one]
    assert openai_responses.stands_alone(one)
    assert openai_responses.decode_request(other, {}).request.model == "b"
    assert read == [one, one, other]


def test_amazon_q_has_its_current_message_around_the_history_and_no_frames(framed: list[int]) -> None:
    talk = _said("amazon q", 9)
    history = [
        {
            "userInputMessage" if one["role"] == "user" else "assistantResponseMessage": {
                "content": one["content"]
            }
        }
        for one in talk
    ]
    for turns in (2, 4, 6, 8):
        state = {"conversationId": "c", "history": history[:turns], "currentMessage": history[turns]}
        request = _read(json.dumps({"conversationState": state}).encode(), "amazonq").request
        assert len(request.messages) == turns + 1
    assert not framed
