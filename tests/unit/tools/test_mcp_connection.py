"""Corners of a connection that no real server shows on demand."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import anyio
import mcp
import mcp_types
import pytest

from dragoman.config.tools import McpServer
from dragoman.tools.definition import Context
from dragoman.tools.errors import ToolFailed
from dragoman.tools.mcp import connection as module
from dragoman.tools.mcp.connection import McpConnection, StderrReader
from dragoman.tools.mcp.servers import McpTiming


class Client:
    """Fails every call in the same way; its list of tools never ends."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.pages = 0

    async def call_tool(self, *_args: Any, **_more: Any) -> Any:
        assert self.error is not None
        raise self.error

    async def list_tools(self, *, cursor: str | None) -> mcp_types.ListToolsResult:
        self.pages += 1
        tool = mcp_types.Tool(name="same", input_schema={"type": "object"})
        return mcp_types.ListToolsResult(tools=[tool], next_cursor="more")


def link_to(client: Client, *, url: str = "") -> McpConnection:
    link = McpConnection("s", McpServer(url=url), Path("/"), McpTiming(wait_s=0.01))
    link._client = cast("mcp.Client", client)
    return link


def connection_of(link: McpConnection) -> object:
    return link._client


@pytest.mark.parametrize(
    ("error", "url", "gone"),
    [
        (anyio.ClosedResourceError(), "", True),
        (anyio.BrokenResourceError(), "", True),
        (mcp.MCPError(mcp_types.CONNECTION_CLOSED, "closed"), "", True),
        (mcp.MCPError(mcp_types.INVALID_REQUEST, "Session terminated"), "http://127.0.0.1/mcp", True),
        (mcp.MCPError(mcp_types.INVALID_REQUEST, "bad request"), "", False),
        (mcp.MCPError(mcp_types.INVALID_PARAMS, "bad"), "http://127.0.0.1/mcp", False),
        (RuntimeError("no structured content"), "", False),
    ],
)
async def test_only_a_connection_that_is_gone_is_given_up(error: Exception, url: str, gone: bool) -> None:
    link = link_to(Client(error), url=url)
    with pytest.raises(ToolFailed, match="s"):
        await link.call("t", {}, Context())
    assert (connection_of(link) is None) is gone
    if gone:
        with pytest.raises(ToolFailed, match="the MCP server s is not running"):
            await link.call("t", {}, Context())


async def test_a_late_failure_of_an_old_connection_leaves_the_new_one_alone() -> None:
    old, new = Client(anyio.ClosedResourceError()), Client()
    link = link_to(old)

    async def replaced(*_args: Any, **_more: Any) -> Any:
        link._client = cast("mcp.Client", new)
        raise anyio.ClosedResourceError

    old.call_tool = replaced  # type: ignore[method-assign]
    with pytest.raises(ToolFailed):
        await link.call("t", {}, Context())
    assert connection_of(link) is new


async def test_a_list_that_never_ends_is_read_only_so_far() -> None:
    client = Client()
    link = link_to(client)
    await link._list_tools(cast("mcp.Client", client))
    assert client.pages == module._MAX_PAGES
    assert [one.name for one in link.definitions] == ["mcp__s__same"]


async def test_pauses_grow_to_a_limit_and_start_anew_after_a_long_life(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 0.0
    pauses: list[float] = []
    lives = iter([0.0, 0.0, 0.0, 0.0, 10.0, 0.0])

    async def live() -> None:
        nonlocal now_s
        now_s += next(lives)

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 6:
            link.stop()
        await asyncio.sleep(0)

    link = McpConnection(
        "s", McpServer(), Path("/"), McpTiming(first_pause_s=1, longest_pause_s=4, settled_s=10)
    )
    monkeypatch.setattr(link, "_run_once", live)
    monkeypatch.setattr(anyio, "sleep", sleep)
    monkeypatch.setattr(anyio, "current_time", lambda: now_s)
    await link.run()
    assert pauses == [1, 2, 4, 4, 1, 2]


async def test_stderr_keeps_the_group_and_the_last_words_however_they_come() -> None:
    for size in (1, 2, 1000):
        stderr = StderrReader()
        data = b"4711\n" + b"x" * 3000 + b" the end\n"
        for start in range(0, len(data), size):
            stderr.data_received(data[start : start + size])
        assert stderr.group == 4711
        assert stderr.tail.endswith("x the end")
        assert len(stderr.tail) < 2001
    assert StderrReader().group == 0
    cut = StderrReader()
    cut.data_received(b"47")
    assert cut.tail == ""
