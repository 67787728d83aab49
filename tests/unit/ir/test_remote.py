"""Which tools of an MCP server a client wants, and for which the user is asked."""

from __future__ import annotations

import pytest

from dragoman.ir import ANY_TOOL, RemoteMcpServer, ToolFilter, mcp_tool_name

ONLY = ToolFilter(names=("a",))
READS = ToolFilter(read_only=True)


@pytest.mark.parametrize(
    ("wanted", "takes"),
    [
        (ANY_TOOL, {"a": True, "b": True, "reader": True}),
        (ONLY, {"a": True, "b": False, "reader": False}),
        (READS, {"a": False, "b": False, "reader": True}),
        (ToolFilter(names=("a", "reader"), read_only=True), {"a": False, "b": False, "reader": True}),
        (ToolFilter(names=()), {"a": False, "b": False, "reader": False}),
    ],
)
def test_a_filter_takes_by_name_and_by_what_a_tool_does(wanted: ToolFilter, takes: dict[str, bool]) -> None:
    assert {name: wanted.matches(name, reads=name == "reader") for name in takes} == takes
    server = RemoteMcpServer(label="s", allowed=wanted, excluded=("b",))
    assert {name: server.allows(name, reads=name == "reader") for name in takes} == takes | {"b": False}


@pytest.mark.parametrize(
    ("asks", "trusts", "asked"),
    [
        (ANY_TOOL, None, ["a", "b", "reader"]),
        (None, ANY_TOOL, []),
        (None, None, ["a", "b", "reader"]),
        (ONLY, None, ["a"]),
        (None, ONLY, ["b", "reader"]),
        (None, READS, ["a", "b"]),
        (ONLY, READS, ["a"]),
        (ANY_TOOL, ONLY, ["b", "reader"]),
    ],
)
def test_who_is_not_trusted_is_asked_about(
    asks: ToolFilter | None, trusts: ToolFilter | None, asked: list[str]
) -> None:
    server = RemoteMcpServer(label="s", ask_approval=asks, skip_approval=trusts)
    names = ("a", "b", "reader")
    assert [name for name in names if server.needs_approval(name, reads=name == "reader")] == asked


def test_the_name_says_whose_tool_it_is() -> None:
    assert mcp_tool_name("github", "get_issue") == "mcp__github__get_issue"


@pytest.mark.parametrize(
    ("server", "waiting"),
    [
        (RemoteMcpServer(label="git"), set()),
        (RemoteMcpServer(label="git", deferred=ToolFilter()), {"log", "push"}),
        (RemoteMcpServer(label="git", deferred=ToolFilter(), not_deferred=("log",)), {"push"}),
        (RemoteMcpServer(label="git", deferred=ToolFilter(names=("log",))), {"log"}),
        (RemoteMcpServer(label="git", deferred=ToolFilter(read_only=True)), {"log"}),
    ],
)
def test_a_tool_waits_where_its_server_or_its_name_says_so(
    server: RemoteMcpServer, waiting: set[str]
) -> None:
    assert {tool for tool in ("log", "push") if server.is_deferred(tool, reads=tool == "log")} == waiting
