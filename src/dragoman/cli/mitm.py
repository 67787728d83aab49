"""`dragoman mitm`: tools for a local Gemini program whose base URL cannot be changed."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from dragoman.agent.toolbox import Toolbox, open_toolbox
from dragoman.cli.help_pages import new_parser
from dragoman.cli.settings import (
    Settings,
    add_config_flag,
    find_client_key,
    make_state_folder,
    print_setting_notes,
    read_settings,
)
from dragoman.cli.terminal import CommandError, print_result, print_status
from dragoman.errors import ConfigError, InvalidRequest
from dragoman.gateway.auth.authenticator import scope_of
from dragoman.gateway.gateway_tools.session_state import SessionToolset, ToolSession, check_session_name
from dragoman.gateway.handlers.admin_formats import check_tool_config, decode_tools
from dragoman.ir import ToolCall, ToolResult
from dragoman.mitm.interceptor import Interceptor
from dragoman.mitm.proxy import CERTIFICATE, LOOPBACK, GeminiAddon, check_installed, run_proxy
from dragoman.store import open_store
from dragoman.tools import Context
from dragoman.upstream.client import UpstreamClient

_FOLDER = "mitm"

_EXAMPLES = """\
examples:
  dragoman mitm --tools tools.json             calls are captured; results come through the admin API of a gateway
  dragoman mitm --run read_file,search_files   built-in tools, run here, inside --root
  dragoman mitm --session demo                 the tools that the session demo has already

It listens on 127.0.0.1 only and decrypts only traffic to Google's Gemini hosts; everything else is passed on unread.
Your program must use the proxy and trust its certificate; the command prints how. More: docs/session-tools.md."""


def run(argv: list[str]) -> int:
    """Serve until a signal arrives."""
    args = make_parser().parse_args(argv)
    check_installed()
    if not 0 <= args.port <= 65535:
        raise ConfigError(f"must be a port number, not {args.port}", where="--port")
    check_session_name(args.session)
    settings = read_settings(args.config)
    print_setting_notes(settings)
    make_state_folder(settings.home)
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_serve(args, settings))
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "mitm",
        "Give tools to a Gemini program on this machine whose base URL cannot be changed.",
        _EXAMPLES,
    )
    parser.add_argument(
        "--tools", metavar="FILE", help="tools for the session, in the format of the admin API"
    )
    parser.add_argument("--run", metavar="NAME,…", help="tools of `dragoman tools list`, run here")
    parser.add_argument(
        "--session", metavar="NAME", default="mitm", help="the session in the store (default mitm)"
    )
    parser.add_argument(
        "--root", metavar="DIR", default=".", help="the project of --run (default: this folder)"
    )
    parser.add_argument("--port", type=int, default=8380, help="port, 0 for any free one (default 8380)")
    parser.add_argument(
        "--upstream", metavar="URL", help="the upstream instead of Google (default: GEMINI_BASE_URL)"
    )
    add_config_flag(parser)
    return parser


async def _serve(args: argparse.Namespace, settings: Settings) -> None:
    config = settings.config
    async with contextlib.AsyncExitStack() as stack:
        store = open_store(config)
        stack.push_async_callback(store.close)
        client = UpstreamClient(
            connect_timeout_s=config.upstream.connect_timeout_s,
            idle_timeout_s=config.upstream.idle_timeout_s,
            total_timeout_s=config.upstream.total_timeout_s,
        )
        stack.push_async_callback(client.close)
        session = ToolSession(store.session_tools, _scope(settings), args.session)
        toolbox = await stack.enter_async_context(_toolbox(args, settings)) if args.run else None
        toolset = await _set_tools(args, session, toolbox)
        runner = _Runner(toolbox, args.session) if toolbox is not None else None
        interceptor = Interceptor(
            session, wait_s=config.sessions.follow_up_wait_s, now=time.time, runner=runner
        )
        addon = GeminiAddon(interceptor, client, upstream=args.upstream or config.upstream.base_url)
        folder = settings.home / _FOLDER
        names = ", ".join(tool.name for tool in toolset.tools)
        await run_proxy(
            addon,
            port=args.port,
            folder=folder,
            on_ready=lambda url: print_result(_banner(url, folder / CERTIFICATE, names, args)),
        )


def _scope(settings: Settings) -> str:
    """Return the scope of the gateway key, so that a gateway with the same state folder shares the session."""
    key = find_client_key(settings)
    return scope_of(key.secret if key else "")


@contextlib.asynccontextmanager
async def _toolbox(args: argparse.Namespace, settings: Settings) -> Any:
    """Open the tools that `--run` names; naming them allows them, but deny rules still apply."""
    config = settings.config
    names = tuple(args.run.split(","))
    allowed = msgspec.structs.replace(config.tools, allow=(*config.tools.allow, *names))
    root = Path(args.root).expanduser().absolute()
    if not root.is_dir():
        raise CommandError(f"{root} is not a folder", code=2)
    async with contextlib.AsyncExitStack() as stack:
        try:
            toolbox = await stack.enter_async_context(
                open_toolbox(root=root, home=settings.home, settings=allowed, servers=config.mcp.servers)
            )
        except ConfigError as error:  # an unknown name is reported as a rule for an unknown tool
            raise ConfigError(error.message, where=error.where if config.tools.allow else "--run") from None
        for text in toolbox.warnings:
            print_status(text)
        for name in set(toolbox.registry.names()) - set(names):
            toolbox.registry.remove(name)
        yield toolbox


async def _set_tools(
    args: argparse.Namespace, session: ToolSession, toolbox: Toolbox | None
) -> SessionToolset:
    """Set the session's tools from `--tools` or `--run`, or return the tools that it has."""
    if args.tools and toolbox is not None:
        raise CommandError(
            "--tools and --run cannot be combined: others answer --tools, --run is executed here", code=2
        )
    if args.tools:
        toolset = _read(Path(args.tools))
    elif toolbox is not None:
        toolset = SessionToolset(tools=toolbox.registry.to_ir())
    else:
        known = await session.get_toolset()
        if known is None:
            hint = "give them with --tools FILE or --run NAME, or PUT them to the admin API of a gateway"
            raise CommandError(f"the session {session.name!r} has no tools", hint=hint, code=2)
        return known
    await session.clear()
    await session.set_toolset(toolset)
    return toolset


def _read(file: Path) -> SessionToolset:
    try:
        found = msgspec.json.decode(file.read_bytes())
        body = found if isinstance(found, dict) else {"tools": found}
        if not isinstance(body.get("tools"), list) or not all(isinstance(one, dict) for one in body["tools"]):
            raise InvalidRequest("this must be a list of tools", where="tools")
        tools = decode_tools(body["tools"])
        keep, config = body.get("keep_client_tools", True), body.get("toolConfig")
        check_tool_config(config, tools, alone=not keep)
    except (InvalidRequest, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(error), where=str(file)) from None
    return SessionToolset(tools=tools, keep_client_tools=bool(keep), tool_config=config)


class _Runner:
    """Run the calls of one step through the tool handler."""

    def __init__(self, toolbox: Toolbox, session: str) -> None:
        self._handler = toolbox.handler
        self._context = Context(session=session)

    async def __call__(self, calls: Sequence[ToolCall]) -> Sequence[ToolResult]:
        return await self._handler.execute_all(calls, self._context)


def _banner(url: str, certificate: Path, names: str, args: argparse.Namespace) -> str:
    """Return the ready line, followed by commands to copy."""
    mode = "run here" if args.run else f"captured in session {args.session}"
    return "\n".join(
        [
            f"ready on {url} → Google's Gemini hosts, with {names} ({mode})",
            "",
            "  The proxy decrypts TLS with a certificate authority created for this machine; only programs you configure",
            "  trust it. To remove it, delete its folder; never add it to the system's trust store.",
            "",
            f"  Python   HTTPS_PROXY={url} SSL_CERT_FILE={certificate} python my_agent.py",
            f"  Node     HTTPS_PROXY={url} NODE_EXTRA_CA_CERTS={certificate} node my_agent.js",
            f"  others   proxy {url}, certificate {certificate}",
            "",
            f"  It listens on {LOOPBACK} only. Stop with Ctrl-C.",
        ]
    )
