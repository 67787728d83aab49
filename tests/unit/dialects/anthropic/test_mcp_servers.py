"""MCP servers in a request, with the toolsets of today and the older way to say which tools."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.ir import ANY_TOOL, RemoteMcpServer, ToolFilter
from tests.unit.dialects.anthropic.builders import decode, refused, tool

Json = dict[str, Any]

SERVER: Json = {"type": "url", "name": "s", "url": "https://s"}


def toolset(**more: Any) -> Json:
    return {"type": "mcp_toolset", "mcp_server_name": "s", **more}


@pytest.mark.parametrize(
    ("server", "sets", "expected"),
    [
        ({}, [], {}),
        ({}, [toolset()], {}),
        ({"authorization_token": "t"}, [toolset()], {"headers": (("Authorization", "Bearer t"),)}),
        ({}, [toolset(configs={"a": {"enabled": False}, "b": {}})], {"excluded": ("a",)}),
        (
            {},
            [toolset(default_config={"enabled": False}, configs={"a": {"enabled": True}, "b": {}})],
            {"allowed": ToolFilter(names=("a",))},
        ),
        ({}, [toolset(default_config={"enabled": False})], {"allowed": ToolFilter(names=())}),
        ({"tool_configuration": {"enabled": True}}, [], {}),
        ({"tool_configuration": {"allowed_tools": ["a"]}}, [], {"allowed": ToolFilter(names=("a",))}),
    ],
)
def test_a_server_is_read(server: Json, sets: list[Json], expected: Json) -> None:
    decoded = decode(tools=[tool("f"), *sets], mcp_servers=[{**SERVER, **server}])
    base: Json = {"label": "s", "url": "https://s", "where": "mcp_servers[0]", "skip_approval": ANY_TOOL}
    assert decoded.request.remotes == (RemoteMcpServer(**base, **expected),)
    assert [one.name for one in decoded.request.tools] == ["f"]
    assert decoded.notes == ()


def test_one_that_is_switched_off_is_not_there() -> None:
    off = {**SERVER, "tool_configuration": {"enabled": False}}
    assert decode(mcp_servers=[off]).request.remotes == ()


def test_a_toolset_without_its_server_is_refused() -> None:
    error = refused(tools=[tool("f"), toolset()])
    assert error.where == "tools[1]"
    assert "no MCP server 's'" in str(error)
