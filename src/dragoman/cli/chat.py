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
    with connect_gateway(args) as gateway:
        return asyncio.run(_chat(args, gateway))


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


async def _chat(args: argparse.Namespace, gateway: GatewayConnection) -> int:
    style = detect_style(sys.stdout, os.environ)
    prompt = open_prompt(make_state_folder(gateway.settings.home), list(COMMANDS))
    screen = TerminalScreen(style, sys.stdout, prompt.ask)
    async with open_session_store(gateway.settings) as sessions:
        name = await _session_name(args, sessions)
        async with open_agent_session(gateway, args, sessions, name, screen, asks=True) as session:
            for text in _greeting(args, gateway, session):
                screen.line(style.paint(text, "dim"))
            commands = ChatCommands(
                conversation=session.conversation,
                sessions=sessions,
                registry=session.toolbox.registry,
                restore=partial(restore_files, session.toolbox.files),
            )
            await Chat(commands, screen, prompt, style).run()
            if session.conversation.history:
                command = f"dragoman chat --resume {session.conversation.session.name}"
                screen.line(style.paint(f"saved; continue with {command}", "dim"))
    return 0


async def _session_name(args: argparse.Namespace, sessions: SessionStore) -> str:
    if args.session:
        return str(args.session)
    if args.resume is None:
        return new_session_name()
    names = [entry.name for entry in await sessions.list()]
    if not args.resume and not names:
        raise CommandError("there are no saved sessions", hint="dragoman chat starts one", code=2)
    if args.resume and not await sessions.exists(args.resume):
        raise CommandError(
            f"there is no session {args.resume}",
            hint=f"saved sessions: {', '.join(names[:5]) or 'none'}",
            code=2,
        )
    return str(args.resume) or names[0]


def _greeting(args: argparse.Namespace, gateway: GatewayConnection, session: AgentSession) -> Sequence[str]:
    config, conversation = gateway.settings.config, session.conversation
    mode = (
        " · every tool call is approved (--yolo)" if args.yolo else " · read only" if args.read_only else ""
    )
    lines = [f"{conversation.model_name} · {describe_upstream(config)} · {os.path.realpath(args.root)}{mode}"]
    if config.backend == "emulator":
        lines.append(f"to use Gemini, set GEMINI_API_KEY ({API_KEY_URL})")
    if conversation.history:
        lines.append(f"resumed {conversation.session.name}, {len(conversation.history)} messages")
    return [*lines, *session.toolbox.warnings, "/help lists the commands"]
