"""`dragoman replay`: send a captured request again and show the differences."""

from __future__ import annotations

import argparse
import asyncio
import sys

from dragoman.cli.captured import need_capture
from dragoman.cli.manual import new_parser
from dragoman.cli.progress import working
from dragoman.cli.screen import Failure, paint, remark, say, visible
from dragoman.cli.settings import add_config_flag, read_settings, warn_all
from dragoman.config import Config
from dragoman.observe.captures import Captured
from dragoman.observe.compare import VERDICTS, Compared, compare
from dragoman.observe.record import Record, Stages

_EPILOG = """\
examples:
  dragoman replay last                       the newest capture, against what the settings name
  dragoman replay req_k3v --against emulator without a key, and free
  dragoman replay req_k3v --model gemini-3.1-pro-preview

A replay changes nothing: no conversation, no budget, no capture."""


def run(argv: list[str]) -> int:
    args = make_parser().parse_args(argv)
    settings = read_settings(args.config)
    warn_all(settings)
    captured = need_capture(settings, args.id)
    _check(captured)
    record, stages = _rerun(settings.config, captured, against=args.against, model=args.model)
    return _show_comparison(captured, record, stages)


def make_parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "replay",
        "Send a captured request again and show the differences.",
        _EPILOG,
    )
    parser.add_argument("id", help="of the request, or its beginning, or: last")
    parser.add_argument(
        "--against", choices=("emulator", "gemini"), default="", help="instead of what the settings name"
    )
    parser.add_argument("--model", default="", help="instead of the model that ran")
    add_config_flag(parser)
    return parser


def _check(captured: Captured) -> None:
    if captured.cut:
        raise Failure(
            "this capture is cut", hint="observe.capture_body_bytes sets how much is kept of a body"
        )
    if "[redacted]" in captured.client_request.text:
        remark(
            "what looked like a secret was taken out of this capture, so the request is not quite the same"
        )


def _rerun(config: Config, captured: Captured, *, against: str, model: str) -> tuple[Record, Stages]:
    from dragoman.server.rerun import rerun_against  # imports the whole server, which --help does not need
    from dragoman.store import open_store

    async def once() -> tuple[Record, Stages]:
        store = open_store(config)
        try:
            return await rerun_against(config, store, captured, against=against, model=model)
        finally:
            await store.close()

    with working("asking again"):
        return asyncio.run(once())


def _show_comparison(captured: Captured, record: Record, stages: Stages) -> int:
    now = stages.upstream[0][0] if stages.upstream else b""
    found = compare(captured, record, asked=now, given=stages.client_answer)
    _show("what Google is asked", found.asked)
    for fact in found.facts:
        then, new = visible(fact.then or "-"), visible(fact.now or "-")
        changed = f"{then} → {paint(new, 'yellow', sys.stdout)}" if fact.then != fact.now else new
        say(f"  {fact.name:<11} {changed}")
    _show("what the client gets", found.given)
    return 0 if found.asked.verdict == "same" else 3


def _show(title: str, compared: Compared) -> None:
    say(f"{paint(title, 'bold', sys.stdout)}: {VERDICTS[compared.verdict]}")
    for line in compared.lines:
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        text = visible(line)
        say("  " + (paint(text, colour, sys.stdout) if colour else text))
