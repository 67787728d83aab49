"""Encode server tools as Google's built-in tools: `googleSearch`, `urlContext` and `codeExecution`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from dragoman.dialects.base import Target
from dragoman.dialects.gemini.citations import bare_sites
from dragoman.dialects.gemini.models import profile_of
from dragoman.ir import Location, ServerKind, ServerTool
from dragoman.notes import Note

_FIELDS: dict[ServerKind, str] = {
    "web_search": "googleSearch",
    "web_fetch": "urlContext",
    "code_execution": "codeExecution",
}
_FORCED: dict[str, str] = {
    "web_search": "Search the web before you answer, even if you know the answer.",
    "web_fetch": "Read the web pages that are named in the conversation before you answer.",
    "code_execution": "Write code and run it before you answer.",
}
_USE: dict[str, str] = {
    "web_search": "Search the web",
    "web_fetch": "Read web pages",
    "code_execution": "Run code",
}
_NOT_WITH_FUNCTIONS = "this model runs nothing of Google's beside functions"


class BuiltIns(msgspec.Struct, frozen=True, kw_only=True):
    """The built-in tools of a request, at most one of each kind.

    `tools` are the entries for `tools`, `asked` the texts for the system instruction. `shown` is true if Google
    reports each use in `toolCall` and `toolResponse` parts, which must be sent back in the next request.
    """

    offered: tuple[ServerTool, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    shown: bool = False
    asked: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


def encode_built_ins(wanted: tuple[ServerTool, ...], target: Target, *, functions: bool) -> BuiltIns:
    """Encode the wanted server tools; `functions` is true if the request also declares functions."""
    if not wanted:
        return BuiltIns()
    vertex = target.backend == "vertex"
    offered, notes = _offerable(one_of_a_kind(wanted), functions and not can_mix(target), vertex)
    asked = [*_instructions(offered, notes, vertex)]
    return BuiltIns(
        offered=tuple(offered),
        tools=tuple({_FIELDS[tool.kind]: _settings(tool, vertex)} for tool in offered),
        shown=bool(offered) and profile_of(target.model).mixes_tools and not vertex,
        asked=tuple(asked),
        notes=tuple(notes),
    )


def can_mix(target: Target) -> bool:
    """Whether the target accepts built-in tools together with functions; only AI Studio has the switch for it."""
    return profile_of(target.model).mixes_tools and target.backend != "vertex" and not target.unmixed_tools


def one_of_a_kind(wanted: Iterable[ServerTool]) -> list[ServerTool]:
    """Merge tools of the same kind: the smallest `max_uses`, all domains, forced if one of them is."""
    found: dict[ServerKind, ServerTool] = {}
    for tool in wanted:
        first = found.get(tool.kind, tool)
        limits = [limit for limit in (first.max_uses, tool.max_uses) if limit is not None]
        found[tool.kind] = msgspec.structs.replace(
            first,
            max_uses=min(limits, default=None),
            allowed_domains=tuple(dict.fromkeys(first.allowed_domains + tool.allowed_domains)),
            blocked_domains=tuple(dict.fromkeys(first.blocked_domains + tool.blocked_domains)),
            forced=first.forced or tool.forced,
        )
    return list(found.values())


def _offerable(wanted: list[ServerTool], excluded: bool, vertex: bool) -> tuple[list[ServerTool], list[Note]]:
    if excluded:
        return [], [Note("dropped", tool.where, _NOT_WITH_FUNCTIONS) for tool in wanted]
    offered: list[ServerTool] = []
    notes: list[Note] = []
    for tool in wanted:
        if tool.kind not in _FIELDS:
            notes.append(Note("dropped", tool.where, f"Google runs no {tool.kind}"))
        elif vertex and tool.kind == "code_execution" and len(wanted) > 1:
            notes.append(Note("dropped", tool.where, "Vertex runs code only where there is no other tool"))
        else:
            offered.append(tool)
    return offered, notes


def _settings(tool: ServerTool, vertex: bool) -> dict[str, Any]:
    excluded = bare_sites(tool.blocked_domains) if vertex and tool.kind == "web_search" else ()
    return {"excludeDomains": list(excluded)} if excluded else {}


def _instructions(offered: list[ServerTool], notes: list[Note], vertex: bool) -> Iterable[str]:
    """Yield instructions for the settings that Google does not have, and note each.

    Domain filters are also enforced on the answer: sources outside them are withheld.
    """
    for tool in offered:
        if tool.forced:
            yield _FORCED[tool.kind]
        texts = {
            "max_uses": _at_most(tool),
            "allowed_domains": _only_from(tool.allowed_domains),
            "blocked_domains": ""
            if vertex and tool.kind == "web_search"
            else _not_from(tool.blocked_domains),
            "user_location": _near(tool.location),
        }
        for setting, text in texts.items():
            if text:
                why = "Google has no such setting; it is asked for in the instructions"
                notes.append(Note("moved", f"{tool.where}.{setting}", why))
                yield text


def _at_most(tool: ServerTool) -> str:
    return "" if tool.max_uses is None else f"{_USE[tool.kind]} at most {tool.max_uses} time(s)."


def _only_from(domains: tuple[str, ...]) -> str:
    return f"Use nothing from the web but pages of these sites: {', '.join(domains)}." if domains else ""


def _not_from(domains: tuple[str, ...]) -> str:
    return f"Use no pages of these sites: {', '.join(domains)}." if domains else ""


def _near(location: Location | None) -> str:
    if location is None:
        return ""
    place = ", ".join(filter(None, (location.city, location.region, location.country)))
    zone = f" (time zone {location.timezone})" if location.timezone else ""
    return f"The user is in {place or 'an unknown place'}{zone}; search accordingly."
