"""`dragoman run "task"`: run the agent for one task; the exit code tells how it ended."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.agent.conversation import AgentConversation, new_session_name
from dragoman.agent.events import EndReason, TurnEnd
from dragoman.agent.tui.prompt import PlainPrompt
from dragoman.agent.tui.screens import JsonScreen, PlainScreen, TerminalScreen
from dragoman.agent.tui.style import detect_style
from dragoman.cli.agent_session import (
    GatewayConnection,
    add_agent_flags,
    connect_gateway,
    open_agent_session,
    open_session_store,
)
from dragoman.cli.help_pages import new_parser
from dragoman.cli.terminal import CommandError, print_note

EXIT_CODES: dict[EndReason, int] = {
    "done": 0,
    "failed": 1,
    "blocked": 1,
    "cut": 1,
    "max_steps": 3,
    "max_tokens": 3,
    "max_cost": 3,
    "time": 3,
    "loop": 4,
    "interrupted": 130,
}

_EPILOG = """\
examples:
  dragoman run "which files have no tests?"
  dragoman run --yolo "rename Foo to Bar everywhere"
  echo "review this change" | dragoman run --read-only --json -

The answer is on stdout, everything else on stderr; --json puts one event per line on stdout.
Calls that need approval are refused without a terminal; --yolo or tools.allow rules approve them."""

AnyScreen = JsonScreen | PlainScreen | TerminalScreen


def run(argv: list[str]) -> int:
    args = make_parser().parse_args(argv)
    task = sys.stdin.read() if args.task == "-" else args.task
    if not task.strip():
        raise CommandError("no task given", hint='dragoman run "what to do"', code=2)
    with connect_gateway(args) as gateway:
        return asyncio.run(_run(args, gateway, task))


def make_parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "run",
        "Let the agent do one task in a project.",
        _EPILOG,
    )
    parser.add_argument("task", help="what to do; - reads it from stdin")
    parser.add_argument("--json", action="store_true", help="one JSON event per line on stdout")
    parser.add_argument("--timeout", metavar="S", type=float, help="stop after this many seconds")
    add_agent_flags(parser)
    return parser


async def _run(args: argparse.Namespace, gateway: GatewayConnection, task: str) -> int:
    asks = not args.json and args.task != "-" and sys.stdin.isatty() and sys.stdout.isatty()
    screen = _screen(args, asks=asks)
    name = args.session or new_session_name().replace("chat", "run")
    async with (
        open_session_store(gateway.settings) as sessions,
        open_agent_session(gateway, args, sessions, name, screen, asks=asks) as session,
    ):
        for warning in session.toolbox.warnings:
            print_note(warning)
        if isinstance(screen, JsonScreen):
            screen.begin(session.conversation.session.name, session.conversation.model_name)
        with _interruptible(session.conversation, args.timeout) as signals:
            if isinstance(screen, TerminalScreen):
                async with screen.turn():
                    stop = await session.conversation.send(task)
            else:
                stop = await session.conversation.send(task)
        code = 128 + signals[0] if stop.reason == "interrupted" and signals else EXIT_CODES[stop.reason]
        _end(screen, session.conversation, stop, code)
    return code


def _screen(args: argparse.Namespace, *, asks: bool) -> AnyScreen:
    if args.json:
        return JsonScreen(sys.stdout)
    if sys.stdout.isatty():
        read = _TerminalPrompt().ask if asks else None
        return TerminalScreen(detect_style(sys.stdout, os.environ), sys.stdout, read)
    return PlainScreen(sys.stdout, sys.stderr)


class _TerminalPrompt(PlainPrompt):
    """A prompt on the terminal without a line editor."""

    async def ask(self, label: str) -> str:
        sys.stdout.write(label)
        sys.stdout.flush()
        return await super().ask(label)


def _end(screen: AnyScreen, conversation: AgentConversation, stop: TurnEnd, code: int) -> None:
    if isinstance(screen, JsonScreen):
        screen.end(stop, conversation.usage, code)
        return
    if isinstance(screen, PlainScreen):
        screen.close()
    if stop.reason != "done":
        why = f"{stop.reason.replace('_', ' ')}" + (f": {stop.detail}" if stop.detail else "")
        print_note(f"{why}; the session is {conversation.session.name}")


@contextmanager
def _interruptible(conversation: AgentConversation, timeout_s: float | None) -> Iterator[list[int]]:
    """End the turn cleanly on a signal or a timeout; yield a list that collects the signals."""
    loop = asyncio.get_running_loop()
    received: list[int] = []

    def take(number: int) -> None:
        received.append(number)
        conversation.interrupt()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, take, number)
    timer = (
        loop.call_later(timeout_s, conversation.end_by_limit, f"{timeout_s:g} s are over")
        if timeout_s
        else None
    )
    try:
        yield received
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        if timer is not None:
            timer.cancel()
