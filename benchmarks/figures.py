"""Compute the figures that are printed, plotted or written into the documentation."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

import msgspec

from benchmarks.contenders import ASGI_SERVERS
from benchmarks.load_generator import Measurement
from benchmarks.suite import Results, Row, ServerFootprint
from benchmarks.workloads import Workload

OURS = "dragoman"
TWO_WORKERS = "dragoman-2"
BEFORE = "before"
_DIRECT = "direct"


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """One contender with one workload, all rounds together; `spread_ms` is the range of the rounds' CPU.

    `times_ours` is its CPU divided by Dragoman's. A `fault` invalidates the figures, `oddities` do not.
    """

    contender: str
    workload: str
    about: str
    clients: int
    chunks: int
    requests: int
    request_kb: float
    cpu_ms_per_request: float
    spread_ms: tuple[float, float]
    cpu_us_per_chunk: float | None
    chunks_per_read: float | None
    times_floor: float | None
    times_ours: float | None
    requests_per_core_s: float
    requests_per_s: float
    first_byte_p50_ms: float
    added_first_byte_ms: float
    total_p50_ms: float
    total_p99_ms: float
    added_p50_ms: float
    added_p99_ms: float
    fake_cpu_ms_per_request: float
    fake_busy: float
    load_busy: float = 0.0
    fault: str
    oddities: list[str]


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """A goal, and whether this run reached it."""

    about: str
    wanted: str
    found: str
    met: bool


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The saved result of a run."""

    when: str
    command: str
    machine: dict[str, str]
    floor: str
    versions: dict[str, str]
    settings: dict[str, str]
    absent: dict[str, str]
    reference_ms: list[float]
    figures: list[Figures]
    failures: dict[str, str]
    standings: list[ServerFootprint]
    aims: list[Goal]
    better: list[str]


def compute_figures(results: Results) -> list[Figures]:
    by_place = {(row.contender, row.workload.name): row for row in results.rows if row.rounds}
    return [
        _figures(
            row,
            by_place[_DIRECT, row.workload.name],
            by_place[results.floor, row.workload.name],
            by_place.get((OURS, row.workload.name)),
        )
        for row in by_place.values()
    ]


def _figures(row: Row, direct: Row, floor: Row, ours: Row | None) -> Figures:
    rounds = row.rounds
    requests = sum(measured.requests for measured in rounds)
    chunks = sum(measured.chunks for measured in rounds)
    wall_s = sum(measured.wall_s for measured in rounds)
    fake_cpu_s = sum(measured.fake_cpu_s for measured in rounds)
    cpu_ms = _cpu_ms(rounds)
    p50, p99 = _percentiles(rounds)
    direct_p50, direct_p99 = _percentiles(direct.rounds)
    each = [measured.cpu_s / measured.requests * 1000 for measured in rounds]
    return Figures(
        contender=row.contender,
        workload=row.workload.name,
        about=row.workload.about,
        clients=row.workload.clients,
        chunks=row.workload.chunks,
        requests=requests,
        request_kb=statistics.fmean(measured.request_bytes for measured in rounds) / 1000,
        cpu_ms_per_request=cpu_ms,
        spread_ms=(min(each), max(each)),
        cpu_us_per_chunk=cpu_ms * requests / chunks * 1000 if chunks else None,
        chunks_per_read=chunks / sum(measured.reads for measured in rounds) if chunks else None,
        times_floor=cpu_ms / _cpu_ms(floor.rounds)
        if row.contender not in (_DIRECT, floor.contender)
        else None,
        times_ours=cpu_ms / _cpu_ms(ours.rounds) if ours is not None else None,
        requests_per_core_s=1000 / cpu_ms,
        requests_per_s=statistics.median(measured.per_s for measured in rounds),
        first_byte_p50_ms=_first_byte_ms(rounds),
        added_first_byte_ms=_first_byte_ms(rounds) - _first_byte_ms(direct.rounds),
        total_p50_ms=p50,
        total_p99_ms=p99,
        added_p50_ms=p50 - direct_p50,
        added_p99_ms=p99 - direct_p99,
        fake_cpu_ms_per_request=fake_cpu_s / requests * 1000,
        fake_busy=fake_cpu_s / wall_s,
        load_busy=sum(measured.load_cpu_s for measured in rounds) / wall_s,
        fault=_fault(rounds),
        oddities=list({odd: None for measured in rounds for odd in measured.oddities}),
    )


def _fault(rounds: list[Measurement]) -> str:
    wrong = sum(measured.wrong for measured in rounds)
    return f"{wrong} wrong, the first: {next(one.why for one in rounds if one.why)}" if wrong else ""


def _cpu_ms(rounds: list[Measurement]) -> float:
    return sum(measured.cpu_s for measured in rounds) / sum(measured.requests for measured in rounds) * 1000


def _first_byte_ms(rounds: list[Measurement]) -> float:
    return statistics.median(s for measured in rounds for s in measured.first_byte_s) * 1000


def _percentiles(rounds: list[Measurement]) -> tuple[float, float]:
    times = sorted(s * 1000 for measured in rounds for s in measured.total_s)
    return statistics.median(times), times[min(len(times) - 1, int(len(times) * 0.99))]


#: Goals: the CPU of the peer for the next turn divided by ours; the second is for all other peers.
_TIMES_LESS = {"litellm": 30.0}
_TIMES_LESS_THAN_OTHERS = 8.0
#: Workload -> goal for the CPU divided by that of the older checkout (`--before`).
_TIMES_BEFORE = {"next_turn": 1.6, "new_conversation": 1.25}
_SPEED_UP = 1.8


def check_goals(figures: Sequence[Figures], workloads: Iterable[Workload], floor: str) -> list[Goal]:
    found = {(item.contender, item.workload): item for item in figures}
    aims: list[Goal] = []
    for workload in workloads:
        ours = found.get((OURS, workload.name))
        if ours is not None:
            aims += _judge_workload(workload, ours, floor)
        two = found.get((TWO_WORKERS, workload.name))
        if ours is not None and two is not None:
            aims += _judge_workers(workload, ours, two)
    for item in figures:
        times_before = _TIMES_BEFORE.get(item.workload)
        if item.contender == BEFORE and times_before is not None and item.times_ours:
            found_times = 1 / item.times_ours
            about = f"{item.workload}: CPU per request relative to the older checkout"
            aims.append(
                Goal(
                    about=about,
                    wanted=f"≤ {times_before:g} ×",
                    found=f"{found_times:.2f} ×",
                    met=found_times <= times_before,
                )
            )
        apart = (OURS, BEFORE, _DIRECT, floor, *ASGI_SERVERS)
        if item.workload == "next_turn" and item.contender not in apart and not item.fault:
            wanted = _TIMES_LESS.get(item.contender, _TIMES_LESS_THAN_OTHERS)
            aims.append(_at_least(f"next_turn: less CPU than {item.contender}", item.times_ours or 0, wanted))
    return aims


def _judge_workload(workload: Workload, ours: Figures, floor: str) -> list[Goal]:
    checks = (
        ("CPU per request", workload.aim_request_ms, ours.cpu_ms_per_request, " ms"),
        (f"CPU per request relative to {floor}", workload.aim_times_floor, ours.times_floor, " ×"),
        ("added time to the first byte", workload.aim_first_byte_ms, ours.added_first_byte_ms, " ms"),
    )
    return [
        Goal(
            about=f"{workload.name}: {about}",
            wanted=f"≤ {wanted:g}{unit}",
            found=f"{value:.2f}{unit}",
            met=value <= wanted and not ours.fault,
        )
        for about, wanted, value, unit in checks
        if wanted is not None and value is not None
    ]


def _judge_workers(workload: Workload, one: Figures, two: Figures) -> list[Goal]:
    """Compare by elapsed time only if the workers have nearly all of the machine."""
    by_cpu = 2 * one.cpu_ms_per_request / two.cpu_ms_per_request
    aims = [_at_least(f"{workload.name}: two workers relative to one, by CPU per request", by_cpu, _SPEED_UP)]
    if workload.heavy:
        by_clock = two.requests_per_s / one.requests_per_s
        aims.append(
            _at_least(
                f"{workload.name}: two workers relative to one, by requests per second", by_clock, _SPEED_UP
            )
        )
    return aims


def _at_least(about: str, value: float, wanted: float) -> Goal:
    return Goal(about=about, wanted=f"≥ {wanted:g} ×", found=f"{value:.1f} ×", met=value >= wanted)


_MEASURES = {
    "CPU per request, ms": "cpu_ms_per_request",
    "p50, ms": "total_p50_ms",
    "p99, ms": "total_p99_ms",
    "first byte, ms": "first_byte_p50_ms",
}
_WEIGHTS = {
    "start, s": ("start_s", 1),
    "start to first answer, s": ("first_answer_s", 1),
    "idle memory, MB": ("idle_rss_kib", 1024),
    "memory after load, MB": ("loaded_rss_kib", 1024),
}


def peer_advantages(
    figures: Sequence[Figures], standings: Sequence[ServerFootprint], floor: str
) -> list[str]:
    """Return every figure in which a peer with correct answers is better than Dragoman."""
    apart = (OURS, TWO_WORKERS, BEFORE, _DIRECT, floor, *ASGI_SERVERS)
    found: list[str] = []
    ours = {item.workload: item for item in figures if item.contender == OURS}
    for item in figures:
        if item.contender in apart or item.fault or item.workload not in ours:
            continue
        for about, field in _MEASURES.items():
            theirs, mine = getattr(item, field), getattr(ours[item.workload], field)
            if theirs < mine:
                found.append(f"{item.contender}, {item.workload}: {about}: {theirs:.2f} against {mine:.2f}")
    mine_weighed = next((one for one in standings if one.contender == OURS), None)
    for one in standings:
        if one.contender in apart or mine_weighed is None:
            continue
        for about, (field, unit) in _WEIGHTS.items():
            theirs, mine = getattr(one, field) / unit, getattr(mine_weighed, field) / unit
            if theirs < mine:
                found.append(f"{one.contender}: {about}: {theirs:.2f} against {mine:.2f}")
    return found
