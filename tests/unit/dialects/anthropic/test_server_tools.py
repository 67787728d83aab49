"""Server tools as Anthropic blocks: encoded in answers, decoded in histories, and round trips (known problem K1)."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.dialects import anthropic
from dragoman.ir import (
    ON_TEXT,
    Citation,
    CitedText,
    Event,
    ServerCall,
    ServerResult,
    Signature,
    SignatureDelta,
    Source,
    Text,
    TextDelta,
    Usage,
    collect,
    seal,
)
from tests.unit.dialects.anthropic.builders import assistant, decode, messages, parts, text, user
from tests.unit.dialects.anthropic.stream_checks import Json, assembled, parse, stream_bytes, whole
from tests.unit.dialects.stream_checks import whole_stream

A = Source(url="https://a.org", title="A")
B = Source(url="https://b.org", text="what b says")
OWN = Signature('[{"toolCall":{}}]', "gemini-g3")
SEARCH = ServerCall(
    id="toolu_1", kind="web_search", name="web_search", args=b'{"queries":["q","r"]}', signature=OWN
)
FOUND = ServerResult(call_id="toolu_1", kind="web_search", sources=(A, B))


def call(kind: Any, args: bytes = b"{}", **fields: Any) -> ServerCall:
    return ServerCall(id="toolu_1", kind=kind, name=kind, args=args, **fields)


def result(kind: Any, **fields: Any) -> ServerResult:
    return ServerResult(call_id="toolu_1", kind=kind, **fields)


def hit(source: Source, carried: str = "") -> Json:
    return {
        "type": "web_search_result",
        "url": source.url,
        "title": source.title or source.url,
        "encrypted_content": carried,
        "page_age": None,
    }


def used(name: str, given: Json) -> Json:
    return {"type": "server_tool_use", "id": "srvtoolu_1", "name": name, "input": given}


def answered(kind: str, content: Any) -> Json:
    return {"type": f"{kind}_tool_result", "tool_use_id": "srvtoolu_1", "content": content}


def failed(kind: str, code: str) -> Json:
    return answered(kind, {"type": f"{kind}_tool_result_error", "error_code": code})


def page(data: str, title: str | None) -> Json:
    source = {"type": "text", "media_type": "text/plain", "data": data}
    document = {"type": "document", "source": source, "title": title, "citations": None}
    return {"type": "web_fetch_result", "url": "https://a.org", "content": document, "retrieved_at": None}


def printed(stdout: str, stderr: str, code: int) -> Json:
    return {
        "type": "code_execution_result",
        "stdout": stdout,
        "stderr": stderr,
        "return_code": code,
        "content": [],
    }


UNSEEN = "(The page was read where the model runs; its text is not passed on.)"
SHAPES: dict[str, tuple[list[Event], list[Json]]] = {
    "a search": (
        [SEARCH, FOUND],
        [
            used("web_search", {"query": "q; r"}),
            answered("web_search", [hit(A, seal(OWN, "toolu_1")), hit(B)]),
        ],
    ),
    "a search that found nothing": (
        [call("web_search", b'{"query":"q"}'), result("web_search")],
        [used("web_search", {"query": "q"}), answered("web_search", [])],
    ),
    "too many searches": (
        [call("web_search"), result("web_search", error="max_uses_exceeded")],
        [used("web_search", {}), failed("web_search", "max_uses_exceeded")],
    ),
    "a search that failed": (
        [call("web_search"), result("web_search", error="whatever")],
        [used("web_search", {}), failed("web_search", "unavailable")],
    ),
    "a page": (
        [call("web_fetch", b'{"urls":["https://a.org"]}'), result("web_fetch", sources=(A,))],
        [used("web_fetch", {"url": "https://a.org"}), answered("web_fetch", page(UNSEEN, "A"))],
    ),
    "a page and its text": (
        [
            call("web_fetch", b'{"url":"https://a.org"}'),
            result("web_fetch", sources=(Source(url="https://a.org", text="words"),)),
        ],
        [used("web_fetch", {"url": "https://a.org"}), answered("web_fetch", page("words", None))],
    ),
    "a page nobody may read": (
        [call("web_fetch"), result("web_fetch", sources=(Source(url="u", error="paywall"),))],
        [used("web_fetch", {}), failed("web_fetch", "url_not_accessible")],
    ),
    "no page": (
        [call("web_fetch"), result("web_fetch")],
        [used("web_fetch", {}), failed("web_fetch", "unavailable")],
    ),
    "a program": (
        [call("code_execution", b'{"code":"print(1)"}'), result("code_execution", output="1\n")],
        [used("code_execution", {"code": "print(1)"}), answered("code_execution", printed("1\n", "", 0))],
    ),
    "a program that failed": (
        [call("code_execution"), result("code_execution", output="Traceback", error="failed")],
        [used("code_execution", {}), answered("code_execution", printed("", "Traceback", 1))],
    ),
    "a program without end": (
        [call("code_execution"), result("code_execution", error="timeout")],
        [used("code_execution", {}), failed("code_execution", "execution_time_exceeded")],
    ),
    "a tool of a server": (
        [call("mcp", b'{"a": 1}', label="docs"), result("mcp", output="text")],
        [
            {
                "type": "mcp_tool_use",
                "id": "toolu_1",
                "name": "mcp",
                "server_name": "docs",
                "input": {"a": 1},
            },
            {
                "type": "mcp_tool_result",
                "tool_use_id": "toolu_1",
                "is_error": False,
                "content": [{"type": "text", "text": "text"}],
            },
        ],
    ),
    "a tool of a server that failed": (
        [call("mcp"), result("mcp", error="no")],
        [
            {"type": "mcp_tool_use", "id": "toolu_1", "name": "mcp", "server_name": "", "input": {}},
            {
                "type": "mcp_tool_result",
                "tool_use_id": "toolu_1",
                "is_error": True,
                "content": [{"type": "text", "text": "no"}],
            },
        ],
    ),
    "what has no block": ([call("mcp_list"), result("mcp_list")], []),
}


@pytest.mark.parametrize(("events", "blocks"), SHAPES.values(), ids=SHAPES.keys())
def test_a_tool_that_was_run_is_two_blocks(events: list[Event], blocks: list[Json]) -> None:
    stream = whole_stream(events)
    assert assembled(stream_bytes(stream))["content"] == blocks
    assert whole(stream)["content"] == blocks


def cited(source: Source) -> Json:
    return {
        "type": "web_search_result_location",
        "url": source.url,
        "title": source.title or None,
        "cited_text": source.text,
        "encrypted_index": "",
    }


CITED: list[Event] = [
    TextDelta("It is "),
    TextDelta("known that "),
    CitedText("a", (A, B)),
    CitedText("b", (B,)),
    TextDelta(" and c"),
    SignatureDelta(OWN, ON_TEXT),
]


def test_text_with_sources_is_a_block_of_its_own() -> None:
    blocks = [
        {"type": "text", "text": "It is known that "},
        {"type": "text", "text": "a", "citations": [cited(A), cited(B)]},
        {"type": "text", "text": "b", "citations": [cited(B)]},
        {"type": "text", "text": " and c"},
    ]
    stream = whole_stream(CITED)
    assert assembled(stream_bytes(stream))["content"] == blocks
    assert whole(stream)["content"] == blocks


def test_citations_come_before_the_words_of_their_block() -> None:
    events = [event["data"] for event in parse(stream_bytes(whole_stream([CitedText("a", (A, B))])))]
    assert [event.get("delta", event).get("type") for event in events[1:7]] == [
        "content_block_start",
        "citations_delta",
        "citations_delta",
        "text_delta",
        "content_block_stop",
        None,
    ]
    assert events[1]["content_block"] == {"type": "text", "text": "", "citations": []}


def test_k1_the_query_comes_in_a_delta_where_clients_look_for_it() -> None:
    events = [event["data"] for event in parse(stream_bytes(whole_stream([SEARCH, FOUND])))]
    assert events[1]["content_block"]["input"] == {}
    assert events[2]["delta"] == {"type": "input_json_delta", "partial_json": '{"query":"q; r"}'}
    assert events[4]["content_block"]["type"] == "web_search_tool_result"
    assert events[5]["type"] == "content_block_stop"


def test_k1_searches_are_counted() -> None:
    stream = whole_stream([], usage=Usage(input_tokens=1, searches=2, fetches=1))
    counted = {"web_search_requests": 2, "web_fetch_requests": 1}
    assert assembled(stream_bytes(stream))["usage"]["server_tool_use"] == counted
    assert whole(stream)["usage"]["server_tool_use"] == counted
    assert "server_tool_use" not in whole(whole_stream([], usage=Usage(input_tokens=1)))["usage"]


def test_it_has_words_for_these() -> None:
    assert anthropic.server_kinds == {"web_search", "web_fetch", "code_execution", "tool_search", "mcp"}


def test_what_was_shown_comes_back_as_it_was() -> None:
    events = whole_stream([SEARCH, FOUND, *CITED[:-1]])
    content = whole(events)["content"]
    (_, got) = messages(user("q"), assistant(*content))
    plain = ServerCall(
        id="toolu_1", kind="web_search", name="web_search", args=b'{"query": "q; r"}', signature=OWN
    )
    hits = (A, Source(url="https://b.org", title="https://b.org"))
    assert got.parts == (
        plain,
        ServerResult(call_id="toolu_1", kind="web_search", sources=hits),
        Text(text="It is known that ab and c"),
    )
    assert collect(events).parts[2] == Text(
        text="It is known that ab and c",
        citations=(Citation(start=17, end=18, sources=(A, B)), Citation(start=18, end=19, sources=(B,))),
    )


ECHOED: dict[str, tuple[Json, Any]] = {
    "a call of nothing": (
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search"},
        call("web_search"),
    ),
    "a call of a version": (
        {"type": "server_tool_use", "id": "x", "name": "bash_code_execution", "input": {"command": "ls"}},
        ServerCall(id="x", kind="code_execution", name="bash_code_execution", args=b'{"command": "ls"}'),
    ),
    "arguments that are none": (
        {"type": "server_tool_use", "id": "x", "name": "web_fetch", "input": ["u"]},
        ServerCall(id="x", kind="web_fetch", name="web_fetch", args=b'{"input":["u"]}'),
    ),
    "a tool of a server": (
        {"type": "mcp_tool_use", "id": "m", "name": "echo", "server_name": "s", "input": {}},
        ServerCall(id="m", kind="mcp", name="echo", label="s"),
    ),
    "what was found, of another service": (
        answered(
            "web_search", [{"type": "web_search_result", "title": "T", "url": "U", "encrypted_content": "xx"}]
        ),
        result("web_search", sources=(Source(url="U", title="T"),)),
    ),
    "a search that failed": (
        failed("web_search", "unavailable"),
        result("web_search", error="unavailable"),
    ),
    "a page": (
        answered("web_fetch", page("words", "T")),
        result("web_fetch", sources=(Source(url="https://a.org", title="T", text="words"),)),
    ),
    "a page of bytes": (
        answered(
            "web_fetch",
            {
                "type": "web_fetch_result",
                "url": "u",
                "content": {"source": {"type": "base64", "data": "eA=="}},
            },
        ),
        result("web_fetch", sources=(Source(url="u"),)),
    ),
    "a page of nothing": (
        answered("web_fetch", {"type": "web_fetch_result", "url": "u", "content": {"source": "x"}}),
        result("web_fetch", sources=(Source(url="u"),)),
    ),
    "what was printed": (
        answered("bash_code_execution", {"stdout": "a", "stderr": "b", "return_code": 1, "content": []}),
        result("code_execution", output="ab", error="failed"),
    ),
    "what a server said": (
        {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": True, "content": [text("hi")]},
        ServerResult(call_id="m", kind="mcp", output="hi", error="failed"),
    ),
    "what a server said, in one word": (
        {"type": "mcp_tool_result", "tool_use_id": "m", "content": "hi"},
        ServerResult(call_id="m", kind="mcp", output="hi"),
    ),
    "nothing": ({"type": "mcp_tool_result", "tool_use_id": "m"}, ServerResult(call_id="m", kind="mcp")),
    "what nobody knows": (
        answered(
            "code_execution", {"type": "encrypted_code_execution_result", "encrypted_stdout": "x", "n": [1]}
        ),
        result("code_execution", output='{"type":"encrypted_code_execution_result","n":[1]}'),
    ),
    "a list of numbers": (answered("web_search", [5]), result("web_search", output="5")),
}


@pytest.mark.parametrize(("block", "part"), ECHOED.values(), ids=ECHOED.keys())
def test_k3_what_any_service_ran_is_understood(block: Json, part: Any) -> None:
    assert parts(assistant(block)) == (part,)
    assert decode(assistant(block)).notes == ()


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (
            {"type": "server_tool_use", "id": "s", "name": "advisor", "input": {"query": "q"}},
            '[server_tool_use advisor] {"query":"q"}',
        ),
        ({"type": "advisor_tool_result", "tool_use_id": "s", "content": [1]}, "[advisor_tool_result s] [1]"),
        (
            {"type": "advisor_tool_result", "tool_use_id": "s", "content": {"a": [], "encrypted_x": "y"}},
            '[advisor_tool_result s] {"a":[]}',
        ),
    ],
)
def test_k3_tools_nobody_knows_stay_as_words_without_encrypted_data(block: Json, words: str) -> None:
    assert parts(assistant(block)) == (Text(text=words),)


@pytest.mark.parametrize(
    ("blocks", "texts"),
    [
        ([text("a"), text("b")], ["a", "b"]),
        ([text("a"), {**text("b"), "citations": None}, {**text("c"), "citations": []}], ["a", "b", "c"]),
        ([text("a"), {**text("b"), "citations": [{}]}, text("c")], ["abc"]),
        ([{"type": "text", "citations": [{}]}, text("b")], ["b"]),
        ([{**text("a"), "citations": [{}]}, {"type": "thinking", "thinking": "t"}, text("b")], ["a", "b"]),
    ],
)
def test_text_that_was_cut_for_its_citations_is_one_text(blocks: list[Json], texts: list[str]) -> None:
    found = [part.text for part in parts(assistant(*blocks)) if isinstance(part, Text)]
    assert found == texts
