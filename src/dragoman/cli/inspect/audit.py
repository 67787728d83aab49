"""`dragoman audit`: show tool executions, who approved them, and what was refused."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from time import sleep

import msgspec

from dragoman.cli.help_pages import new_parser
from dragoman.cli.settings import add_config_flag, print_setting_notes, read_settings
from dragoman.cli.terminal import CommandError, paint, print_result, print_status, replace_controls
from dragoman.tools.audit import AUDIT_FILE, AuditEntry, AuditFollower, last_entries

_POLL_S = 0.25
_COLOURS = {"ok": "green", "refused": "yellow"}
_SESSION_WIDTH = 12  # characters of a session's name
_HEAD = ("time", "session", "tool", "outcome", "by", "ms", "bytes", "arguments")
_WIDTHS = (19, _SESSION_WIDTH, 22, 9, 28, 8, 9, 0)

_EPILOG = """\
examples:
  dragoman audit --denied              what was refused, and by which rule
  dragoman audit --tool 'mcp__*' -f    calls of MCP tools, as they happen
  dragoman audit --json -n 1000        for a script

The log is audit.jsonl in the state folder; tools.audit sets whether it includes the arguments."""


def run(argv: list[str]) -> int:
    args = _parse(argv)
    settings = read_settings(args.config)
    print_setting_notes(settings)
    path = settings.home / AUDIT_FILE
    show = _as_json if args.json else _as_row
    # opened before reading: an entry may be shown twice, but none is missed
    tail = AuditFollower(path) if args.follow else None
    entries, damaged = last_entries(path, _filter(args), args.number)
    if not entries and tail is None:
        print_status(f"no{' matching' if path.exists() else ''} entries in {path}")
    if damaged:
        print_status(f"{damaged} damaged lines were skipped")
    if not args.json and (entries or tail):
        print_result(paint(_row(_HEAD), "bold", sys.stdout))
    for entry in entries:
        print_result(show(entry))
    if tail is not None:
        _follow(tail, _filter(args), show)
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "audit",
        "Show tool executions.",
        _EPILOG,
    )
    parser.add_argument("--session", default="", help="only this session (its name, or a prefix of it)")
    parser.add_argument("--tool", default="", help="only this tool; * stands for anything")
    parser.add_argument("--denied", action="store_true", help="only refused calls")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument(
        "-n", dest="number", type=int, default=50, metavar="N", help="number of entries (default 50)"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="wait for new entries")
    add_config_flag(parser)
    return parser


def _parse(argv: list[str]) -> argparse.Namespace:
    args = make_parser().parse_args(argv)
    if args.number < 0:
        raise CommandError(f"-n must be at least 0, not {args.number}", code=2)
    return args


def _filter(args: argparse.Namespace) -> Callable[[AuditEntry], bool]:
    def wanted(entry: AuditEntry) -> bool:
        return (
            entry.session.startswith(args.session)
            and (not args.tool or fnmatchcase(entry.tool, args.tool))
            and not (args.denied and entry.allowed and entry.outcome != "refused")
        )

    return wanted


def _follow(
    tail: AuditFollower, wanted: Callable[[AuditEntry], bool], show: Callable[[AuditEntry], str]
) -> None:
    """Print new entries until the user interrupts."""
    with contextlib.closing(tail):
        while True:
            for entry in filter(wanted, tail.read_new()):
                print_result(show(entry))
            sleep(_POLL_S)


def _as_json(entry: AuditEntry) -> str:
    return msgspec.json.encode(entry).decode()


def _as_row(entry: AuditEntry) -> str:
    arguments = entry.digest if entry.args is None else msgspec.json.encode(entry.args).decode()
    cells = (
        f"{entry.at.astimezone():%Y-%m-%d %H:%M:%S}",
        entry.session[:_SESSION_WIDTH],
        entry.tool,
        entry.outcome,
        entry.by,
        f"{entry.seconds * 1000:.0f}",
        str(entry.bytes),
        arguments,
    )
    line = _row(tuple(replace_controls(cell) for cell in cells))
    word = f"{replace_controls(entry.outcome):<{_WIDTHS[3]}}"
    return line.replace(word, paint(word, _COLOURS.get(entry.outcome, "red"), sys.stdout), 1)


def _row(cells: tuple[str, ...]) -> str:
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)).rstrip()
