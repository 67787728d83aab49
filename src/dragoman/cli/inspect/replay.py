"""`dragoman replay`: send a captured request again and show the differences."""

from __future__ import annotations

import argparse
import asyncio
import sys

from dragoman.cli.help_pages import new_parser
from dragoman.cli.inspect.capture import require_capture
from dragoman.cli.settings import add_config_flag, print_setting_notes, read_settings
from dragoman.cli.terminal import CommandError, paint, print_result, print_status, replace_controls, spinner
from dragoman.config import Config
from dragoman.observe.captures import CapturedRequest
from dragoman.observe.compare import VERDICT_TEXTS, BodyComparison, compare
from dragoman.observe.record import RequestRecord, RequestStages

_EPILOG = """\
examples:
  dragoman replay last                       the newest capture, with the configured upstream
  dragoman replay req_k3v --against emulator without a key, and free
  dragoman replay req_k3v --model gemini-3.1-pro-preview

A replay stores nothing: no conversation, no quota usage, no capture."""


def run(argv: list[str]) -> int:
    args = make_parser().parse_args(argv)
    settings = read_settings(args.config)
    print_setting_notes(settings)
    captured = require_capture(settings, args.id)
    _check(captured)
    record, stages = _rerun(settings.config, captured, against=args.against, model=args.model)
    return _show_comparison(captured, record, stages)


def make_parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "replay",
        "Send a captured request again and show the differences.",
        _EPILOG,
    )
    parser.add_argument("id", help="request id, a prefix of it, or: last")
    parser.add_argument(
        "--against", choices=("emulator", "gemini"), default="", help="instead of the configured upstream"
    )
    parser.add_argument("--model", default="", help="instead of the original model")
    add_config_flag(parser)
    return parser


def _check(captured: CapturedRequest) -> None:
    if captured.cut:
        raise CommandError(
            "this capture is truncated",
            hint="observe.capture_body_bytes sets the maximum size of a captured body",
        )
    if "[redacted]" in captured.client_request.text:
        print_status("secrets were redacted in this capture, so the request differs from the original")


def _rerun(
    config: Config, captured: CapturedRequest, *, against: str, model: str
) -> tuple[RequestRecord, RequestStages]:
    from dragoman.gateway.dashboard.replay import replay_against
    from dragoman.store import open_store

    async def once() -> tuple[RequestRecord, RequestStages]:
        store = open_store(config)
        try:
            return await replay_against(config, store, captured, against=against, model=model)
        finally:
            await store.close()

    with spinner("sending the request"):
        return asyncio.run(once())


def _show_comparison(captured: CapturedRequest, record: RequestRecord, stages: RequestStages) -> int:
    now = stages.upstream[0][0] if stages.upstream else b""
    found = compare(captured, record, upstream_request=now, client_answer=stages.client_answer)
    _show("the requests to Google", found.asked)
    for fact in found.facts:
        then, new = replace_controls(fact.then or "-"), replace_controls(fact.now or "-")
        changed = f"{then} → {paint(new, 'yellow', sys.stdout)}" if fact.then != fact.now else new
        print_result(f"  {fact.name:<11} {changed}")
    _show("the response to the client", found.given)
    return 0 if found.asked.verdict == "same" else 3


def _show(title: str, compared: BodyComparison) -> None:
    print_result(f"{paint(title, 'bold', sys.stdout)}: {VERDICT_TEXTS[compared.verdict]}")
    for line in compared.lines:
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        text = replace_controls(line)
        print_result("  " + (paint(text, colour, sys.stdout) if colour else text))
