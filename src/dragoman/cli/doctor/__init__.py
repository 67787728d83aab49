"""`dragoman doctor`: run all checks in the order of their dependencies, print the findings, suggest or make repairs."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import sys
from collections.abc import Iterator

import msgspec

from dragoman.cli.doctor.client_checks import check_arrivals, check_versions
from dragoman.cli.doctor.client_settings_checks import check_environment, check_files
from dragoman.cli.doctor.finding import Check, DoctorContext, Finding
from dragoman.cli.doctor.local_checks import check_disk, check_port, check_settings, check_state, check_store
from dragoman.cli.doctor.upstream_checks import check_ca, check_key, check_proxy, check_upstream
from dragoman.cli.help_pages import new_parser
from dragoman.cli.launch import find_program
from dragoman.cli.launchers import CLIENTS
from dragoman.cli.settings import read_settings, state_folder
from dragoman.cli.terminal import CommandError, paint, print_result, print_status, spinner
from dragoman.errors import ConfigError

CHECKS: dict[str, Check] = {
    "settings": check_settings,
    "key": check_key,
    "proxy": check_proxy,
    "ca": check_ca,
    "upstream": check_upstream,
    "state": check_state,
    "disk": check_disk,
    "store": check_store,
    "port": check_port,
    "environment": check_environment,
    "files": check_files,
    "clients": check_versions,
    "arrival": check_arrivals,
}
#: Titles, shown while a check runs.
CHECK_TITLES = {
    "settings": "settings",
    "key": "Google key",
    "proxy": "proxy",
    "ca": "certificates",
    "upstream": "Google, its models and the clock",
    "state": "state folder",
    "disk": "disk",
    "store": "store",
    "port": "port",
    "environment": "environment variables",
    "files": "settings files of clients",
    "clients": "installed clients",
    "arrival": "test requests of the clients",
}


_COLOURS = {"ok": "green", "note": "cyan", "warn": "yellow", "fail": "red"}
_INDENT = " " * 7

#: Pairs of check name and finding.
NamedFindings = list[tuple[str, Finding]]


def format_findings(name: str, findings: list[Finding]) -> Iterator[str]:
    """Yield a title, and each finding with its reason and its remedy."""
    yield paint(CHECK_TITLES[name], "bold", sys.stdout)
    for finding in findings:
        yield f"  {paint(f'{finding.status:<4}', _COLOURS[finding.status], sys.stdout)} {finding.what}"
        if finding.why:
            yield f"{_INDENT}{paint('why:', 'dim', sys.stdout)} {finding.why}"
        if finding.fix:
            yield f"{_INDENT}{paint('fix:', 'dim', sys.stdout)} {finding.fix}"


def summary(found: NamedFindings) -> str:
    counts = {status: sum(finding.status == status for _, finding in found) for status in _COLOURS}
    if counts["fail"]:
        verdict = paint(f"{counts['fail']} failed", "red", sys.stdout)
    else:
        verdict = paint("all checks passed", "green", sys.stdout)
    rest = ", ".join(f"{counts[status]} {status}" for status in ("ok", "note", "warn"))
    return f"{verdict} ({rest})"


def as_json(found: NamedFindings, version: str) -> str:
    rows = [
        {
            "check": name,
            "status": finding.status,
            "what": finding.what,
            "why": finding.why,
            "fix": finding.fix,
            "repairable": finding.repair is not None,
        }
        for name, finding in found
    ]
    document = {"version": version, "ok": all_passed(found), "findings": rows}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def all_passed(found: NamedFindings) -> bool:
    return all(finding.status != "fail" for _, finding in found)


_EXAMPLES = """\
examples:
  dragoman doctor                      run all checks, and test every installed client
  dragoman doctor claude               only the checks for Claude Code
  dragoman doctor --no-clients         start no client
  dragoman doctor --fix                repair, asking before each change; changed files are backed up
  dragoman doctor --json               for a script

Each client is started by its launcher in an empty folder, on a gateway that uses the emulator, with one harmless
prompt. The only requests to Google count tokens, which is free."""


def make_parser() -> argparse.ArgumentParser:
    made = new_parser(
        "doctor",
        "Check key, upstream, models, clock, proxy, certificates, state, port, clients and their settings, and test "
        "for each installed client that its request reaches the gateway.",
        _EXAMPLES,
    )
    made.add_argument(
        "client", nargs="*", metavar="CLIENT", help="only these clients (default: all that are installed)"
    )
    made.add_argument("--no-clients", action="store_true", help="start no client")
    made.add_argument("--offline", action="store_true", help="send nothing over the network")
    made.add_argument("--fix", action="store_true", help="offer the repairs one at a time")
    made.add_argument("--yes", action="store_true", help="with --fix: repair without asking")
    made.add_argument("--json", action="store_true", help="print JSON")
    made.add_argument(
        "--wait",
        metavar="S",
        type=float,
        default=60.0,
        help="seconds to wait for each client's request (default 60)",
    )
    made.add_argument(
        "--config", metavar="FILE", help="settings file (default: DRAGOMAN_CONFIG, then HOME/config.toml)"
    )
    return made


def run(argv: list[str]) -> int:
    """Return 0 if no check fails, otherwise 1."""
    args = make_parser().parse_args(argv)
    _check_arguments(args)
    context = _make_context(args)
    found: NamedFindings = []
    for name in CHECKS:
        if name == "arrival" and args.fix:  # repairs may help the clients
            found = _make_repairs(found, context, args)
        if name != "arrival" or not args.no_clients:
            found += [(name, finding) for finding in _run_check(name, context, quiet=args.json)]
    if args.json:
        print_result(as_json(found, importlib.metadata.version("dragoman")))
    else:
        print_result(f"\n{summary(found)}")
        repairable = [finding for _, finding in found if finding.repair]
        if repairable and not args.fix:
            print_status(f"{len(repairable)} of these can be repaired: dragoman doctor --fix")
    return 0 if all_passed(found) else 1


def _check_arguments(args: argparse.Namespace) -> None:
    unknown = [name for name in args.client if name not in CLIENTS]
    if unknown:
        raise CommandError(
            f"{unknown[0]} is not a supported client", hint=f"one of {', '.join(CLIENTS)}", code=2
        )
    if args.yes and not args.fix:
        raise CommandError("--yes requires --fix", code=2)
    if args.wait <= 0:
        raise CommandError("--wait must be above 0", code=2)
    if args.config:
        os.environ["DRAGOMAN_CONFIG"] = args.config  # for the launchers, which run in their own processes


def _make_context(args: argparse.Namespace) -> DoctorContext:
    env = dict(os.environ)
    installed = tuple(name for name, client in CLIENTS.items() if find_program(client, env))
    clients = tuple(args.client) or installed
    try:
        settings = read_settings(args.config)
    except ConfigError as error:
        return DoctorContext(
            env=env, home=state_folder(env), settings_error=str(error), offline=args.offline, clients=clients
        )
    return DoctorContext(
        env=env,
        home=settings.home,
        settings=settings,
        offline=args.offline,
        clients=clients,
        wait_s=args.wait,
    )


def _run_check(name: str, context: DoctorContext, *, quiet: bool) -> list[Finding]:
    """Run one check and print its findings at once, because the next one may take a minute."""
    with spinner(CHECK_TITLES[name]):
        findings = list(CHECKS[name](context))
    if findings and not quiet:
        for line in format_findings(name, findings):
            print_result(line)
    return findings


def _make_repairs(found: NamedFindings, context: DoctorContext, args: argparse.Namespace) -> NamedFindings:
    """Make the confirmed repairs and run their checks again."""
    touched: set[str] = set()
    for name, finding in found:
        if finding.repair and _confirm(finding.repair.question, args):
            print_status(f"fixed: {finding.repair.apply()}")
            touched.add(name)
    again = {name: _run_check(name, context, quiet=args.json) for name in CHECKS if name in touched}
    kept = [(name, finding) for name, finding in found if name not in again]
    return kept + [(name, finding) for name, findings in again.items() for finding in findings]


def _confirm(question: str, args: argparse.Namespace) -> bool:
    if args.yes:
        return True
    if args.json or not sys.stdin.isatty():
        print_status(f"not confirmed (use --yes): {question}")
        return False
    print(f"{question}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


__all__ = ["make_parser", "run"]
