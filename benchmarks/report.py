"""The report of a run as text (a table of ratios, then the figures) and as JSON."""

from __future__ import annotations

import platform
import statistics
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec

from benchmarks.figures import Figures, Report, check_goals, compute_figures, peer_advantages
from benchmarks.peers import ABSENT, PEERS
from benchmarks.suite import Results

_FOLDER = Path(__file__).parent / "results"
_BUSY = 0.8  # above this share the fake Gemini or the load generator may be the bottleneck
_HEAD = (
    f"  {'':11}{'CPU ms/req':>11}{'(rounds)':>17}{'x floor':>9}{'x ours':>8}{'us/chunk':>9}{'req/s/core':>11}"
    f"{'first ms':>9}{'p50 ms':>9}{'p99 ms':>10}{'+first':>8}{'+p50':>9}{'+p99':>9}"
)


def make_report(results: Results, command: str) -> Report:
    figures = compute_figures(results)
    workloads = {row.workload.name: row.workload for row in results.rows}
    present = {item.contender for item in figures}
    return Report(
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        command=command,
        machine={"platform": platform.platform(), "python": platform.python_version(), "cpu": _cpu_name()},
        floor=results.floor,
        versions={"dragoman": version("dragoman"), **_floor_version(results.floor)}
        | {name: peer.version for name, peer in PEERS.items() if name in present},
        settings={name: peer.settings for name, peer in PEERS.items() if name in present},
        absent=results.absent | ABSENT,
        reference_ms=[one.reference_s * 1000 for row in results.rows for one in row.rounds],
        figures=figures,
        failures={
            f"{row.contender}, {row.workload.name}": row.failure for row in results.rows if row.failure
        },
        standings=results.standings,
        aims=check_goals(figures, workloads.values(), results.floor),
        better=peer_advantages(figures, results.standings, results.floor),
    )


def _cpu_name() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown"
    )


def _floor_version(floor: str) -> dict[str, str]:
    if floor != "nginx":
        return {}
    output = subprocess.run(["nginx", "-v"], capture_output=True, text=True, check=False).stderr
    return {"nginx": output.strip().rpartition("/")[2]}


def write_json(report: Report) -> Path:
    _FOLDER.mkdir(exist_ok=True)
    path = _FOLDER / f"{datetime.fromisoformat(report.when):%Y%m%dT%H%M%SZ}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1))
    return path


def read_json(path: Path) -> Report:
    return msgspec.json.decode(path.read_bytes(), type=Report)


def render(report: Report) -> str:
    lines = ["CPU relative to Dragoman, for the same work in the same run", *_ratio_lines(report.figures)]
    for name in dict.fromkeys(item.workload for item in report.figures):
        mine = [item for item in report.figures if item.workload == name]
        clients = f"{mine[0].clients} client{'s' * (mine[0].clients > 1)}"
        lines += ["", f"{name}: {mine[0].about} ({mine[0].request_kb:.0f} KB, {clients})", _HEAD]
        lines += [line for item in mine for line in _lines(item)]
    lines += ["", "memory and start time"]
    lines += [f"  {'':11}{'start s':>11}{'first answer s':>17}{'idle MB':>9}{'loaded MB':>11}"]
    lines += [
        f"  {item.contender:11}{item.start_s:>11.2f}{item.first_answer_s:>17.2f}{item.idle_rss_kib / 1024:>9.0f}"
        f"{item.loaded_rss_kib / 1024:>11.0f}"
        for item in report.standings
    ]
    lines += ["", "goals"]
    lines += [
        f"  {'met   ' if aim.met else 'MISSED'} {aim.about}: {aim.found} (goal {aim.wanted})"
        for aim in report.aims
    ]
    lines += [
        "",
        "where another gateway is better",
        *(f"  {line}" for line in report.better or [_nowhere(report)]),
    ]
    lines += ["", "not measured"]
    lines += [f"  {name}: {why}" for name, why in (report.absent | report.failures).items()]
    return "\n".join([*lines, "", *_remarks(report)])


def _nowhere(report: Report) -> str:
    return "nowhere in this run" if report.settings else "no other gateway was measured"


def _ratio_lines(figures: Sequence[Figures]) -> list[str]:
    names = list(dict.fromkeys(item.contender for item in figures if item.contender != "direct"))
    found = {(item.contender, item.workload): item for item in figures}
    lines = [f"  {'':24}" + "".join(f"{name:>12}" for name in names)]
    for workload in dict.fromkeys(item.workload for item in figures):
        cells = [ratio(found.get((name, workload))) for name in names]
        lines.append(f"  {workload:24}" + "".join(f"{cell:>12}" for cell in cells))
    return lines


def ratio(item: Figures | None) -> str:
    """Return a cell of the table; there is no ratio for wrong answers."""
    if item is None or item.times_ours is None:
        return ""
    if item.fault:
        return "wrong"
    return f"{item.times_ours:.2f}" if item.times_ours < 10 else f"{item.times_ours:.0f}"


def short(value: float) -> str:
    """Format with three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _lines(item: Figures) -> list[str]:
    low, high = item.spread_ms
    line = (
        f"  {item.contender:11}{item.cpu_ms_per_request:>11.3f}{f'{low:.3f}..{high:.3f}':>17}"
        f"{_number(item.times_floor, '.1f'):>9}{_number(item.times_ours, '.2f'):>8}"
        f"{_number(item.cpu_us_per_chunk, '.1f'):>9}{item.requests_per_core_s:>11.0f}"
        f"{item.first_byte_p50_ms:>9.2f}{item.total_p50_ms:>9.2f}{item.total_p99_ms:>10.2f}"
        f"{item.added_first_byte_ms:>+8.2f}{item.added_p50_ms:>+9.2f}{item.added_p99_ms:>+9.2f}"
    )
    shares = {"the fake Gemini": item.fake_busy, "the load generator": item.load_busy}
    busy = [f"{who} was busy {share:.0%} of the time" for who, share in shares.items() if share > _BUSY]
    wrong = [f"WRONG, not counted: {item.fault}"] if item.fault else []
    return [line, *(f"  {'':11}  {remark}" for remark in (*wrong, *item.oddities, *busy))]


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _remarks(report: Report) -> list[str]:
    reference = sorted(report.reference_ms)
    fake = max(
        (item for item in report.figures if item.contender != "direct"), key=lambda item: item.fake_busy
    )
    settings = [f"{name} {report.versions.get(name, '')}: {about}" for name, about in report.settings.items()]
    return [
        f"A fixed piece of Python took {statistics.median(reference):.1f} ms of CPU (median), {reference[0]:.1f} at best "
        f"and {reference[-1]:.1f} at worst: if these differ much, the machine was busy; compare ratios only.",
        f"The fake Gemini was busiest in {fake.workload} of {fake.contender}: {fake.fake_busy:.0%} of a core, "
        f"{fake.fake_cpu_ms_per_request:.2f} ms per request.",
        "direct: the load generator sends to the fake Gemini, so the CPU is the fake's. Every answer was checked.",
        *settings,
    ]
