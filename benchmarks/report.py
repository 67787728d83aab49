"""Results for people (a table) and for programs (JSON)."""

from __future__ import annotations

import platform
import statistics
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchmarks.load import Measurement
from benchmarks.suite import Results, Row
from benchmarks.workloads import Workload

_FOLDER = Path(__file__).parent / "results"


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """One contender at one workload, all rounds together; `spread` is over the rounds' CPU."""

    contender: str
    workload: str
    requests: int
    request_kb: float
    cpu_ms_per_request: float
    spread_ms: tuple[float, float]
    cpu_us_per_chunk: float | None
    chunks_per_read: float | None
    times_floor: float | None
    first_byte_p50_ms: float
    total_p50_ms: float
    total_p99_ms: float
    added_p50_ms: float | None
    added_p99_ms: float | None
    fake_cpu_ms_per_request: float
    aim: str
    met: bool | None


def figure(results: Results) -> list[Figures]:
    by_place = {(row.contender, row.workload.name): row for row in results.rows}
    return [
        _figures(row, by_place["direct", row.workload.name], by_place[results.floor, row.workload.name])
        for row in results.rows
    ]


def _figures(row: Row, direct: Row, floor: Row) -> Figures:
    rounds = row.rounds
    requests = sum(measured.requests for measured in rounds)
    chunks = sum(measured.chunks for measured in rounds)
    cpu_ms = _cpu_ms(rounds)
    chunk_us = cpu_ms * requests / chunks * 1000 if chunks else None
    own = row.contender not in ("direct", floor.contender)
    aim, met = _judge(row.workload, cpu_ms, chunk_us) if own else ("", None)
    p50, p99 = _percentiles(rounds)
    direct_p50, direct_p99 = _percentiles(direct.rounds)
    each = [measured.cpu_s / measured.requests * 1000 for measured in rounds]
    return Figures(
        contender=row.contender,
        workload=row.workload.name,
        requests=requests,
        request_kb=statistics.fmean(measured.request_bytes for measured in rounds) / 1000,
        cpu_ms_per_request=cpu_ms,
        spread_ms=(min(each), max(each)),
        cpu_us_per_chunk=chunk_us,
        chunks_per_read=chunks / sum(measured.reads for measured in rounds) if chunks else None,
        times_floor=cpu_ms / _cpu_ms(floor.rounds) if own else None,
        first_byte_p50_ms=statistics.median(s for measured in rounds for s in measured.first_byte_s) * 1000,
        total_p50_ms=p50,
        total_p99_ms=p99,
        added_p50_ms=p50 - direct_p50 if row is not direct else None,
        added_p99_ms=p99 - direct_p99 if row is not direct else None,
        fake_cpu_ms_per_request=sum(measured.fake_cpu_s for measured in rounds) / requests * 1000,
        aim=aim,
        met=met,
    )


def _judge(workload: Workload, request_ms: float, chunk_us: float | None) -> tuple[str, bool | None]:
    if workload.aim_request_ms is not None:
        return f"<= {workload.aim_request_ms:g} ms", request_ms <= workload.aim_request_ms
    if workload.aim_chunk_us is not None and chunk_us is not None:
        return f"<= {workload.aim_chunk_us:g} us/chunk", chunk_us <= workload.aim_chunk_us
    return "", None


def _cpu_ms(rounds: list[Measurement]) -> float:
    return sum(measured.cpu_s for measured in rounds) / sum(measured.requests for measured in rounds) * 1000


def _percentiles(rounds: list[Measurement]) -> tuple[float, float]:
    times = sorted(s * 1000 for measured in rounds for s in measured.total_s)
    return statistics.median(times), times[min(len(times) - 1, int(len(times) * 0.99))]


def render(results: Results, figures: list[Figures]) -> str:
    lines: list[str] = []
    about = {row.workload.name: row.workload for row in results.rows}
    head = (
        f"  {'':10}{'CPU ms/request':>15}{'(rounds)':>16}{'x floor':>9}{'us/chunk':>10}{'chunks/read':>12}"
        f"{'first ms':>9}{'p50 ms':>9}{'p99 ms':>9}{'+p50':>8}{'+p99':>8}   aim"
    )
    for name, workload in about.items():
        mine = [item for item in figures if item.workload == name]
        clients = f"{workload.clients} client{'s' * (workload.clients > 1)}"
        lines += [
            "",
            f"{name}: {workload.about} ({mine[-1].request_kb:.0f} KB, {clients}, n={mine[-1].requests})",
            head,
            *map(_line, mine),
        ]
    lines += ["", "memory and start", f"  {'':10}{'start s':>15}{'idle MB':>16}{'loaded MB':>12}"]
    lines += [
        f"  {item.contender:10}{item.start_s:>15.2f}{item.idle_rss_kib / 1024:>16.1f}"
        f"{item.loaded_rss_kib / 1024:>12.1f}"
        for item in results.standings
    ]
    reference = sorted(measured.reference_s * 1000 for row in results.rows for measured in row.rounds)
    lines += [
        "",
        f"A fixed piece of Python took {statistics.median(reference):.1f} ms of CPU in the middle, {reference[0]:.1f} "
        "at best: the more they differ, the busier the machine; then compare the ratios, not the times.",
        "direct: the load asks the fake Gemini itself; its CPU is the fake's own. Every answer was checked.",
    ]
    return "\n".join(lines)


def _line(item: Figures) -> str:
    low, high = item.spread_ms
    verdict = "" if item.met is None else f"{item.aim}: {'met' if item.met else 'MISSED'}"
    return (
        f"  {item.contender:10}{item.cpu_ms_per_request:>15.3f}{f'{low:.3f}..{high:.3f}':>16}"
        f"{_number(item.times_floor, '.1f'):>9}{_number(item.cpu_us_per_chunk, '.1f'):>10}"
        f"{_number(item.chunks_per_read, '.1f'):>12}{item.first_byte_p50_ms:>9.2f}"
        f"{item.total_p50_ms:>9.2f}{item.total_p99_ms:>9.2f}"
        f"{_number(item.added_p50_ms, '+.2f'):>8}{_number(item.added_p99_ms, '+.2f'):>8}   {verdict}"
    )


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def write_json(results: Results, figures: list[Figures]) -> Path:
    now = datetime.now(UTC)
    _FOLDER.mkdir(exist_ok=True)
    path = _FOLDER / f"{now:%Y%m%dT%H%M%SZ}.json"
    document = {
        "when": now.isoformat(),
        "machine": {"platform": platform.platform(), "python": platform.python_version()},
        "floor": results.floor,
        "reference_ms": [measured.reference_s * 1000 for row in results.rows for measured in row.rounds],
        "figures": figures,
        "standings": results.standings,
    }
    path.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1))
    return path
