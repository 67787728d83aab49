"""The deferred tools of a request, and which of them must be declared because they were found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dragoman.ir import Request, Tool
from dragoman.repair import HiddenPlaces, known_tools


class DeferredTools:
    """`tools` are the deferred tools; `found` names those that the client's request marks as found."""

    def __init__(self, tools: Iterable[Tool] = (), found: Iterable[str] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._found = tuple(found)

    def not_deferred(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        """Return those of these tools that are not deferred."""
        return tuple(tool for tool in tools if tool.name not in self._tools)

    def known_tools(self, request: Request, places: HiddenPlaces, records: Mapping[str, str]) -> list[Tool]:
        """Return the deferred tools that the conversation has found or called, and those that the model must call now.

        The order is stable and new tools are appended, so that Google's prompt cache still matches the beginning.
        """
        if not self._tools:
            return []
        conversation = known_tools(request.messages, places, records)
        return self.with_names((*self._found, *conversation, *request.tool_choice.names))

    def with_names(self, names: Iterable[str]) -> list[Tool]:
        """Return the deferred tools with these names."""
        return [self._tools[name] for name in names if name in self._tools]

    def names(self, tools: Iterable[Tool]) -> tuple[str, ...]:
        """Return the names of those of these tools that are deferred."""
        return tuple(tool.name for tool in tools if tool.name in self._tools)

    def undeclared_tool(self, name: str, tools: Iterable[Tool]) -> Tool | None:
        """Return the deferred tool of this name, unless it is among `tools`, which are declared already."""
        return None if any(tool.name == name for tool in tools) else self._tools.get(name)
