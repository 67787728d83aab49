"""One run: every contender does every workload, in turns, so that they share the machine's moods."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from benchmarks.contenders import Contender, start_dragoman, start_fake, start_floor
from benchmarks.load import Job, Measurement
from benchmarks.procfs import rss_kib
from benchmarks.workloads import Workload

_ROOT = Path(__file__).parents[1]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """All rounds of one contender at one workload."""

    contender: str
    workload: Workload
    rounds: list[Measurement]


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What a contender weighs."""

    contender: str
    start_s: float
    idle_rss_kib: int
    loaded_rss_kib: int


class Results(msgspec.Struct, frozen=True, kw_only=True):
    floor: str
    rows: list[Row]
    standings: list[Standing]


def run_suite(
    workloads: Sequence[Workload], *, rounds: int, floor: str, say: Callable[[str], None]
) -> Results:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-bench-")))
        fake = stack.enter_context(start_fake())
        contenders = [
            fake,
            stack.enter_context(start_floor(floor, fake.url, folder)),
            stack.enter_context(start_dragoman(fake.url, folder)),
        ]
        ask = stack.enter_context(_load())
        measured: dict[tuple[str, str], list[Measurement]] = {}
        for number in range(rounds):
            for workload in workloads:
                say(f"round {number + 1} of {rounds}: {workload.name}")
                for contender in contenders:
                    seed = f"r{number}{contender.name}{workload.name}".replace("_", "")
                    measurement = ask(_job(contender, fake, workload, seed))
                    measured.setdefault((contender.name, workload.name), []).append(measurement)
        return Results(
            floor=floor,
            rows=[
                Row(
                    contender=contender.name,
                    workload=workload,
                    rounds=measured[contender.name, workload.name],
                )
                for workload in workloads
                for contender in contenders
            ],
            standings=[_standing(contender) for contender in contenders],
        )


def _job(contender: Contender, fake: Contender, workload: Workload, seed: str) -> Job:
    return Job(
        url=contender.url,
        style=contender.style,
        workload=workload,
        seed=seed,
        pids=contender.pids,
        fake_url=fake.url,
        fake_pids=fake.pids,
    )


def _standing(contender: Contender) -> Standing:
    return Standing(
        contender=contender.name,
        start_s=contender.start_s,
        idle_rss_kib=contender.idle_rss_kib,
        loaded_rss_kib=rss_kib(contender.pids),
    )


@contextmanager
def _load() -> Iterator[Callable[[Job], Measurement]]:
    """The load process; it ends when its input does."""
    command = [sys.executable, "-m", "benchmarks.load"]
    process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout
    stdout.readline()

    def ask(job: Job) -> Measurement:
        stdin.write(msgspec.json.encode(job) + b"\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise SystemExit(f"the load stopped in {job.workload.name} against {job.url}")
        return msgspec.json.decode(line, type=Measurement)

    try:
        yield ask
    finally:
        stdin.close()
        process.wait()
