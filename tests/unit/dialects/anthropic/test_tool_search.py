"""Tool search that the service runs: asked for, shown in the answer, and brought back by the history."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.ir import (
    Event,
    ServerCall,
    ServerResult,
    ServerTool,
    Signature,
    TextDelta,
    ToolCall,
    ToolChoice,
    seal,
)
from tests.unit.dialects.anthropic.builders import (
    assistant,
    decode,
    parts,
    refused,
    request,
    text,
    tool,
    tool_result,
    tool_use,
    user,
)
from tests.unit.dialects.anthropic.stream_checks import streamed, thought, whole
from tests.unit.dialects.stream_checks import SIGNATURE, whole_stream

Json = dict[str, Any]

REGEX: Json = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
BM25: Json = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
READ, A, B, C = tool("Read"), *(tool(name, defer_loading=True) for name in "abc")
TOOLS = [A, READ, REGEX, B, C]


def asked(identity: str = "srvtoolu_1", name: str = "tool_search_tool_regex", **given: Any) -> Json:
    return {"type": "server_tool_use", "id": identity, "name": name, "input": given or {"pattern": "x"}}


def found(*names: str, identity: str = "srvtoolu_1") -> Json:
    references = [{"type": "tool_reference", "tool_name": name} for name in names]
    content = {"type": "tool_search_tool_search_result", "tool_references": references}
    return {"type": "tool_search_tool_result", "tool_use_id": identity, "content": content}


def failed(**more: Any) -> Json:
    content = {"type": "tool_search_tool_result_error", "error_code": "invalid_tool_input", **more}
    return {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": content}


class TestAsked:
    @pytest.mark.parametrize(
        ("wire", "name", "by"),
        [
            (REGEX, "tool_search_tool_regex", "pattern"),
            ({"type": "tool_search_tool_regex"}, "tool_search_tool_regex", "pattern"),
            (BM25, "tool_search_tool_bm25", "words"),
            ({"type": "tool_search_tool_bm25", "name": "seek"}, "seek", "words"),
            ({"type": "tool_search_tool_of_tomorrow_20301119", "name": "n"}, "n", "words"),
        ],
    )
    def test_every_variant(self, wire: Json, name: str, by: Any) -> None:
        got = decode(tools=[READ, A, wire])
        search = ServerTool(kind="tool_search", name=name, where="tools[2]", by=by)
        assert got.request.server_tools == (search,)
        assert [(one.name, one.deferred) for one in got.request.tools] == [("Read", False), ("a", True)]
        assert got.notes == ()

    def test_without_deferred_tools_there_is_nothing_to_search(self) -> None:
        got = decode(tools=[READ, REGEX])
        assert got.request.server_tools == ()
        assert list(map(str, got.notes)) == ["dropped tools[1]: no tool is deferred: all can be seen"]

    def test_a_choice_of_none_does_not_load_everything(self) -> None:
        got = request(tools=TOOLS, tool_choice={"type": "none"})
        assert [one.name for one in got.server_tools] == ["tool_search_tool_regex"]

    def test_the_search_can_be_forced(self) -> None:
        got = request(tools=TOOLS, tool_choice={"type": "tool", "name": "tool_search_tool_regex"})
        assert [one.forced for one in got.server_tools] == [True]
        assert got.tool_choice == ToolChoice()

    def test_a_tool_that_the_program_brings_later_is_there_at_once(self) -> None:
        added = {"type": "tool_addition", "tool": {"definition": tool("z", defer_loading=True)}}
        got = request(user("q", added), tools=[READ, REGEX, A])
        assert got.found == ("z",)


class TestHistory:
    def test_what_was_found_is_known_in_its_order(self) -> None:
        history = (
            user("q"),
            assistant(asked(), found("c", "a"), tool_use("t1", "a")),
            user(tool_result(identity="t1")),
            assistant(tool_use("t2", "b"), tool_use("t3", "Read")),
            user(tool_result(identity="t2"), tool_result(identity="t3")),
        )
        assert request(*history, tools=TOOLS).found == ("c", "a", "b")

    def test_without_a_search_of_ours_the_client_shows_what_it_finds(self) -> None:
        history = (user("q"), assistant(tool_use("t", "a")), user(tool_result(identity="t")))
        got = request(*history, tools=[A, READ, B])
        assert got.found == ()
        assert [one.name for one in got.tools] == ["a", "Read"]

    def test_what_was_taken_away_is_not_found(self) -> None:
        removal = {"type": "tool_removal", "tool": {"name": "a"}}
        got = request(user("q"), assistant(asked(), found("a")), user("go on", removal), tools=TOOLS)
        assert [one.name for one in got.tools] == ["Read", "b", "c"]

    def test_call_and_result_are_one_thing(self) -> None:
        read = parts(assistant("so", asked(), found("a", "b"), text("then"), tool_use()))
        assert read[1:3] == (
            ServerCall(
                id="toolu_1", kind="tool_search", name="tool_search_tool_regex", args=b'{"pattern": "x"}'
            ),
            ServerResult(call_id="toolu_1", kind="tool_search", tools=("a", "b")),
        )
        assert isinstance(read[4], ToolCall)

    @pytest.mark.parametrize(
        ("block", "error", "output"),
        [
            (failed(error_message="missing )"), "invalid_tool_input", "missing )"),
            (failed(), "invalid_tool_input", ""),
            ({**failed(), "content": None}, "", ""),
            ({"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1"}, "", ""),
        ],
    )
    def test_a_search_that_failed_has_found_nothing(self, block: Json, error: str, output: str) -> None:
        (read,) = parts(assistant(block))
        assert read == ServerResult(call_id="toolu_1", kind="tool_search", error=error, output=output)

    def test_what_is_no_result_is_refused_with_its_place(self) -> None:
        broken = {**found("a"), "content": [7]}
        assert refused(user("q"), assistant("x", broken)).where == "messages[1].content[1].content"


def search(*names: str, error: str = "", output: str = "", signature: Signature | None = None) -> list[Event]:
    """What the gateway shows of a search."""
    result = ServerResult(call_id="toolu_1", kind="tool_search", tools=names, error=error, output=output)
    asking = ServerCall(
        id="toolu_1",
        kind="tool_search",
        name="tool_search_tool_regex",
        args=b'{"pattern": "x"}',
        signature=signature,
    )
    return [asking, result]


USES: list[Event] = [ToolCall(id="toolu_2", name="a")]


class TestSignature:
    """What the model called is signed: the client carries that where it carries thinking."""

    EVENTS = whole_stream([TextDelta("so"), *search("a", signature=SIGNATURE), *USES])

    def test_it_is_in_the_thinking_before_the_search(self) -> None:
        content = whole(self.EVENTS)["content"]
        assert [block["type"] for block in content[:3]] == ["text", "thinking", "server_tool_use"]
        assert content[1] == thought("", seal(SIGNATURE, "toolu_1"))
        assert streamed(self.EVENTS)["content"] == content

    def test_and_comes_back_to_it(self) -> None:
        content = whole(self.EVENTS)["content"]
        asking = next(part for part in parts(assistant(*content)) if isinstance(part, ServerCall))
        assert asking.signature == SIGNATURE

    def test_without_thinking_the_store_knows(self) -> None:
        kinds = [block["type"] for block in whole(self.EVENTS, with_thinking=False)["content"]]
        assert kinds == ["text", "server_tool_use", "tool_search_tool_result", "tool_use"]
        assert streamed(self.EVENTS, with_thinking=False)["content"][1]["type"] == "server_tool_use"


class TestAnswer:
    def test_the_blocks_are_anthropics(self) -> None:
        events = whole_stream([TextDelta("so"), *search("a", "b"), TextDelta("then"), *USES])
        content = whole(events)["content"]
        assert content == [
            text("so"),
            asked(),
            found("a", "b"),
            text("then"),
            {"type": "tool_use", "id": "toolu_2", "name": "a", "input": {}},
        ]
        assert streamed(events)["content"] == content

    def test_nothing_found_is_an_empty_list(self) -> None:
        assert whole(whole_stream(search()))["content"][1] == found()

    @pytest.mark.parametrize(
        ("error", "code"),
        [
            ("invalid_tool_input", "invalid_tool_input"),
            ("execution_time_exceeded", "execution_time_exceeded"),
            ("too_many_requests", "too_many_requests"),
            ("whatever", "unavailable"),
        ],
    )
    @pytest.mark.parametrize("output", ["missing )", ""])
    def test_an_error_in_anthropics_words(self, error: str, code: str, output: str) -> None:
        events = whole_stream(search(error=error, output=output))
        result = whole(events)["content"][1]
        assert result == failed(error_code=code, error_message=output or None)
        assert streamed(events)["content"][1] == result

    def test_what_we_show_is_what_we_read(self) -> None:
        content = whole(whole_stream([*search("a"), *USES]))["content"]
        got = request(user("q"), {"role": "assistant", "content": content}, user("on"), tools=TOOLS)
        assert got.found == ("a",)
        assert got.messages[1].parts[:2] == tuple(search("a"))
