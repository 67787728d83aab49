"""Shared parts of `dragoman chat` and `dragoman run`: flags, gateway, tools and session."""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec

from dragoman.agent.conversation import AgentConversation, AgentDependencies
from dragoman.agent.limits import AgentLimits
from dragoman.agent.model import GeminiAgentModel
from dragoman.agent.runner import AgentScreen, MachineApprover
from dragoman.agent.sessions import SessionStore
from dragoman.agent.toolbox import Toolbox, open_toolbox
from dragoman.cli.gateway import open_gateway
from dragoman.cli.settings import (
    Settings,
    add_config_flag,
    find_client_key,
    make_state_folder,
    print_setting_notes,
    read_settings,
)
from dragoman.cli.terminal import STARTING_TOOLS, CommandError, enter_with_spinner
from dragoman.store import SqliteStore
from dragoman.tools.permissions import Mode
from dragoman.upstream.client import UpstreamClient

SESSIONS_FILE = "sessions.db"
_SESSIONS_KEPT_S = 90 * 24 * 3600.0


class GatewayConnection(msgspec.Struct, frozen=True, kw_only=True):
    """The settings and a gateway that accepts this token."""

    settings: Settings
    base_url: str
    token: str


class AgentSession(msgspec.Struct, frozen=True, kw_only=True):
    """An agent session that is ready for the first message."""

    conversation: AgentConversation
    sessions: SessionStore
    toolbox: Toolbox


def add_agent_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--root", metavar="DIR", default=".", help="the project (default: this folder)")
    parser.add_argument("--model", metavar="M", help="a Gemini model (default: agent.model, models.default)")
    parser.add_argument("--yolo", action="store_true", help="approve every tool call; deny rules still apply")
    parser.add_argument(
        "--read-only", action="store_true", help="refuse tools that write files or run commands"
    )
    parser.add_argument(
        "--max-steps", metavar="N", type=_positive_int, help="maximum number of model responses in a turn"
    )
    parser.add_argument(
        "--max-tokens", metavar="N", type=_positive_int, help="maximum number of tokens in a session"
    )
    parser.add_argument("--max-cost", metavar="USD", type=float, help="maximum cost of a session in dollars")
    parser.add_argument("--session", metavar="NAME", help="save the session under this name, or continue it")
    add_config_flag(parser)


@contextlib.contextmanager
def connect_gateway(args: argparse.Namespace) -> Iterator[GatewayConnection]:
    if args.config:
        os.environ["DRAGOMAN_CONFIG"] = args.config  # for the gateway, which runs in its own process
    settings = read_settings(args.config)
    print_setting_notes(settings)
    if not Path(args.root).is_dir():
        raise CommandError(f"{args.root} is not a folder", hint="--root takes the project's folder", code=2)
    if args.yolo and args.read_only:
        raise CommandError("--yolo and --read-only contradict each other", code=2)
    key = find_client_key(settings)
    token = key.secret if key else "no-auth"
    with open_gateway(settings, token) as base_url:
        yield GatewayConnection(settings=settings, base_url=base_url, token=token)


@contextlib.asynccontextmanager
async def open_session_store(settings: Settings) -> AsyncIterator[SessionStore]:
    store = SqliteStore(
        make_state_folder(settings.home) / SESSIONS_FILE,
        max_age_s=_SESSIONS_KEPT_S,
        max_bytes=settings.config.store.max_bytes,
        now=time.time,
    )
    try:
        yield SessionStore(store.turns)
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def open_agent_session(
    gateway: GatewayConnection,
    args: argparse.Namespace,
    sessions: SessionStore,
    session: str,
    screen: AgentScreen,
    *,
    asks: bool,
) -> AsyncIterator[AgentSession]:
    """Open the tools and the session; `asks` says whether a user can approve tool calls."""
    config, root = gateway.settings.config, Path(os.path.realpath(args.root))
    upstream = config.upstream
    client = UpstreamClient(
        connect_timeout_s=upstream.connect_timeout_s,
        idle_timeout_s=upstream.idle_timeout_s,
        total_timeout_s=upstream.total_timeout_s,
    )
    approver = MachineApprover()
    mode: Mode = "yolo" if args.yolo else "read_only" if args.read_only else "normal"
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(client.close)
        tools = open_toolbox(
            root=root,
            home=gateway.settings.home,
            settings=config.tools,
            servers=config.mcp.servers,
            mode=mode,
            approver=approver if asks else None,
            strict=config.strict_tool_validation,
        )
        toolbox = await stack.enter_async_context(enter_with_spinner(STARTING_TOOLS, tools))
        dependencies = AgentDependencies(
            root=root,
            model=GeminiAgentModel(gateway.base_url, gateway.token, client),
            tool_executor=toolbox.handler,
            screen=screen,
            sessions=sessions,
            approver=approver,
            tools=toolbox.registry.to_ir,
            limits=_limits(gateway.settings, args),
            read_only=args.read_only,
        )
        saved_session = await sessions.open(session)
        name = args.model or saved_session.model or config.agent.model or config.models.default
        yield AgentSession(
            conversation=AgentConversation(dependencies, saved_session, name),
            sessions=sessions,
            toolbox=toolbox,
        )


def _limits(settings: Settings, args: argparse.Namespace) -> AgentLimits:
    agent = settings.config.agent
    return AgentLimits(
        max_steps=args.max_steps or agent.max_steps,
        max_tokens=args.max_tokens or agent.max_tokens,
        max_cost_usd=args.max_cost or agent.max_cost_usd,
    )


def _positive_int(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number
