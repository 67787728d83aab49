"""`dragoman chat`: the interactive agent."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from functools import partial

from dragoman.agent.conversation import new_session_name
from dragoman.agent.sessions import SessionStore
from dragoman.agent.toolbox import restore_files
from dragoman.agent.tui.chat import COMMANDS, Chat, ChatCommands
from dragoman.agent.tui.prompt import open_prompt
from dragoman.agent.tui.screens import TerminalScreen
from dragoman.agent.tui.style import detect_style
from dragoman.cli.agent_session import (
    AgentSession,
    GatewayConnection,
    add_agent_flags,
    connect_gateway,
    open_agent_session,
    open_session_store,
)
from dragoman.cli.banner import API_KEY_URL, describe_upstream
from dragoman.cli.help_pages import new_parser
from dragoman.cli.settings import make_state_folder
from dragoman.cli.terminal import CommandError

_EPILOG = """\
examples:
  dragoman chat                        an agent with the files of this folder
  dragoman chat --resume               continue the last session
  dragoman chat --read-only --root ~/project

In a chat, /help lists the commands. Ctrl-C stops the turn; pressed twice at the prompt, it quits.
Without GEMINI_API_KEY the built-in emulator answers; it does what `use NAME with {JSON}` says."""


def run(argv: list[str]) -> int:
    args = make_parser().parse_args(argv)
    with connect_gateway(args) as line:
        return asyncio.run(_chat(args, line))


def make_parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "chat",
        "Chat with an agent that reads and writes the files of a project, and asks before it changes anything.",
        _EPILOG,
    )
    add_agent_flags(parser)
    parser.add_argument(
        "--resume", metavar="NAME", nargs="?", const="", help="continue a session (default: the last one)"
    )
    return parser


async def _chat(args: argparse.Namespace, line: GatewayConnection) -> int:
    style = detect_style(sys.stdout, os.environ)
    prompt = open_prompt(make_state_folder(line.settings.home), list(COMMANDS))
    screen = TerminalScreen(style, sys.stdout, prompt.ask)
    async with open_session_store(line.settings) as sessions:
        name = await _session_name(args, sessions)
        async with open_agent_session(line, args, sessions, name, screen, asks=True) as bench:
            for text in _greeting(args, line, bench):
                screen.line(style.paint(text, "dim"))
            room = ChatCommands(
                conversation=bench.conversation,
                sessions=sessions,
                registry=bench.toolbox.registry,
                restore=partial(restore_files, bench.toolbox.files),
            )
            await Chat(room, screen, prompt, style).run()
            if bench.conversation.history:
                again = f"dragoman chat --resume {bench.conversation.session.name}"
                screen.line(style.paint(f"saved; continue with {again}", "dim"))
    return 0


async def _session_name(args: argparse.Namespace, sessions: SessionStore) -> str:
    if args.session:
        return str(args.session)
    if args.resume is None:
        return new_session_name()
    kept = [entry.name for entry in await sessions.list()]
    if not args.resume and not kept:
        raise CommandError("there are no saved sessions", hint="dragoman chat starts one", code=2)
    if args.resume and not await sessions.exists(args.resume):
        raise CommandError(
            f"there is no session {args.resume}",
            hint=f"saved sessions: {', '.join(kept[:5]) or 'none'}",
            code=2,
        )
    return str(args.resume) or kept[0]


def _greeting(args: argparse.Namespace, line: GatewayConnection, bench: AgentSession) -> Sequence[str]:
    config, desk = line.settings.config, bench.conversation
    mode = (
        " · every tool call is approved (--yolo)" if args.yolo else " · read only" if args.read_only else ""
    )
    lines = [f"{desk.model_name} · {describe_upstream(config)} · {os.path.realpath(args.root)}{mode}"]
    if config.backend == "emulator":
        lines.append(f"to use Gemini, set GEMINI_API_KEY ({API_KEY_URL})")
    if desk.history:
        lines.append(f"resumed {desk.session.name}, {len(desk.history)} messages")
    return [*lines, *bench.toolbox.warnings, "/help lists the commands"]
