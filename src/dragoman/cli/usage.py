"""`dragoman usage`: show usage and cost from the ledger, without a running gateway."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta

import msgspec

from dragoman.cli.home import KEY_FILE
from dragoman.cli.manual import new_parser
from dragoman.cli.screen import CommandError, print_result, print_status
from dragoman.cli.settings import Settings, add_config_flag, print_setting_notes, read_settings
from dragoman.cli.usage_shown import UsageReport, as_csv, as_json, as_table
from dragoman.observe.usage import GROUPS, NO_LABEL, UsageGroup, group_tallies
from dragoman.server.callers import caller_name, caller_names
from dragoman.store import LEDGER_DAYS, OTHER_LABEL, StoreUnavailable, Tally, open_store
from dragoman.store.opening import ledger_is_empty

_DAYS = 30
_MAX_ROWS = 40
_EPILOG = """\
examples:
  dragoman usage                        the last 30 days, by model
  dragoman usage --by day --days 7
  dragoman usage --by tool              calls, failures, time, mended arguments
  dragoman usage --by session --since 2026-11-01 --csv > sessions.csv
  dragoman usage --json | jq .total

Days are those of UTC. Costs are list prices of the paid tier; a price that is not known is told,
never guessed: limits.prices sets one. What is noted holds no words of users (observe.ledger)."""


def run(argv: list[str]) -> int:
    args = make_parser().parse_args(argv)
    settings = read_settings(args.config)
    print_setting_notes(settings)
    first, last = _days(args)
    if ledger_is_empty(settings.config):
        tallies: tuple[list[Tally], list[Tally]] = ([], [])
    else:
        tallies = asyncio.run(_read_ledger(settings, GROUPS[args.by][0], first, last))
    groups = [
        _with_caller_names(one, args.by, _caller_names(settings))
        for one in group_tallies(tallies[0], args.by)
    ]
    unpriced = [one.names[0] for one in group_tallies(tallies[1], "model") if one.sums.get("unpriced")]
    report = UsageReport(by=args.by, first_day=first, last_day=last, groups=groups, unpriced=unpriced)
    if args.json:
        print_result(as_json(report))
    elif args.csv:
        sys.stdout.write(as_csv(report))
    elif groups:
        print_result(as_table(report, args.number))
    if not groups:
        off = "" if settings.config.observe.ledger else "; observe.ledger is off"
        print_status(f"nothing is noted between {first} and {last}{off}")
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = new_parser("usage", "Show what was used and what it cost.", _EPILOG)
    parser.add_argument(
        "--by", choices=tuple(GROUPS), default="model", help="one row for each (default: model)"
    )
    when = parser.add_mutually_exclusive_group()
    when.add_argument(
        "--days", type=int, default=_DAYS, metavar="N", help=f"the last N days (default {_DAYS})"
    )
    when.add_argument("--since", metavar="DAY", default="", help="since this day, as in 2026-11-16")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object, with every sum there is")
    form.add_argument("--csv", action="store_true", help="for a spreadsheet")
    parser.add_argument(
        "-n",
        dest="number",
        type=int,
        default=_MAX_ROWS,
        metavar="N",
        help=f"rows of the table (default {_MAX_ROWS})",
    )
    add_config_flag(parser)
    return parser


def _days(args: argparse.Namespace) -> tuple[str, str]:
    today = datetime.now(UTC).date()
    if args.since:
        try:
            first = date.fromisoformat(args.since)
        except ValueError:
            raise CommandError(f"--since takes a day as in {today}, not {args.since!r}", code=2) from None
    elif args.days < 1:
        raise CommandError(f"--days must be at least 1, not {args.days}", code=2)
    else:
        first = today - timedelta(days=min(args.days, LEDGER_DAYS) - 1)
    return max(first, today - timedelta(days=LEDGER_DAYS)).isoformat(), today.isoformat()


async def _read_ledger(
    settings: Settings, kind: str, first: str, last: str
) -> tuple[list[Tally], list[Tally]]:
    """Return the tallies of the requested kind, and the totals, whose labels include the model."""
    store = open_store(settings.config)
    try:
        wanted = await store.ledger.tallies(kind, first, last)
        return wanted, wanted if kind == "total" else await store.ledger.tallies("total", first, last)
    except StoreUnavailable as error:
        raise CommandError(str(error)) from None
    finally:
        await store.close()


def _caller_names(settings: Settings) -> dict[str, str]:
    others = {os.environ.get("DRAGOMAN_GATEWAY_KEY", "").strip(): "DRAGOMAN_GATEWAY_KEY"}
    with contextlib.suppress(OSError):
        others[(settings.home / KEY_FILE).read_text("ascii", "replace").strip()] = KEY_FILE
    return caller_names(settings.config, others)


def _with_caller_names(one: UsageGroup, by: str, names: Mapping[str, str]) -> UsageGroup:
    if "key" not in GROUPS[by][1]:
        return one
    scope, *rest = one.names
    plain = scope in (OTHER_LABEL, NO_LABEL)
    return msgspec.structs.replace(one, names=(scope if plain else caller_name(scope, names), *rest))
