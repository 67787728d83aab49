"""Tools the service ran, as items: shown in answers, read in histories, and text with its sources."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.errors import UpstreamIncomplete
from dragoman.ir import (
    CitedText,
    Event,
    Failed,
    ServerCall,
    ServerResult,
    Signature,
    Source,
    Started,
    TextDelta,
    ThoughtDelta,
    Usage,
    seal,
)
from tests.corpus.responses_adapter import parse_events
from tests.unit.dialects.openai_responses.builders import decode, messages, reasoning, user
from tests.unit.dialects.openai_responses.stream_checks import (
    Json,
    answer,
    folded,
    items,
    names,
    stream_bytes,
    streamed,
)
from tests.unit.dialects.stream_checks import END, whole_stream

A, B = Source(url="https://a.org", title="A"), Source(url="https://b.org")
OWN = Signature('[{"toolCall":{}}]', "gemini-g3")
SEARCH = ServerCall(id="call_1", kind="web_search", name="web_search", args=b'{"queries":["q","r"]}')
FOUND = ServerResult(call_id="call_1", kind="web_search", sources=(A, B))


def call(kind: Any, args: bytes = b"{}", identity: str = "call_1", **fields: Any) -> ServerCall:
    return ServerCall(id=identity, kind=kind, name=kind, args=args, **fields)


def result(kind: Any, identity: str = "call_1", **fields: Any) -> ServerResult:
    return ServerResult(call_id=identity, kind=kind, **fields)


def searched(action: Json, status: str = "completed") -> Json:
    return {"type": "web_search_call", "id": "ws_call_1", "status": status, "action": action}


def interpreted(outputs: Any, status: str = "completed", code: str = "print(1)") -> Json:
    return {
        "type": "code_interpreter_call",
        "id": "ci_call_1",
        "status": status,
        "code": code,
        "container_id": "google",
        "outputs": outputs,
    }


def mcp(output: str | None, error: Any, status: str) -> Json:
    return {
        "type": "mcp_call",
        "id": "mcp_call_1",
        "status": status,
        "name": "mcp",
        "server_label": "docs",
        "arguments": '{"a":1}',
        "output": output,
        "error": error,
        "approval_request_id": None,
    }


PROGRAM = call("code_execution", b'{"code":"print(1)"}')
TOOL = call("mcp", b'{"a":1}', label="docs")
SHAPES: dict[str, tuple[list[Event], Json]] = {
    "a search": ([SEARCH, FOUND], searched({"type": "search", "query": "q", "queries": ["q", "r"]})),
    "a search for nothing": (
        [call("web_search"), result("web_search")],
        searched({"type": "search", "query": "", "queries": [""]}),
    ),
    "a search that failed": (
        [call("web_search", b'{"queries":["q"]}'), result("web_search", error="unavailable")],
        searched({"type": "search", "query": "q", "queries": ["q"]}, "failed"),
    ),
    "a page": (
        [call("web_fetch", b'{"urls":["https://a.org"]}'), result("web_fetch", sources=(A,))],
        searched({"type": "open_page", "url": "https://a.org"}),
    ),
    "no page": (
        [call("web_fetch", b'{"urls":[]}'), result("web_fetch")],
        searched({"type": "open_page", "url": None}),
    ),
    "a program": ([PROGRAM, result("code_execution", output="1\n")], interpreted(None)),
    "a program that failed": (
        [PROGRAM, result("code_execution", output="Traceback", error="failed")],
        interpreted(None),
    ),
    "no program": ([call("code_execution"), result("code_execution")], interpreted(None, code="")),
    "a tool of a server": ([TOOL, result("mcp", output="text")], mcp("text", None, "completed")),
    "a tool that failed": (
        [TOOL, result("mcp", error="no")],
        mcp(None, {"type": "mcp_tool_execution_error", "content": "no"}, "failed"),
    ),
    "a tool the user agreed to": (
        [call("mcp", b'{"a":1}', label="docs", approval="call_1"), result("mcp", output="text")],
        {**mcp("text", None, "completed"), "approval_request_id": "mcpr_call_1"},
    ),
    "a request for consent": (
        [call("mcp_approval", b'{"a":1}', label="docs"), result("mcp_approval")],
        {
            "type": "mcp_approval_request",
            "id": "mcpr_call_1",
            "name": "mcp_approval",
            "server_label": "docs",
            "arguments": '{"a":1}',
        },
    ),
    "a list of tools": (
        [call("mcp_list", label="docs"), result("mcp_list", output='[{"name":"a","input_schema":{}}]')],
        {
            "type": "mcp_list_tools",
            "id": "mcpl_call_1",
            "server_label": "docs",
            "tools": [{"name": "a", "input_schema": {}}],
            "error": None,
        },
    ),
}


@pytest.mark.parametrize(("events", "item"), SHAPES.values(), ids=SHAPES.keys())
def test_a_tool_that_was_run_is_an_item(events: list[Event], item: Json) -> None:
    assert items(whole_stream(events)) == [item]
    completed, _ = folded(stream_bytes(whole_stream(events)))
    assert completed is not None


def test_sources_and_outputs_are_shown_to_those_who_ask() -> None:
    asks = answer(includes=("web_search_call.action.sources", "code_interpreter_call.outputs"))
    (item,) = items(whole_stream([SEARCH, FOUND]), asks)
    assert item["action"]["sources"] == [
        {"type": "url", "url": "https://a.org"},
        {"type": "url", "url": "https://b.org"},
    ]
    (item,) = items(whole_stream([PROGRAM, result("code_execution", output="1\n")]), asks)
    assert item["outputs"] == [{"type": "logs", "logs": "1\n"}]
    asked = decode(include=["web_search_call.action.sources"]).echo
    assert asked.includes == {"web_search_call.action.sources"}
    assert decode().echo.includes == frozenset()


TOLD: dict[str, tuple[list[Event], list[str]]] = {
    "a search": (
        [SEARCH, FOUND],
        ["web_search_call.in_progress", "web_search_call.searching", "web_search_call.completed"],
    ),
    "a program": (
        [PROGRAM, result("code_execution")],
        [
            "code_interpreter_call.in_progress",
            "code_interpreter_call_code.delta",
            "code_interpreter_call_code.done",
            "code_interpreter_call.interpreting",
            "code_interpreter_call.completed",
        ],
    ),
    "a tool of a server": (
        [TOOL, result("mcp")],
        ["mcp_call.in_progress", "mcp_call_arguments.delta", "mcp_call_arguments.done", "mcp_call.completed"],
    ),
    "a tool that failed": (
        [TOOL, result("mcp", error="no")],
        ["mcp_call.in_progress", "mcp_call_arguments.delta", "mcp_call_arguments.done", "mcp_call.failed"],
    ),
}


@pytest.mark.parametrize(("events", "told"), TOLD.values(), ids=TOLD.keys())
def test_its_progress_is_told(events: list[Event], told: list[str]) -> None:
    data = stream_bytes(whole_stream(events))
    assert names(data) == [
        "created",
        "in_progress",
        "output_item.added",
        *told,
        "output_item.done",
        "completed",
    ]
    places = {(event["data"]["item_id"], event["data"]["output_index"]) for event in parse_events(data)[3:-2]}
    assert len(places) == 1


def test_several_run_at_once() -> None:
    other = call("mcp", identity="call_2")
    events = whole_stream(
        [SEARCH, other, TextDelta("while"), result("mcp", "call_2", output="x"), FOUND, TextDelta(" after")]
    )
    found = items(events)
    assert [item["type"] for item in found] == ["web_search_call", "mcp_call", "message"]
    assert found[2]["content"][0]["text"] == "while after"


def test_k3_what_google_wants_back_rides_in_a_reasoning_item() -> None:
    own = call("web_search", b'{"queries":["q"]}', signature=OWN)
    carrier, item = items(whole_stream([ThoughtDelta("hm"), own, FOUND]))
    assert carrier["encrypted_content"] == seal(OWN, "call_1")
    assert carrier["summary"][0]["text"] == "hm"
    (alone,) = items(whole_stream([own, FOUND]), answer(carries=False))
    assert alone == item


CITED: list[Event] = [TextDelta("Ü is "), CitedText("a🙂", (A, B)), CitedText("b", (B,)), TextDelta(".")]


def citation(source: Source, start: int, end: int) -> Json:
    return {
        "type": "url_citation",
        "start_index": start,
        "end_index": end,
        "url": source.url,
        "title": source.title,
    }


def test_sources_are_annotations_of_the_text() -> None:
    (message,) = items(whole_stream(CITED))
    (part,) = message["content"]
    assert part["text"] == "Ü is a🙂b."
    assert part["annotations"] == [citation(A, 5, 7), citation(B, 5, 7), citation(B, 7, 8)]
    told = [
        event["data"]
        for event in parse_events(stream_bytes(whole_stream(CITED)))
        if event["data"]["type"] == "response.output_text.annotation.added"
    ]
    assert [event["annotation_index"] for event in told] == [0, 1, 2]
    assert [event["annotation"] for event in told] == part["annotations"]


def test_an_answer_may_begin_with_what_is_cited_and_go_on_elsewhere() -> None:
    events = whole_stream([CitedText("a", (A,)), SEARCH, FOUND, CitedText("b", (B,))])
    first, _, last = items(events)
    assert first["content"][0]["annotations"] == [citation(A, 0, 1)]
    assert last["content"][0]["annotations"] == [citation(B, 0, 1)]


def test_sources_without_a_place_are_told_at_the_end_once() -> None:
    lost = Source(url="https://gone.org", error="gone")
    again = ServerCall(id="call_2", kind="web_search")
    searched: list[Event] = [SEARCH, FOUND, again, result("web_search", "call_2", sources=(A, lost))]
    *_, message = items(whole_stream([*searched, TextDelta("ab")]))
    assert message["content"][0]["annotations"] == [citation(A, 2, 2), citation(B, 2, 2)]
    told = names(stream_bytes(whole_stream([*searched, TextDelta("ab")])))
    assert told.index("output_text.annotation.added") < told.index("output_text.done")
    assert len(items(whole_stream(searched))) == 2  # no text, nothing to annotate


def test_a_summary_shows_neither_tools_nor_sources() -> None:
    (item,) = items(whole_stream([SEARCH, FOUND, CitedText("a", (A,))]), answer(compacts=True))
    assert item["type"] == "compaction"


def test_an_answer_that_breaks_off_closes_what_runs() -> None:
    events: list[Event] = [Started(), SEARCH, TextDelta("half"), Failed(UpstreamIncomplete("cut"))]
    data = stream_bytes(events)
    assert names(data)[-3:] == ["output_item.done", "output_item.done", "failed"]
    body = parse_events(data)[-1]["data"]["response"]
    assert [item["status"] for item in body["output"]] == ["incomplete", "incomplete"]
    assert streamed(whole_stream([], usage=Usage(input_tokens=1)))["output"] == []
    assert END.reason == "end"


ECHOED: dict[str, tuple[Json, ServerCall, ServerResult]] = {
    "a search of ours": (
        searched({"type": "search", "query": "q", "queries": ["q", "r"]}),
        call("web_search", b'{"queries":["q","r"]}'),
        result("web_search"),
    ),
    "a search with its sources": (
        searched({"type": "search", "query": "q", "sources": [{"type": "url", "url": "u"}]}),
        call("web_search", b'{"queries":["q"]}'),
        result("web_search", sources=(Source(url="u"),)),
    ),
    "a search for nothing, that failed": (
        {"type": "web_search_call", "status": "failed", "action": {"type": "search"}},
        call("web_search", b'{"queries":[]}', ""),
        result("web_search", "", error="failed"),
    ),
    "a page": (
        searched({"type": "open_page", "url": "u"}),
        call("web_fetch", b'{"urls":["u"]}'),
        result("web_fetch"),
    ),
    "words in a page": (
        searched({"type": "find_in_page", "url": "u", "pattern": "p"}),
        call("web_fetch", b'{"urls":["u"],"pattern":"p"}'),
        result("web_fetch"),
    ),
    "no action": (
        {"type": "web_search_call", "id": "x"},
        call("web_fetch", b'{"urls":[]}', "x"),
        result("web_fetch", "x"),
    ),
    "a program": (
        interpreted([{"type": "logs", "logs": "1\n"}, {"type": "image", "url": "u"}], "incomplete"),
        call("code_execution", b'{"code":"print(1)"}'),
        result("code_execution", output="1\nu", error="incomplete"),
    ),
    "no program": (
        {"type": "code_interpreter_call", "id": "ci_call_1"},
        call("code_execution", b'{"code":""}'),
        result("code_execution"),
    ),
    "a tool of a server": (mcp("text", None, "completed"), TOOL, result("mcp", output="text")),
    "a tool that failed": (mcp(None, "no", "failed"), TOOL, result("mcp", error="no")),
    "a tool that failed in its words": (
        {"type": "mcp_call", "id": "mcp_call_1", "name": "mcp", "error": {"content": "no"}},
        call("mcp"),
        result("mcp", error='{"content":"no"}'),
    ),
}


@pytest.mark.parametrize(("item", "called", "answered"), ECHOED.values(), ids=ECHOED.keys())
def test_k3_what_any_service_ran_is_understood(
    item: Json, called: ServerCall, answered: ServerResult
) -> None:
    (_, said) = messages(user("q"), item)
    assert (said.role, said.parts) == ("model", (called, answered))
    assert decode(user("q"), item).notes == ()


def test_k3_what_google_wants_back_finds_its_call_again() -> None:
    carrier = reasoning(words="", encrypted_content=seal(OWN, "call_1"))
    (_, said) = messages(user("q"), carrier, searched({"type": "search", "query": "q"}))
    (found, _) = said.parts
    assert isinstance(found, ServerCall)
    assert found.signature == OWN
