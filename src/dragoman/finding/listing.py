"""A compact list of the deferred tools' names: a model that knows what exists searches better."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dragoman.finding.words import bare_name

_MAX_CHARS = 6_000


def list_names(names: Sequence[str]) -> str:
    """Return the names grouped by server or namespace; only the groups if the list would be too long."""
    groups: dict[str, list[str]] = {}
    for name in names:
        own = bare_name(name)
        groups.setdefault(name.removesuffix(own), []).append(own)
    whole = _lines(_group(prefix, ", ".join(members)) for prefix, members in groups.items())
    if len(whole) <= _MAX_CHARS:
        return whole
    return _cut(_lines(_group(prefix, f"{len(members)} functions") for prefix, members in groups.items()))


def _group(prefix: str, members: str) -> str:
    return f"{prefix}{{{members}}}" if prefix else members


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS].rpartition("\n")[0] + "\n- and more"
