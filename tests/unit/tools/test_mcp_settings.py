"""Servers come from the user's settings; nothing in a hostile project may become one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dragoman.config.tools import McpServer
from dragoman.errors import ConfigError
from dragoman.tools.mcp import McpServers
from dragoman.tools.mcp.servers import check_server


@pytest.mark.parametrize(
    ("name", "server", "complaint"),
    [
        ("a__b", McpServer(command=("sh",)), "single _"),
        ("a b", McpServer(command=("sh",)), "single _"),
        ("", McpServer(command=("sh",)), "single _"),
        ("a", McpServer(), "either a command or a url"),
        ("a", McpServer(command=("sh",), url="http://localhost/mcp"), "either a command or a url"),
        ("a", McpServer(command=("./server",)), "depends on the working directory"),
        ("a", McpServer(command=("bin/server",)), "depends on the working directory"),
        ("a", McpServer(command=("no-such-program",)), "there is no program 'no-such-program' in PATH"),
        ("a", McpServer(url="ftp://example.com"), "must be a URL"),
        ("a", McpServer(url="https://"), "must be a URL"),
        ("a", McpServer(url="https://anna:pw@example.com/mcp"), "without user and password"),
        ("a", McpServer(url="https://pw@example.com/mcp"), "without user and password"),
        ("a", McpServer(url="http://example.com/mcp", headers={"Authorization": "x"}), "must be https"),
    ],
)
def test_settings_that_cannot_be_meant_are_errors_with_their_place(
    name: str, server: McpServer, complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        check_server(name, server)
    assert caught.value.where.startswith(f"mcp.servers.{name}")


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:3000/mcp", "https://example.com/mcp", "http://localhost/mcp?x=1"]
)
def test_a_url_may_be_https_or_on_this_machine(url: str) -> None:
    server = McpServer(url=url, headers={"Authorization": "x"})
    assert check_server("a", server) == server


def test_plain_http_without_headers_is_somebodys_own_network() -> None:
    check_server("a", McpServer(url="http://10.0.0.5/mcp"))


def test_a_program_in_the_working_directory_is_never_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trap").write_text("#!/bin/sh\n")
    (tmp_path / "trap").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for path in ("", ".", f".:{Path(sys.executable).parent}"):
        monkeypatch.setenv("PATH", path)
        with pytest.raises(ConfigError, match="no program"):
            check_server("a", McpServer(command=("trap",)))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check_server("a", McpServer(command=("trap", "x"))).command == (str(tmp_path / "trap"), "x")


def test_a_home_folder_may_be_written_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/anna")
    assert check_server("a", McpServer(command=("~/bin/x",))).command == ("/home/anna/bin/x",)


async def test_who_has_no_servers_does_not_need_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delitem(sys.modules, "dragoman.tools.mcp.connection", raising=False)
    switched_off = McpServer(command=("./nowhere",), enabled=False)
    async with McpServers({"a": switched_off}) as servers:
        assert servers.definitions() == ()
        assert servers.problems == {}


async def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] == "mcp" or name.startswith("dragoman.tools.mcp.connection"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(ConfigError, match=r"pip install 'dragoman\[mcp\]'"):
        async with McpServers({"a": McpServer(command=("sh",))}):
            pass


async def test_a_fault_of_our_own_is_not_taken_for_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "dragoman.tools.mcp.connection", raising=False)
    monkeypatch.setitem(sys.modules, "dragoman.tools.mcp.convert", None)
    with pytest.raises(ModuleNotFoundError):
        async with McpServers({"a": McpServer(command=("sh",))}):
            pass
