"""The names of what can be found, in few words: a model that knows what there is searches better."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dragoman.finding.words import bare_name

_MAX_CHARS = 6_000


def list_names(names: Sequence[str]) -> str:
    """Sorted names by the servers or groups they come from; where they are too many, only those."""
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
