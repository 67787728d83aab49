"""`python -m benchmarks`: compare Dragoman with a plain proxy and with other gateways, in one run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from benchmarks.bytecode_steps import print_steps
from benchmarks.contenders import ASGI_SERVERS, best_floor
from benchmarks.emulator import print_emulator
from benchmarks.figures import Report
from benchmarks.file_tools import print_files
from benchmarks.growth import print_growth
from benchmarks.peers import PEERS
from benchmarks.profile import print_profile
from benchmarks.report import make_report, read_json, render, write_json
from benchmarks.scale import print_scale
from benchmarks.suite import run_suite
from benchmarks.tool_search import print_tool_search
from benchmarks.workloads import WORKLOADS, Workload

_ROUNDS = 3
_PEER_BUDGET_S = 4.0
_QUICK_FRACTION = 3
_QUICK_PEER_BUDGET_S = 1.0
_QUICK_CLIENTS = 4  # where streams are long
_LONG_STREAM = 500
_ALONE = {
    "profile": print_profile,
    "emulator": print_emulator,
    "files": print_files,
    "tool_search": print_tool_search,
    "scale": print_scale,
    "growth": print_growth,
    "steps": print_steps,
}


def main() -> None:
    options = _parse()
    for wanted, show in _ALONE.items():
        if getattr(options, wanted):
            show()
            return
    if options.from_json:
        report = read_json(options.from_json)
        print(render(report))
    else:
        report = _run(options)
        print(render(report))
        print(f"\nwritten to {write_json(report)}")
    if options.write_docs:
        from benchmarks.docs import write_docs  # matplotlib is an extra

        for path in write_docs(report):
            print(f"written to {path}")


def _run(options: argparse.Namespace) -> Report:
    chosen = [WORKLOADS[name] for name in options.only or WORKLOADS if options.only or _wanted(name, options)]
    if options.quick:
        chosen = list(map(_shorten, chosen))
    results = run_suite(
        chosen,
        rounds=1 if options.quick else options.rounds,
        floor=options.floor,
        peers=options.peers,
        peer_budget_s=_QUICK_PEER_BUDGET_S if options.quick else _PEER_BUDGET_S,
        say=lambda text: print(text, file=sys.stderr, flush=True),
        before=options.before,
        servers=options.servers,
    )
    return make_report(results, " ".join(["python -m benchmarks", *sys.argv[1:]]))


def _wanted(name: str, options: argparse.Namespace) -> bool:
    return WORKLOADS[name].quick or not options.quick


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="fewer workloads and requests (three minutes with all peers)"
    )
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="number of interleaved rounds")
    parser.add_argument("--only", nargs="+", choices=list(WORKLOADS), help="run only these workloads")
    parser.add_argument(
        "--peers",
        nargs="*",
        choices=list(PEERS),
        default=list(PEERS),
        help="compare with these gateways only; without a name: with none",
    )
    parser.add_argument(
        "--write-docs",
        action="store_true",
        help="write the generated part of docs/performance.md and its plots",
    )
    parser.add_argument(
        "--servers",
        nargs="*",
        choices=list(ASGI_SERVERS),
        default=[],
        help="also run Dragoman on these ASGI servers",
    )
    parser.add_argument(
        "--before", type=Path, metavar="DIR", help="also run the gateway of this (older) checkout"
    )
    parser.add_argument("--from-json", type=Path, help="report on a saved run instead of a new one")
    parser.add_argument(
        "--floor", choices=["nginx", "splice"], default=best_floor(), help="the plain proxy to compare with"
    )
    parser.add_argument(
        "--profile", action="store_true", help="CPU of the translation by stage, in this process"
    )
    parser.add_argument(
        "--emulator", action="store_true", help="CPU of the emulator compared with json.loads"
    )
    parser.add_argument("--files", action="store_true", help="time of the file tools on 50,000 files")
    parser.add_argument(
        "--tool-search", action="store_true", help="tokens for 250 tools, declared or found by tool search"
    )
    parser.add_argument(
        "--scale", action="store_true", help="workers, memory and state: the figures of docs/scale.md"
    )
    parser.add_argument(
        "--growth", action="store_true", help="CPU of a turn with longer histories and more tools"
    )
    parser.add_argument(
        "--steps",
        action="store_true",
        help="Python bytecode instructions per request, which do not depend on the machine",
    )
    return parser.parse_args()


def _shorten(workload: Workload) -> Workload:
    clients = min(workload.clients, _QUICK_CLIENTS) if workload.chunks >= _LONG_STREAM else workload.clients
    fewer = max(clients, workload.requests // _QUICK_FRACTION)
    return msgspec.structs.replace(workload, requests=fewer, clients=clients)


if __name__ == "__main__":
    main()
