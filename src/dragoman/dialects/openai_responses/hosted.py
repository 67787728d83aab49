"""Decode server tools of OpenAI that have an equivalent at Google: web search and the code interpreter."""

from __future__ import annotations

import msgspec

from dragoman.dialects.location import decode_location
from dragoman.dialects.openai_responses.wire import Filters, WireChoice, WireTool
from dragoman.ir import ServerKind, ServerTool
from dragoman.notes import Note

#: Prefix of a tool type -> kind of tool.
_KINDS: dict[str, ServerKind] = {"web_search": "web_search", "code_interpreter": "code_execution"}


def is_hosted(kind: str) -> bool:
    return kind.startswith(tuple(_KINDS))


def read_hosted(wire: WireTool, kind: str, where: str, notes: list[Note]) -> ServerTool:
    """Decode a tool of the type `kind`; add a note for each setting that Google does not have."""
    filters = wire.filters or Filters()
    dropped_fields = {
        "search_context_size": wire.search_context_size not in (None, "medium"),
        "external_web_access": wire.external_web_access is False,
        "container": b"file_ids" in bytes(wire.container),
    }
    notes += [
        Note("dropped", f"{where}.{field}", _DROP_REASONS[field])
        for field, given in dropped_fields.items()
        if given
    ]
    return ServerTool(
        kind=_kind(kind),
        name=kind,
        where=where,
        allowed_domains=tuple(filters.allowed_domains or ()),
        blocked_domains=tuple(filters.blocked_domains or ()),
        location=decode_location(wire.user_location),
    )


_DROP_REASONS = {
    "search_context_size": "Google decides by itself how much it reads",
    "external_web_access": "Google Search has no offline mode; its index is searched",
    "container": "Google's sandbox takes no files of OpenAI's",
}


def force_chosen(tools: tuple[ServerTool, ...], choice: str | WireChoice | None) -> tuple[ServerTool, ...]:
    """Return the tools that the choice allows; a chosen one is marked as `forced`."""
    if choice == "none":
        return ()
    if not isinstance(choice, WireChoice):
        return tools
    if choice.type == "allowed_tools":
        allowed = {
            _kind(tool.type) for tool in (choice.allowed_tools or choice).tools or () if is_hosted(tool.type)
        }
        return tuple(tool for tool in tools if tool.kind in allowed)
    chosen = _kind(choice.type) if is_hosted(choice.type) else None
    return tuple(msgspec.structs.replace(tool, forced=tool.kind == chosen) for tool in tools)


def _kind(word: str) -> ServerKind:
    return next(kind for start, kind in _KINDS.items() if word.startswith(start))
