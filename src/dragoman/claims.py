"""Names for gateway tools: one whose name the client uses is renamed, or left out if that name is taken too."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dragoman.ir import Tool, ToolChoice
from dragoman.notes import Note

_GATEWAY_PREFIX = "gateway_"


class ToolNames:
    """Assigns names to gateway tools; `real` maps each declared name to the tool's original name."""

    def __init__(self, theirs: Iterable[str]) -> None:
        self._client_names = frozenset(theirs)
        self.original_names: dict[str, str] = {}
        self.notes: list[Note] = []

    def assign(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        """Return the tools under names that are free; of two tools with one name only the first."""
        return tuple(own for tool in tools if (own := self._assign(tool)) is not None)

    def rename_choice(self, choice: ToolChoice | None) -> ToolChoice | None:
        """Return the choice with the declared names; None if none of the tools it names is declared."""
        if choice is None or not choice.names:
            return choice
        declared = {real: name for name, real in self.original_names.items()}
        named = (declared.get(name, name if name in self._client_names else "") for name in choice.names)
        names = tuple(name for name in named if name)
        return msgspec.structs.replace(choice, names=names) if names else None

    def _assign(self, tool: Tool) -> Tool | None:
        name = tool.name
        if name in self.original_names:
            return None
        if name in self._client_names:
            name = _GATEWAY_PREFIX + name
            if name in self._client_names or name in self.original_names:
                self.notes.append(Note("withheld", tool.name, "the client has tools of this name"))
                return None
            why = f"{tool.name!r} is the client's; the gateway's own tool of this name is {name!r}"
            self.notes.append(Note("renamed", tool.name, why))
        self.original_names[name] = tool.name
        return tool if name == tool.name else msgspec.structs.replace(tool, name=name)
