"""Events to the Responses stream, and the same answer whole."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import pytest

from dragoman.dialects import openai_responses
from dragoman.dialects.base import Answer
from dragoman.dialects.openai_responses.compaction import open_summary
from dragoman.errors import DragomanError, UpstreamIncomplete
from dragoman.ir import (
    AFTER_TEXT,
    ON_TEXT,
    ON_THOUGHT,
    Event,
    Failed,
    Finished,
    Native,
    SignatureDelta,
    Started,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
    seal,
)
from tests.corpus.responses_adapter import parse_events
from tests.unit.dialects.openai_responses.stream_checks import (
    answer,
    call,
    items,
    names,
    stream_bytes,
    streamed,
    text,
    whole,
)
from tests.unit.dialects.stream_checks import OTHER, SIGNATURE, whole_stream

THOUGHT: list[Event] = [ThoughtDelta("h"), ThoughtDelta("m")]
SIGNED = SignatureDelta(SIGNATURE, ON_THOUGHT)
BLOCKED = Finished(reason="blocked", raw="SAFETY", detail="no")

#: name -> events, and the output: (type, what it holds) per item
TABLE: dict[str, tuple[list[Event], list[tuple[str, Any]]]] = {
    "nothing": ([], []),
    "text": (text("a", "b"), [("message", "ab")]),
    "empty pieces": ([TextDelta(""), ThoughtDelta(""), *text("a", "", "b")], [("message", "ab")]),
    "thought and text": ([*THOUGHT, *text("a")], [("reasoning", ("hm", None)), ("message", "a")]),
    "text around a call": (
        [*text("a"), *call("call_1"), *text("b")],
        [("message", "a"), ("function_call", "call_1"), ("message", "b")],
    ),
    "a1 signed call": (
        call("call_1", SIGNATURE),
        [("reasoning", ("", seal(SIGNATURE, "call_1"))), ("function_call", "call_1")],
    ),
    "a1 thought and signed call": (
        [*THOUGHT, *call("call_1", SIGNATURE)],
        [("reasoning", ("hm", seal(SIGNATURE, "call_1"))), ("function_call", "call_1")],
    ),
    "a13 parallel calls": (
        [*call("call_1", SIGNATURE), *call("call_2"), *call("call_3", OTHER)],
        [
            ("reasoning", ("", seal(SIGNATURE, "call_1"))),
            ("function_call", "call_1"),
            ("function_call", "call_2"),
            ("reasoning", ("", seal(OTHER, "call_3"))),
            ("function_call", "call_3"),
        ],
    ),
    "a2 signed thought": (
        [*THOUGHT, SIGNED, *call("call_1", OTHER)],
        [
            ("reasoning", ("hm", seal(SIGNATURE, ON_THOUGHT))),
            ("reasoning", ("", seal(OTHER, "call_1"))),
            ("function_call", "call_1"),
        ],
    ),
    "a signature is nobody else's": (
        [*THOUGHT, SIGNED, *THOUGHT, *call("call_1")],
        [
            ("reasoning", ("hm", seal(SIGNATURE, ON_THOUGHT))),
            ("reasoning", ("hm", None)),
            ("function_call", "call_1"),
        ],
    ),
    "a thought's signature without its thought": (
        [*text("a"), SIGNED],
        [("message", "a"), ("reasoning", ("", seal(SIGNATURE, ON_THOUGHT)))],
    ),
    "nothing but a signed thought": (
        [*THOUGHT, SignatureDelta(SIGNATURE, AFTER_TEXT)],
        [("reasoning", ("hm", seal(SIGNATURE, AFTER_TEXT)))],
    ),
    "signed text is found in the store": (
        [*text("a"), SignatureDelta(SIGNATURE, ON_TEXT), *text("b"), SignatureDelta(OTHER, AFTER_TEXT)],
        [("message", "ab")],
    ),
    "unsigned call behind a thought": (
        [*THOUGHT, *call("call_1")],
        [("reasoning", ("hm", None)), ("function_call", "call_1")],
    ),
}
ATOMS: tuple[list[Event], ...] = (
    text("a"),
    THOUGHT,
    [SIGNED],
    [SignatureDelta(SIGNATURE, ON_TEXT)],
    [SignatureDelta(SIGNATURE, AFTER_TEXT)],
    call("call_1"),
    call("call_2", SIGNATURE),
    call("call_3", name="apply_patch", args=b'{"input":"x"}'),
    [Usage(input_tokens=3, output_tokens=1)],
)


def _held(item: dict[str, Any]) -> tuple[str, Any]:
    match item["type"]:
        case "message":
            return "message", "".join(part["text"] for part in item["content"])
        case "reasoning":
            words = "".join(part["text"] for part in item["summary"])
            return "reasoning", (words, item["encrypted_content"])
        case kind:
            return kind, item["call_id"]


@pytest.mark.parametrize("name", TABLE)
def test_the_items_of_an_answer(name: str) -> None:
    events, held = TABLE[name]
    assert [_held(item) for item in items(whole_stream(events))] == held


@pytest.mark.parametrize("name", TABLE)
def test_without_reasoning_there_are_no_reasoning_items(name: str) -> None:
    events, held = TABLE[name]
    got = [_held(item) for item in items(whole_stream(events), answer(carries=False))]
    assert got == [item for item in held if item[0] != "reasoning"]


def test_any_order_of_parts_streams_and_folds_to_the_same_answer() -> None:
    for order in itertools.permutations(ATOMS, 3):
        for carries in (True, False):
            events = whole_stream(itertools.chain(*order))
            assert streamed(events, answer(carries=carries)) == whole(events, answer(carries=carries))


def test_the_events_of_text_and_a_call_in_order() -> None:
    data = stream_bytes(whole_stream([*THOUGHT, *text("a", "b"), *call("call_1")]))
    assert names(data) == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    numbers = [event["data"]["sequence_number"] for event in parse_events(data)]
    assert numbers == list(range(len(numbers)))


def test_item_ids_are_unique_and_begin_with_their_kind() -> None:
    got = items(whole_stream([*THOUGHT, *text("a"), *call("call_1")]))
    assert [item["id"] for item in got] == ["rs_1_0", "msg_1_1", "fc_1_2"]


CALLS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "read": (
        b'{"path": "a"}',
        {"type": "function_call", "id": "fc_1_0", "name": "read", "arguments": '{"path": "a"}'},
    ),
    "ns.deep": (
        b"{}",
        {"type": "function_call", "id": "fc_1_0", "name": "deep", "namespace": "ns", "arguments": "{}"},
    ),
    "apply_patch": (
        b'{"input":"*** Begin\\n\\u00fc \\"x\\""}',
        {"type": "custom_tool_call", "id": "ctc_1_0", "name": "apply_patch", "input": '*** Begin\nü "x"'},
    ),
    "ns.exec": (
        b'{"input":""}',
        {"type": "custom_tool_call", "id": "ctc_1_0", "name": "exec", "namespace": "ns", "input": ""},
    ),
    "tool_search": (
        b'{"query":"mail"}',
        {
            "type": "tool_search_call",
            "id": "tsc_1_0",
            "execution": "client",
            "arguments": {"query": "mail"},
        },
    ),
    "local_shell": (
        b'{"command":["ls"]}',
        {
            "type": "local_shell_call",
            "id": "c",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
        },
    ),
    "shell": (
        b'{"commands":["ls"],"timeout_ms":5}',
        {
            "type": "shell_call",
            "id": "sh_1_0",
            "action": {"commands": ["ls"], "timeout_ms": 5, "max_output_length": None},
            "environment": None,
        },
    ),
    "patch": (
        b'{"type":"delete_file","path":"a"}',
        {"type": "apply_patch_call", "id": "apc_1_0", "operation": {"type": "delete_file", "path": "a"}},
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_g1_a_call_has_the_shape_of_its_tool(name: str) -> None:
    args, shape = CALLS[name]
    (item,) = items(whole_stream(call("c", name=name, args=args)))
    assert item == {**shape, "call_id": "c", "status": "completed"}


def test_g1_the_text_of_a_free_form_call_is_streamed_as_text() -> None:
    events = parse_events(stream_bytes(whole_stream(call("c", name="apply_patch", args=b'{"input":"x"}'))))
    (delta,) = (e["data"] for e in events if e["event"] == "response.custom_tool_call_input.delta")
    (done,) = (e["data"] for e in events if e["event"] == "response.custom_tool_call_input.done")
    assert (delta["delta"], done["input"]) == ("x", "x")
    (added,) = (e["data"] for e in events if e["event"] == "response.output_item.added")
    assert (added["item"]["input"], added["item"]["status"]) == ("", "in_progress")


@pytest.mark.parametrize(
    ("args", "given"),
    [
        (b'{"patch":"x"}', "x"),
        (b'{"input":5}', '{"input":5}'),
        (b'{"a":"x","b":"y"}', '{"a":"x","b":"y"}'),
        (b'["x"]', '["x"]'),
        (b"{cut", "{cut"),
        (b"{}", "{}"),
    ],
)
def test_g1_a_free_form_tool_gets_the_text_even_under_another_name(args: bytes, given: str) -> None:
    (item,) = items(whole_stream(call("c", name="apply_patch", args=args)))
    assert item["input"] == given


def test_a_search_is_an_object_from_its_beginning() -> None:
    events = parse_events(stream_bytes(whole_stream(call("c", name="tool_search", args=b'{"query":"x"}'))))
    told = [e["data"]["item"] for e in events if "output_item" in e["event"]]
    assert [(item["arguments"], item["status"]) for item in told] == [
        ({"query": "x"}, "in_progress"),
        ({"query": "x"}, "completed"),
    ]
    assert not any("arguments" in event["event"] for event in events)


@pytest.mark.parametrize("args", [b"[1]", b"{cut"])
def test_arguments_that_are_no_object_make_an_empty_one(args: bytes) -> None:
    (item,) = items(whole_stream(call("c", name="tool_search", args=args)))
    assert item["arguments"] == {}


def test_a_call_without_arguments_has_an_empty_object() -> None:
    bare: list[Event] = [ToolCall(id="c", name="now")]
    (item,) = items(whole_stream(bare))
    assert item["arguments"] == "{}"


@pytest.mark.parametrize(
    ("reason", "status", "why"),
    [
        ("end", "completed", None),
        ("tool_calls", "completed", None),
        ("other", "completed", None),
        ("max_tokens", "incomplete", "max_output_tokens"),
        ("blocked", "incomplete", "content_filter"),
        ("malformed", "incomplete", "content_filter"),
    ],
)
def test_how_an_answer_ends(reason: Any, status: str, why: str | None) -> None:
    events = whole_stream(text("a"), Finished(reason=reason, raw="RAW"))
    response = whole(events)
    assert response == streamed(events)
    assert response["status"] == status
    assert response["incomplete_details"] == ({"reason": why} if why else None)
    assert response["output"][0]["status"] == status
    assert names(stream_bytes(events))[-1] == status


def test_d7_a_block_says_why() -> None:
    (item,) = items(whole_stream([], BLOCKED))
    assert item["content"] == [{"type": "refusal", "refusal": "no"}]
    said, refused = items(whole_stream(text("a"), Finished(reason="blocked", raw="SAFETY")))
    assert said["content"][0]["text"] == "a"
    assert refused["content"] == [{"type": "refusal", "refusal": "Gemini stopped with SAFETY"}]


def test_usage_includes_cache_and_reasoning() -> None:
    usage = Usage(input_tokens=100, cached_tokens=60, output_tokens=9, thought_tokens=4)
    assert whole(whole_stream(text("a"), usage=usage))["usage"] == {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 0},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 109,
    }


def test_h1_an_uncounted_input_is_our_estimate() -> None:
    assert streamed(whole_stream(text("a")))["usage"]["input_tokens"] == 7


def test_what_an_answer_repeats_has_defaults() -> None:
    given = Answer(id="resp_2", model="m", created_s=5)
    response = whole(whole_stream(text("a")), given)
    assert response["id"] == "resp_2"
    assert (response["created_at"], response["object"], response["error"]) == (5, "response", None)
    assert response["tool_choice"] == "auto"
    assert response["tools"] == []
    assert response["metadata"] == {}
    assert response["parallel_tool_calls"] is True


def test_the_opening_says_that_it_has_begun_and_nothing_else() -> None:
    opening = openai_responses.stream(answer()).open()
    created, progress = parse_events(opening)
    assert created["data"]["response"] == progress["data"]["response"]
    response = created["data"]["response"]
    assert (response["status"], response["output"], response["usage"]) == ("in_progress", [], None)


def test_e4_a_ping_is_a_comment() -> None:
    stream = openai_responses.stream(answer())
    assert stream.ping() == b": ping\n\n"
    assert parse_events(stream.ping()) == []


def _failed(events: Sequence[Event], error: DragomanError) -> list[dict[str, Any]]:
    stream = openai_responses.stream(answer())
    data = stream.open() + b"".join(map(stream.feed, events)) + stream.fail(error)
    return [event["data"] for event in parse_events(data)]


def test_e7_g2_a_failure_closes_what_is_open_and_is_the_last_word() -> None:
    events = _failed([Started(), *THOUGHT, *text("a")], UpstreamIncomplete("cut", kind="overloaded"))
    assert [event["type"] for event in events].count("response.output_item.done") == 2
    last = events[-1]
    assert last["type"] == "response.failed"
    assert last["response"]["status"] == "failed"
    assert last["response"]["error"] == {"code": "server_error", "message": "cut"}
    assert [item["status"] for item in last["response"]["output"]] == ["completed", "incomplete"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def test_an_error_of_the_upstream_fails_the_stream() -> None:
    stream = openai_responses.stream(answer())
    stream.open()
    (failed,) = parse_events(stream.feed(Failed(DragomanError("no", kind="internal"))))
    assert failed["event"] == "response.failed"


def test_g5_a_failed_stream_is_complete() -> None:
    error = DragomanError("slow down", kind="rate_limit", retry_after_s=1.5)
    data = openai_responses.failed_stream(error, answer())
    assert names(data) == ["created", "in_progress", "failed"]
    last = parse_events(data)[-1]["data"]["response"]
    assert last["error"] == {
        "code": "rate_limit_exceeded",
        "message": "slow down. Please try again in 1.5s.",
    }


def test_g3_asked_to_compact_the_answer_is_one_compaction_item() -> None:
    middle = [*THOUGHT, *text("we ", "fixed it"), *call("c", SIGNATURE), SIGNED]
    (item,) = items(whole_stream(middle), answer(compacts=True))
    assert (item["type"], item["id"]) == ("compaction", "cmp_1_0")
    assert open_summary(item["encrypted_content"]) == "we fixed it"


def test_what_only_gemini_can_say_is_passed_over() -> None:
    assert openai_responses.stream(answer()).feed(Native(json=b"{}")) == b""


def test_characters_survive() -> None:
    words = 'ünï "q" \\ \u2028 \x00 😀'
    (item,) = items(whole_stream(text(words)))
    assert item["content"][0]["text"] == words
    assert b"\n" not in stream_bytes(whole_stream(text("a\nb"))).replace(b"\n\n", b"").replace(b"\ndata", b"")


def test_the_whole_answer_is_json_without_a_stream() -> None:
    assert json.loads(openai_responses.encode_count(12)) == {
        "object": "response.input_tokens",
        "input_tokens": 12,
    }
