"""Validate the settings of MCP servers; no program may be resolved from the current working directory."""

from __future__ import annotations

import os
import re
import shutil
from urllib.parse import urlsplit

import msgspec

from dragoman.config import is_loopback
from dragoman.config.tools import McpServer
from dragoman.errors import ConfigError

_SERVER_NAME = re.compile(
    r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*"
)  # `__` separates server and tool in a tool's name


def check_server(name: str, server: McpServer) -> McpServer:
    """Return the settings with the absolute path of the program. Raise `ConfigError` if they are invalid."""
    where = f"mcp.servers.{name}"
    if not _SERVER_NAME.fullmatch(name):
        raise ConfigError("a server's name has letters, digits, - and single _", where=where)
    if bool(server.command) == bool(server.url):
        raise ConfigError("a server has either a command or a url", where=where)
    if server.url:
        _check_url(server, f"{where}.url")
        return server
    program = _find_program(server.command[0], f"{where}.command")
    return msgspec.structs.replace(server, command=(program, *server.command[1:]))


def _check_url(server: McpServer, where: str) -> None:
    parts = urlsplit(server.url)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError("must be a URL like https://example.com/mcp", where=where)
    if parts.username or parts.password:
        raise ConfigError("must be without user and password: put them into headers", where=where)
    if parts.scheme == "http" and server.headers and not is_loopback(host):
        raise ConfigError(
            f"must be https: the headers would cross the network to {host} in the clear", where=where
        )


def _find_program(given: str, where: str) -> str:
    """Return the path of the program: an absolute path as it is, a bare name from the absolute folders in PATH."""
    program = os.path.expanduser(given)
    if os.path.isabs(program):
        return program
    if os.sep in program:
        message = f"{given!r} depends on the working directory\nwrite the whole path, or a bare name in PATH"
        raise ConfigError(message, where=where)
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]
    found = shutil.which(program, path=os.pathsep.join(folders) or os.devnull)
    if found is None:
        raise ConfigError(f"there is no program {given!r} in PATH", where=where)
    return found
