"""A conversation's state: the request as a whole."""

from __future__ import annotations

import json

import pytest

from dragoman.dialects.amazonq import AmazonQ
from dragoman.ir import Message, Request, Text
from tests.unit.dialects.amazonq.builders import (
    CONTEXT,
    CURRENT,
    HISTORY,
    USER,
    assistant,
    body,
    decode,
    messages,
    noted,
    refusal,
    refused,
    request,
    results,
    tool,
    user,
    with_tools,
)


def test_history_and_the_current_message_are_one_conversation() -> None:
    assert messages(user("one"), assistant("two"), user("three")) == (
        Message(role="user", parts=(Text(text="one"),)),
        Message(role="model", parts=(Text(text="two"),)),
        Message(role="user", parts=(Text(text="three"),)),
    )


def test_a_request_always_streams_and_belongs_to_its_conversation() -> None:
    found = request(user("hi", modelId="claude-sonnet-4"), systemPrompt="be brief")
    assert found == Request(
        model="claude-sonnet-4",
        messages=(Message(role="user", parts=(Text(text="hi"),)),),
        system=(Text(text="be brief"),),
        stream=True,
        session="c-1",
    )


@pytest.mark.parametrize(
    "given",
    [
        {"history": None, "conversationId": None},
        {
            "agentContinuationId": None,
            "workspaceId": None,
            "customizationArn": None,
            "chatTriggerType": "MANUAL",
        },
        {"agentTaskType": "vibe", "rootConversationId": "r", "somethingNew": {"a": [1]}},
    ],
)
def test_null_is_absent_and_what_is_unknown_is_tolerated(given: dict[str, object]) -> None:
    message = {
        **user("hi", modelId=None, images=None, documents=None, origin="CLI", cachePoint={"type": "default"}),
        "assistantResponseMessage": None,
    }
    state = {"currentMessage": message, **given}
    raw = {
        "conversationState": state,
        "profileArn": None,
        "source": None,
        "dryRun": None,
        "systemPrompt": None,
    }
    found = AmazonQ().decode_request(json.dumps(raw).encode(), {})
    assert found.request == Request(
        model="", messages=(Message(role="user", parts=(Text(text="hi"),)),), stream=True
    )
    assert found.notes == ()


def test_the_answer_tells_the_conversation_in_a_header() -> None:
    assert decode().headers == (("x-amzn-codewhisperer-conversation-id", "c-1"),)
    assert decode().echo.conversation_id == "c-1"


def test_a_conversation_without_a_name_gets_one() -> None:
    named = AmazonQ(conversation_id="fresh").decode_request(body(conversation_id=None), {})
    assert named.headers == (("x-amzn-codewhisperer-conversation-id", "fresh"),)
    assert (named.request.session, named.echo.conversation_id) == ("fresh", "fresh")
    kept = AmazonQ(conversation_id="fresh").decode_request(body(), {})
    assert kept.request.session == "c-1"


@pytest.mark.parametrize("name", ["a\r\nset-cookie: x", "ünï", "x" * 300, "", "two words"])
def test_q_a_name_that_is_no_header_is_told_in_the_stream_alone(name: str) -> None:
    found = decode(conversation_id=name)
    assert (found.headers, found.request.session) == ((), name)


def test_tools_and_model_are_those_of_the_current_message() -> None:
    before = user("hi", modelId="old", context={"tools": [tool("old")]})
    found = request(before, assistant("x"), with_tools(tool("new")))
    assert ([one.name for one in found.tools], found.model) == (["new"], "")
    assert noted(before, assistant("x"), user("y")) == [("dropped", f"{HISTORY}[0]{CONTEXT}.tools")]


def test_empty_strings_vanish() -> None:
    assert messages(user(""), assistant(""), user("x")) == (Message(role="user", parts=(Text(text="x"),)),)


def test_nothing_at_all_is_refused_by_name() -> None:
    assert refused(user("")).where == f"{CURRENT}{USER}.content"


def test_a_dry_run_would_cost_what_a_real_one_does() -> None:
    assert refused(dryRun=True).where == "dryRun"
    assert request(dryRun=False).stream


@pytest.mark.parametrize(
    ("raw", "where"),
    [
        (b"", ""),
        (b"[]", ""),
        (b'{"conversationState":{}}', "conversationState"),
        (b'{"conversationState":{"currentMessage":null}}', CURRENT),
        (b'{"conversationState":{"currentMessage":{}}}', CURRENT),
        (body(user(5)), f"{CURRENT}{USER}.content"),
        (body(user(), {}, user()), f"{HISTORY}[1]"),
        (body({**user(), **assistant()}), CURRENT),
        (body(user(), {"assistantResponseMessage": 5}, user()), f"{HISTORY}[1].assistantResponseMessage"),
        (body(systemPrompt=5), "systemPrompt"),
        (body(results({"content": []})), f"{CURRENT}{CONTEXT}.toolResults[0]"),
        (b'{"conversationState":{"currentMessage":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_002, ""),
    ],
)
def test_n7_what_cannot_be_read_is_refused_with_its_place(raw: bytes, where: str) -> None:
    assert refusal(raw).where == where


def test_half_an_emoji_does_not_cost_the_request() -> None:
    raw = body(user("A"), assistant("B"), user("C"), systemPrompt="D")
    for letter in b"ABCD":
        AmazonQ().decode_request(raw.replace(b'"%c"' % letter, b'"\\ud83d"'), {})


def test_every_message_of_the_history_is_read_once() -> None:
    one, other = (messages(user("the same"), assistant("words"), user(word)) for word in ("a", "b"))
    assert one[0] is other[0]
    assert one[1] is other[1]
