"""The generated part of docs/performance.md: tables and plots."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.figures import OURS, TWO_WORKERS, Figures, Report
from benchmarks.report import ratio, short

_DOCS = Path(__file__).parents[1] / "docs"
_PAGE = _DOCS / "performance.md"
BEGIN = "<!-- written by `make bench-docs`: begin -->"
END = "<!-- written by `make bench-docs`: end -->"
_LONG = 500  # chunks; with more, the request itself adds little to the CPU per chunk

Cell = Callable[[Figures], str]
Table = list[list[str]]


def write_docs(report: Report) -> list[Path]:
    from benchmarks.plots import draw  # matplotlib, which only this needs

    plots = draw(report, _DOCS / "images")
    _PAGE.write_text(replace_part(_PAGE.read_text(), describe(report)))
    return [_PAGE, *plots]


def replace_part(page: str, part: str) -> str:
    before, found, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        raise ValueError(f"the page has no part between {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{part}\n\n{END}{after}"


def describe(report: Report) -> str:
    sections = (
        _about(report),
        "CPU of the process tree per request in milliseconds, in brackets relative to Dragoman:",
        _by_workload(report, lambda item: f"{short(item.cpu_ms_per_request)}{_times(item)}"),
        "![CPU per request of all gateways](images/performance-cpu.svg)",
        "CPU per chunk of a long stream, in microseconds:",
        _by_workload(report, _chunk, only=lambda item: item.chunks >= _LONG),
        "Latency added to a direct call with one client, in milliseconds: p50, p99, and first byte (p50):",
        _by_workload(report, _added, only=lambda item: item.clients == 1),
        "![latency, memory and start time of all gateways](images/performance-weight.svg)",
        "Requests per second per core (per 1,000 ms of CPU):",
        _by_workload(report, lambda item: f"{item.requests_per_core_s:,.0f}"),
        "Start time and memory:",
        _standings(report),
        "Goals:",
        _table(
            [
                ["goal", "wanted", "measured", ""],
                *([a.about, a.wanted, a.found, _met(a.met)] for a in report.aims),
            ]
        ),
        "Where another gateway is better than Dragoman in this run:",
        _items(report.better) or "Nowhere.",
        "Minor deviations of answers that are counted (the call with its arguments and the complete text arrived):",
        _items(_oddities(report.figures)) or "Nothing.",
        "Wrong answers (not counted), gateways that did not start, and what was not measured:",
        _items([*_faults(report.figures), *(f"{name}: {why}" for name, why in _missing(report).items())]),
        "Versions and settings:",
        _items([f"{name} {number}{_settings(report, name)}" for name, number in report.versions.items()]),
    )
    return "\n\n".join(section for section in sections if section)


def _about(report: Report) -> str:
    reference = sorted(report.reference_ms)
    busiest = max(report.figures, key=lambda item: item.fake_busy if item.contender != "direct" else 0)
    return (
        f"Run of {report.when[:16].replace('T', ' ')} UTC, `{report.command}`, on {report.machine['cpu']}, "
        f"Python {report.machine['python']}. A fixed piece of Python took {reference[0]:.1f} ms of CPU at best, "
        f"{statistics.median(reference):.1f} ms (median) and {reference[-1]:.1f} ms at worst during the run: if these "
        f"differ much, the machine was busy, and only ratios can be compared. The fake Gemini used at most "
        f"{busiest.fake_busy:.0%} of a core ({busiest.workload}, {busiest.contender}), so it was not the bottleneck."
    )


def _by_workload(report: Report, cell: Cell, only: Callable[[Figures], bool] = lambda _: True) -> str:
    """Return a table with a row per workload and a column per contender."""
    chosen = [item for item in report.figures if item.contender != "direct" and only(item)]
    if not chosen:
        return "Not in this run."
    order = [OURS, TWO_WORKERS, report.floor]
    names = list(dict.fromkeys(item.contender for item in chosen))
    names.sort(key=lambda name: order.index(name) if name in order else len(order))
    found = {(item.contender, item.workload): item for item in chosen}
    rows = [["", *names]]
    for item in {item.workload: item for item in chosen}.values():
        entries = [found.get((name, item.workload)) for name in names]
        about = f"{item.about}, {item.clients} client{'s' * (item.clients > 1)}"
        rows.append([about, *("" if one is None else "wrong" if one.fault else cell(one) for one in entries)])
    return _table(rows)


def _times(item: Figures) -> str:
    return "" if item.contender == OURS else f" ({ratio(item)} ×)" if ratio(item) else ""


def _chunk(item: Figures) -> str:
    return "" if item.cpu_us_per_chunk is None else short(item.cpu_us_per_chunk)


def _added(item: Figures) -> str:
    return f"{item.added_p50_ms:.2f} / {item.added_p99_ms:.2f} / {item.added_first_byte_ms:.2f}"


def _standings(report: Report) -> str:
    rows = [["", "start", "first answer", "idle memory", "memory after the load"]]
    rows += [
        [
            one.contender,
            f"{one.start_s:.2f} s",
            f"{one.first_answer_s:.2f} s",
            f"{one.idle_rss_kib / 1024:.0f} MB",
            f"{one.loaded_rss_kib / 1024:.0f} MB",
        ]
        for one in report.standings
        if one.contender != "direct"
    ]
    return _table(rows)


def _oddities(figures: Sequence[Figures]) -> list[str]:
    """Return each deviation once, with its workloads."""
    seen: dict[tuple[str, str], list[str]] = {}
    for item in figures:
        for odd in item.oddities:
            seen.setdefault((item.contender, odd), []).append(item.workload)
    return [f"{name}: {odd} ({', '.join(where)})" for (name, odd), where in seen.items()]


def _faults(figures: Sequence[Figures]) -> list[str]:
    return [f"{item.contender}, {item.workload}: `{item.fault[:300]}`" for item in figures if item.fault]


def _missing(report: Report) -> dict[str, str]:
    return report.absent | report.failures


def _settings(report: Report, name: str) -> str:
    return f": {report.settings[name]}" if name in report.settings else ""


def _met(met: bool) -> str:
    return "met" if met else "**missed**"


def _items(lines: Sequence[str]) -> str:
    return "\n".join(f"- {' '.join(line.split())}" for line in lines)


def _table(rows: Table) -> str:
    head, *rest = rows
    lines = [head, ["---"] * len(head), *rest]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
