"""`python -m benchmarks --scale`: the figures of docs/scale.md, for capacity planning."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import msgspec

from benchmarks.contenders import Contender, start_dragoman, start_fake
from benchmarks.conversation import AGENT, SMALL
from benchmarks.load_generator import Measurement
from benchmarks.open_streams import StreamMemory, measure_streams
from benchmarks.procfs import rss_kib
from benchmarks.store_cost import KINDS, measure_redis, measure_sqlite
from benchmarks.suite import make_job, start_load
from benchmarks.workloads import WORKLOADS, Workload

_ROUNDS = 3
_CLIENTS = 16
_WORKERS = (1, 2)
_STREAMS = {"small": (SMALL, 1000), "of an agent": (AGENT, 500)}
_CONVERSATIONS, _TURNS = 20, 10


def print_scale() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-scale-")))
        fake = stack.enter_context(start_fake())
        gateways = {
            workers: stack.enter_context(start_dragoman(fake.url, folder, workers)) for workers in _WORKERS
        }
        _print_work(gateways, fake, stack)
        _print_memory(gateways[1])
    _print_state()


def _print_work(gateways: dict[int, Contender], fake: Contender, stack: ExitStack) -> None:
    ask = stack.enter_context(start_load())
    print("CPU (of a core that does nothing else)\n")
    print(f"  {'':18}{'workers':>8}{'CPU ms/request':>16}{'requests/s/core':>17}{'requests/s here':>17}")
    for name in ("next_turn", "new_conversation"):
        workload = msgspec.structs.replace(WORKLOADS[name], clients=_CLIENTS)
        measured = _measure(gateways, fake, workload, ask)
        for workers, rounds in measured.items():
            cpu_ms = 1000 * sum(one.cpu_s for one in rounds) / sum(one.requests for one in rounds)
            print(f"  {name:18}{workers:>8}{cpu_ms:>16.2f}{1000 / cpu_ms:>17.0f}{_speed(rounds):>17.0f}")
        print(f"  {'':18}2 workers : 1 = {_speed(measured[2]) / _speed(measured[1]):.2f}\n")
    print(
        "  Load generator, fake Google and gateway share this machine: the ratio grows with free cores, up to 2.\n"
    )


def _measure(
    gateways: dict[int, Contender], fake: Contender, workload: Workload, ask: Callable[..., Measurement]
) -> dict[int, list[Measurement]]:
    measured: dict[int, list[Measurement]] = {workers: [] for workers in gateways}
    for number in range(_ROUNDS):
        for workers, gateway in gateways.items():
            print(f"round {number + 1}: {workload.name}, {workers}", file=sys.stderr, flush=True)
            seed = f"scale{number}w{workers}{workload.name}".replace("_", "")
            measured[workers].append(ask(make_job(gateway, fake, workload, seed)))
    return measured


def _speed(rounds: list[Measurement]) -> float:
    """Return the best round, which other processes disturbed least."""
    return max(one.per_s for one in rounds)


def _print_memory(gateway: Contender) -> None:
    print("memory of a worker\n")
    print(
        f"  idle, just started {gateway.idle_rss_kib / 1024:.0f} MB; after the work above "
        f"{rss_kib(gateway.pids) / 1024:.0f} MB"
    )
    for name, (shape, streams) in _STREAMS.items():
        weight: StreamMemory = asyncio.run(
            measure_streams(gateway.url, gateway.pid, shape, streams, name[:2])
        )
        print(
            f"  {streams} open streams, requests {name} ({weight.request_bytes / 1000:.0f} KB): "
            f"{weight.per_stream_kib:.0f} KB each; leaked descriptors: {weight.leaked_descriptors}"
        )
    print()


def _print_state() -> None:
    print("state of a tool turn (two requests; signatures here have 220 characters, Google's have more)\n")
    for kind, about in KINDS.items():
        redis = asyncio.run(measure_redis(kind, conversations=_CONVERSATIONS, turns=_TURNS))
        sqlite = asyncio.run(measure_sqlite(kind, conversations=_CONVERSATIONS, turns=_TURNS))
        print(f"  {kind}: {about}")
        print(
            f"    Redis   {redis.per_request:.1f} round trips per request, {redis.bytes_per_turn} bytes per turn"
        )
        print(f"    SQLite  {sqlite} bytes per turn\n")
