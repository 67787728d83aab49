"""Tools that are declared only once they are found, in the order in which they were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dragoman.ir import Request, Tool
from dragoman.repair import Places, known_tools


class Deferred:
    """`found` names those that the client's dialect knows of already."""

    def __init__(self, tools: Iterable[Tool] = (), found: Iterable[str] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._found = tuple(found)

    def others(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        """Those that are declared in any case."""
        return tuple(tool for tool in tools if tool.name not in self._tools)

    def known(self, request: Request, places: Places, records: Mapping[str, str]) -> list[Tool]:
        """Those that the conversation has found or called, and those it must call now.

        Their order never changes, and what comes later is behind: so Google's cache knows the beginning again.
        """
        if not self._tools:
            return []
        conversation = known_tools(request.messages, places, records)
        return self.named((*self._found, *conversation, *request.tool_choice.names))

    def named(self, names: Iterable[str]) -> list[Tool]:
        return [self._tools[name] for name in names if name in self._tools]

    def names(self, tools: Iterable[Tool]) -> tuple[str, ...]:
        """Those of these tools that had to be found."""
        return tuple(tool.name for tool in tools if tool.name in self._tools)

    def unseen(self, name: str, tools: Iterable[Tool]) -> Tool | None:
        """The tool of this name, if it is none of these, which the model has seen."""
        return None if any(tool.name == name for tool in tools) else self._tools.get(name)
