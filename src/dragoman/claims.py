"""Names for tools of the gateway's own: the client's names are the client's, ours gets another, or is left out."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dragoman.ir import Tool, ToolChoice
from dragoman.notes import Note

_PREFIX = "gateway_"


class Claims:
    """`real` leads from the name that is declared to the tool's own."""

    def __init__(self, theirs: Iterable[str]) -> None:
        self._theirs = frozenset(theirs)
        self.real: dict[str, str] = {}
        self.notes: list[Note] = []

    def claim(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        """The tools under names that are free; of two with one name the first."""
        return tuple(own for tool in tools if (own := self._claim(tool)) is not None)

    def declared(self, choice: ToolChoice | None) -> ToolChoice | None:
        """A choice by the names that are declared; void where none of those it names is."""
        if choice is None or not choice.names:
            return choice
        declared = {real: name for name, real in self.real.items()}
        named = (declared.get(name, name if name in self._theirs else "") for name in choice.names)
        names = tuple(name for name in named if name)
        return msgspec.structs.replace(choice, names=names) if names else None

    def _claim(self, tool: Tool) -> Tool | None:
        name = tool.name
        if name in self.real:
            return None
        if name in self._theirs:
            name = _PREFIX + name
            if name in self._theirs or name in self.real:
                self.notes.append(Note("withheld", tool.name, "the client has tools of this name"))
                return None
            why = f"{tool.name!r} is the client's; the gateway's own tool of this name is {name!r}"
            self.notes.append(Note("renamed", tool.name, why))
        self.real[name] = tool.name
        return tool if name == tool.name else msgspec.structs.replace(tool, name=name)
