"""`dragoman usage`: show usage and cost from the ledger as a table, JSON or CSV, without a running gateway."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

import msgspec

from dragoman.cli.help_pages import new_parser
from dragoman.cli.settings import KEY_FILE, Settings, add_config_flag, print_setting_notes, read_settings
from dragoman.cli.terminal import CommandError, paint, print_result, print_status, replace_controls
from dragoman.gateway.auth.authenticator import caller_name, caller_names
from dragoman.observe.usage import (
    GROUPS,
    MICROS_PER_USD,
    NO_LABEL,
    SUMS,
    UsageGroup,
    group_tallies,
    total_sums,
)
from dragoman.store import LEDGER_DAYS, OTHER_LABEL, StoreUnavailable, Tally, open_store
from dragoman.store.factory import ledger_is_empty

Sums = Mapping[str, int]
_MAX_NAME = 44


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a usage query; `unpriced` lists models whose price is unknown."""

    by: str
    first_day: str
    last_day: str
    groups: list[UsageGroup]
    unpriced: list[str]


#: Columns of the table: the heading, and a function that formats the value.
_REQUEST_COLUMNS: dict[str, Callable[[Sums], str]] = {
    "requests": lambda sums: _count(sums, "requests"),
    "failed": lambda sums: _count(sums, "failed"),
    "input": lambda sums: _count(sums, "input"),
    "cached": lambda sums: _count(sums, "cached"),
    "output": lambda sums: _count(sums, "output"),
    "calls": lambda sums: _count(sums, "calls"),
    "cost": lambda sums: _cost(sums),
}
_TOOL_COLUMNS: dict[str, Callable[[Sums], str]] = {
    "calls": lambda sums: _count(sums, "calls"),
    "results": lambda sums: _count(sums, "results"),
    "failed": lambda sums: _count(sums, "failed"),
    "mean time": lambda sums: _time(sums),
    "repaired": lambda sums: _count(sums, "repairs"),
    "mean size": lambda sums: _size(sums),
}


def as_table(report: UsageReport, most: int) -> str:
    columns = _TOOL_COLUMNS if report.by == "tool" else _REQUEST_COLUMNS
    heads = (*_headings(report), *columns)
    shown = report.groups[:most]
    rows = [
        (*map(_printable_name, one.names), *(column(one.sums) for column in columns.values()))
        for one in shown
    ]
    sums = total_sums(report.groups)
    blank = ("",) * (len(_headings(report)) - 1)
    last = ("total", *blank, *(column(sums) for column in columns.values()))
    widths = [max(map(len, cells)) for cells in zip(heads, *rows, last, strict=True)]
    lines = [paint(_line(heads, widths, len(blank) + 1), "bold", sys.stdout)]
    lines += [_highlight_failures(_line(row, widths, len(blank) + 1), row, heads) for row in rows]
    if len(report.groups) > len(shown):
        lines.append(paint(f"… and {len(report.groups) - len(shown)} more (-n)", "dim", sys.stdout))
    lines.append(paint(_line(last, widths, len(blank) + 1), "bold", sys.stdout))
    return "\n".join([*lines, *_footnotes(report, sums)])


def as_json(report: UsageReport) -> str:
    names, by = _headings(report), report.by
    rows = [dict(zip(names, one.names, strict=True)) | _values(one.sums, by) for one in report.groups]
    value = {
        "by": report.by,
        "first_day": report.first_day,
        "last_day": report.last_day,
        "rows": rows,
        "total": _values(total_sums(report.groups), by),
        "unpriced_models": report.unpriced,
    }
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def as_csv(report: UsageReport) -> str:
    """Return CSV; the columns are always the same, so that scripts can rely on them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((*_headings(report), *_values({}, report.by)))
    for one in report.groups:
        writer.writerow(
            (*map(_csv_cell, one.names), *map(_csv_number, _values(one.sums, report.by).values()))
        )
    return out.getvalue()


def _headings(report: UsageReport) -> Sequence[str]:
    return GROUPS[report.by][1] or ("day",)


def _values(sums: Sums, by: str) -> dict[str, int | float | None]:
    """Return every sum, with the cost in dollars; None if no price is known."""
    row: dict[str, int | float | None] = {name: sums.get(name, 0) for name in SUMS[GROUPS[by][0]]}
    if "micro_usd" in row:
        micro = sums.get("micro_usd", 0)
        row["cost_usd"] = None if sums.get("unpriced") and not micro else micro / MICROS_PER_USD
        del row["micro_usd"]
    return row


def _line(cells: Sequence[str], widths: Sequence[int], names: int) -> str:
    """Align names to the left and numbers to the right."""
    left = [f"{cell:<{width}}" for cell, width in zip(cells[:names], widths[:names], strict=True)]
    right = [f"{cell:>{width}}" for cell, width in zip(cells[names:], widths[names:], strict=True)]
    return "  ".join((*left, *right)).rstrip()


def _highlight_failures(line: str, row: Sequence[str], heads: Sequence[str]) -> str:
    failed = dict(zip(heads, row, strict=True)).get("failed", "")
    return paint(line, "yellow", sys.stdout) if failed not in ("", "·") else line


def _footnotes(report: UsageReport, sums: Sums) -> list[str]:
    footnotes = [f"{report.first_day} to {report.last_day}, UTC"]
    unpriced = sums.get("unpriced", 0)
    if unpriced:
        models = ", ".join(map(_printable_name, report.unpriced))
        footnotes.append(f"+? {unpriced:,} requests without a known price ({models}): limits.prices sets one")
    return [paint(text, "dim", sys.stdout) for text in footnotes]


def _count(sums: Sums, name: str) -> str:
    return f"{sums[name]:,}" if sums.get(name) else "·"


def _cost(sums: Sums) -> str:
    dollars = sums.get("micro_usd", 0) / MICROS_PER_USD
    known = f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.4f}"
    if not sums.get("unpriced"):
        return known
    return f"{known} +?" if dollars else "?"


def _time(sums: Sums) -> str:
    timed = sums.get("timed", 0)
    if not timed:
        return "·"
    mean_ms = sums.get("ms", 0) / timed
    return f"{mean_ms / 1000:,.1f} s" if mean_ms >= 1000 else f"{mean_ms:.0f} ms"


def _size(sums: Sums) -> str:
    results = sums.get("results", 0)
    if not results:
        return "·"
    mean = sums.get("bytes", 0) / results
    return f"{mean / 1024:,.1f} KiB" if mean >= 1024 else f"{mean:.0f} B"


def _printable_name(text: str) -> str:
    """Replace control characters in a name, which clients and models choose, and shorten it."""
    plain = replace_controls(text)
    return plain if len(plain) <= _MAX_NAME else plain[: _MAX_NAME - 1] + "…"


def _csv_cell(text: str) -> str:
    """Quote a name that a spreadsheet would evaluate as a formula."""
    return (
        f"'{text}" if text[:1] in ("=", "+", "@", "\t", "\r") or (text[:1] == "-" and text != "-") else text
    )


def _csv_number(value: int | float | None) -> str:
    return "" if value is None else f"{value:.6f}" if isinstance(value, float) else str(value)


_DAYS = 30
_MAX_ROWS = 40
_EPILOG = """\
examples:
  dragoman usage                        the last 30 days, by model
  dragoman usage --by day --days 7
  dragoman usage --by tool              calls, failures, time, repaired arguments
  dragoman usage --by session --since 2026-11-01 --csv > sessions.csv
  dragoman usage --json | jq .total

Days are in UTC. Costs are list prices of the paid tier; unknown prices are reported, not guessed:
limits.prices sets one. The ledger contains no texts of users (observe.ledger)."""


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
        print_status(f"no requests are recorded between {first} and {last}{off}")
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = new_parser("usage", "Show token usage and costs.", _EPILOG)
    parser.add_argument("--by", choices=tuple(GROUPS), default="model", help="group rows by (default: model)")
    when = parser.add_mutually_exclusive_group()
    when.add_argument(
        "--days", type=int, default=_DAYS, metavar="N", help=f"the last N days (default {_DAYS})"
    )
    when.add_argument("--since", metavar="DAY", default="", help="since this day, as in 2026-11-16")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object with all totals")
    form.add_argument("--csv", action="store_true", help="print CSV")
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
            raise CommandError(
                f"--since must be a date such as {today}, not {args.since!r}", code=2
            ) from None
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
