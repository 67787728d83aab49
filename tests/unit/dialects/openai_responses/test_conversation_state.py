"""Bodies and items as a session keeps them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects import openai_responses
from dragoman.dialects.openai_responses.conversation_state import (
    Inherited,
    encode_list,
    expand,
    forces_a_call,
    inheritable,
    input_items,
    links_of,
    output_items,
    references,
    since_compaction,
    storable_items,
    unanswerable,
)
from dragoman.errors import InvalidRequest
from tests.unit.dialects.openai_responses.builders import body, call, function, output, refusal, user
from tests.unit.dialects.openai_responses.stream_checks import call as call_events
from tests.unit.dialects.openai_responses.stream_checks import text, whole
from tests.unit.dialects.stream_checks import whole_stream


def loads(items: Any) -> list[Any]:
    return [json.loads(item) for item in items]


def test_every_item_of_a_body_has_a_type_and_an_id() -> None:
    given = [
        {"role": "user", "content": "a"},
        call(id="fc_9"),
        output(),
        {"type": "shell_call", "call_id": "c"},
    ]
    got = loads(input_items(body(*given), "tok"))
    assert [(item["type"], item["id"]) for item in got] == [
        ("message", "msg_tok_in0"),
        ("function_call", "fc_9"),
        ("function_call_output", "fco_tok_in2"),
        ("shell_call", "item_tok_in3"),
    ]
    assert got[0]["content"] == "a"


def test_an_item_that_has_both_keeps_its_very_bytes() -> None:
    raw = b'{"type":"message",  "id":"msg_1","role":"user","content":"a"}'
    assert input_items(b'{"model":"m","input":[' + raw + b"]}", "tok") == (raw,)


def test_a_string_is_an_item_too() -> None:
    (item,) = loads(input_items(b'{"model":"m","input":"hi"}', "tok"))
    assert item == {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "hi"}],
        "id": "msg_tok_in0",
    }


@pytest.mark.parametrize(
    "raw", [b'{"model":"m"}', b'{"model":"m","input":null}', b'{"model":"m","input":[]}']
)
def test_no_input_is_no_items(raw: bytes) -> None:
    assert input_items(raw, "tok") == ()


def test_the_items_of_an_answer_follow_those_of_its_request() -> None:
    response = whole(whole_stream([*text("a"), *call_events("call_1")]))
    got = loads(output_items(json.dumps(response).encode()))
    assert got == response["output"]


def test_a_follow_up_of_results_only_is_a_whole_request_again() -> None:
    """The session keeps history, tools and choice: what the specification's clients send."""
    first = body(user("weather?"), tools=[function()], tool_choice="required", instructions="brief")
    answered = json.dumps(whole(whole_stream(call_events("call_1")))).encode()
    earlier = (*input_items(first, "t1"), *output_items(answered))
    follow_up = body(output(), previous_response_id="resp_1", metadata={"k": "v"})
    expanded = expand(follow_up, earlier, inheritable(first))
    request = openai_responses.decode_request(expanded, {}).request
    assert [message.role for message in request.messages] == ["user", "model", "user"]
    assert [tool.name for tool in request.tools] == ["read"]
    assert request.tool_choice.mode == "any"
    assert [text.text for text in request.system] == ["brief"]
    assert json.loads(expanded)["metadata"] == {"k": "v"}


def test_what_the_follow_up_says_itself_counts() -> None:
    inherited = Inherited(tools=b'[{"type":"web_search"}]', tool_choice=b'"required"', instructions=b'"old"')
    own = json.loads(expand(body(user("x"), tools=[], tool_choice="none", instructions="new"), (), inherited))
    assert (own["tools"], own["tool_choice"], own["instructions"]) == ([], "none", "new")
    silent = json.loads(expand(body(user("x"), tools=None), (), inherited))
    assert (silent["tools"], silent["tool_choice"]) == ([{"type": "web_search"}], "required")
    assert json.loads(expand(body(user("x")))) == json.loads(body(user("x")))


def test_nothing_to_inherit_is_nothing() -> None:
    assert inheritable(b'{"tools":null,"input":"x"}') == Inherited()


def test_references_become_the_items_they_name() -> None:
    raw = body({"type": "item_reference", "id": "msg_1"}, {"id": "msg_2"}, user("x"))
    assert references(raw) == ("msg_1", "msg_2")
    stored = {"msg_1": b'{"type":"message","id":"msg_1","role":"user","content":"one"}'}
    earlier = (b'{"type":"message","id":"msg_2","role":"user","content":"two"}',)
    got = json.loads(expand(raw, earlier, found=stored))["input"]
    assert [item["content"] for item in got] == ["two", "one", "x"]


def test_a_reference_nobody_knows_is_refused_at_its_place() -> None:
    error = refusal(expand(body(user("x"), {"id": "msg_9"})))
    assert (error.where, "'msg_9'" in error.message) == ("input[1].id", True)


def test_a_reference_without_an_id_names_nothing() -> None:
    assert refusal(expand(body({"type": "item_reference"}))).where == "input[0].id"
    assert references(body({"type": "item_reference"})) == ("",)


def test_links_of_a_body() -> None:
    links = links_of(b'{"model":"m","previous_response_id":"resp_1","conversation":{"id":"c"},"store":false}')
    assert (links.previous_response_id, links.conversation_id, links.store) == ("resp_1", "c", False)
    assert links_of(b'{"conversation":"c"}').conversation_id == "c"
    assert links_of(b"{}").conversation_id is None


def test_a_list_of_items_has_its_ends() -> None:
    first, last = (f'{{"type":"message","id":"msg_{n}"}}'.encode() for n in (1, 2))
    assert json.loads(encode_list([first, last])) == {
        "object": "list",
        "data": loads([first, last]),
        "first_id": "msg_1",
        "last_id": "msg_2",
        "has_more": False,
    }
    assert json.loads(encode_list([]))["first_id"] is None
    assert json.loads(encode_list([first], has_more=True))["has_more"] is True


def test_a_result_for_a_call_that_nobody_made_is_found() -> None:
    made, answered, stray = (json.dumps(item).encode() for item in (call(), output(), output(call_id="x")))
    assert unanswerable([answered], [made]) == ""
    assert unanswerable([made, answered], []) == ""
    assert unanswerable([answered, stray], [made]) == "x"
    assert unanswerable([json.dumps(user("q")).encode()], []) == ""


@pytest.mark.parametrize("raw", [b"[]", b"", b'{"input":5}', b'{"input":[5]}'])
def test_what_is_no_body_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidRequest):
        input_items(raw, "tok")


@pytest.mark.parametrize(
    ("choice", "forced"),
    [
        (b"", False),
        (b'"auto"', False),
        (b'"none"', False),
        (b'"required"', True),
        (b'{"type":"function","name":"f"}', True),
        (b'{"type":"allowed_tools","mode":"auto","tools":[]}', False),
        (b'{"type":"allowed_tools","mode":"required","tools":[]}', True),
    ],
)
def test_a_choice_that_forces_a_call_is_told_from_one_that_does_not(choice: bytes, forced: bool) -> None:
    assert forces_a_call(choice) is forced


def test_g3_a_session_keeps_no_trigger() -> None:
    items = input_items(body(user("a"), {"type": "compaction_trigger"}), "t")
    assert loads(storable_items(items)) == loads(items[:1])


def test_only_the_new_items_are_looked_at_and_their_ids_tell_their_places() -> None:
    raw = body({"type": 5}, user("b"))
    assert [item["id"] for item in loads(input_items(raw, "t", first=1))] == ["msg_t_in1"]


def test_g3_only_the_last_summary_and_what_follows_is_read_again() -> None:
    said = [
        b'{"type":"message","role":"user","content":"about \\"compaction\\""}',
        b'{"type":"message","role":"user","content":"x"}',
    ]
    summary = b'{"type":"compaction","id":"c","encrypted_content":"dgmc1."}'
    assert since_compaction(said) == said
    assert since_compaction([*said, summary, said[1]]) == [summary, said[1]]
    assert since_compaction([summary, said[0], summary, said[1]]) == [summary, said[1]]
    assert since_compaction([b'{"type":"message","role":"user","content":"compaction"}']) != []
    assert since_compaction([]) == []
