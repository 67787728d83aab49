"""Format findings for the terminal or as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import msgspec

from dragoman.cli.doctor.checks import CHECK_TITLES
from dragoman.cli.doctor.finding import Finding
from dragoman.cli.screen import paint

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
        verdict = paint(f"{counts['fail']} not working", "red", sys.stdout)
    else:
        verdict = paint("everything works", "green", sys.stdout)
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
