"""`python -m benchmarks`: Dragoman beside a plain pass-through, in one run."""

from __future__ import annotations

import argparse
import sys

import msgspec

from benchmarks.contenders import best_floor
from benchmarks.emulator import print_emulator
from benchmarks.files import print_files
from benchmarks.profile import print_profile
from benchmarks.report import figure, render, write_json
from benchmarks.suite import run_suite
from benchmarks.workloads import WORKLOADS, Workload

_ROUNDS = 3
_QUICK_FRACTION = 3
_ALONE = {"profile": print_profile, "emulator": print_emulator, "files": print_files}


def main() -> None:
    options = _parse()
    for wanted, show in _ALONE.items():
        if getattr(options, wanted):
            show()
            return
    chosen = [WORKLOADS[name] for name in options.only or WORKLOADS]
    if options.quick:
        chosen = list(map(_shorten, chosen))
    results = run_suite(
        chosen,
        rounds=1 if options.quick else options.rounds,
        floor=options.floor,
        say=lambda text: print(text, file=sys.stderr, flush=True),
    )
    figures = figure(results)
    print(render(results, figures))
    print(f"\nwritten to {write_json(results, figures)}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about 15 seconds, for a first look")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="how often everything is done in turns")
    parser.add_argument("--only", nargs="+", choices=list(WORKLOADS), help="only these workloads")
    parser.add_argument("--floor", choices=["nginx", "splice"], default=best_floor())
    parser.add_argument("--profile", action="store_true", help="the pure path alone, stage by stage")
    parser.add_argument("--emulator", action="store_true", help="the emulator alone, beside json.loads")
    parser.add_argument("--files", action="store_true", help="the file tools on 50,000 files")
    return parser.parse_args()


def _shorten(workload: Workload) -> Workload:
    fewer = max(workload.clients, workload.requests // _QUICK_FRACTION)
    return msgspec.structs.replace(workload, requests=fewer)


if __name__ == "__main__":
    main()
