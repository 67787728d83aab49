"""`Registry`: tool definitions by name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, overload

from dragoman import ir
from dragoman.tools.definition import Fn, ToolDefinition, definition_of
from dragoman.tools.errors import InvalidTool

_MAX_LISTED = 50


class Registry:
    """A mapping of names to definitions that rejects duplicate names; `@registry.tool` registers a function."""

    def __init__(self, tools: Iterable[ToolDefinition | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, ToolDefinition] = {}
        for one in tools:
            self.register(one)

    def register(self, tool: ToolDefinition | Callable[..., Any], *, replace: bool = False) -> ToolDefinition:
        """Add a tool and return its definition.

        Raises `InvalidTool` if the name is taken, unless `replace` is true.
        """
        definition = definition_of(tool)
        if definition.name in self._tools and not replace:
            raise InvalidTool("there is already a tool of this name", where=definition.name)
        self._tools[definition.name] = definition
        return definition

    def remove(self, name: str) -> None:
        """Remove a tool; do nothing if there is no tool of this name."""
        self._tools.pop(name, None)

    @overload
    def tool(self, function: Fn) -> Fn: ...

    @overload
    def tool(self, **settings: Any) -> Callable[[Fn], Fn]: ...

    def tool(self, function: Any = None, **settings: Any) -> Any:
        """Register a function: `@registry.tool` or `@registry.tool(risk="read", …)`. Return it unchanged."""
        if function is None:
            return functools.partial(self.tool, **settings)
        self.register(ToolDefinition.from_function(function, **settings) if settings else function)
        return function

    def get(self, name: str) -> ToolDefinition | None:
        return self._tools.get(name)

    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def definitions(self) -> tuple[ToolDefinition, ...]:
        return tuple(self._tools.values())

    def to_ir(self) -> tuple[ir.Tool, ...]:
        """Return the tools as they are declared to a model."""
        return tuple(definition.to_ir() for definition in self)

    def explain_unknown(self, name: str) -> str:
        """Return the error message for a model that called a tool which does not exist."""
        import difflib  # imported here because it is rarely needed

        known = self.names()
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        if not known:
            return f"There is no tool named {name!r}; there are no tools at all."
        listed = ", ".join(known[:_MAX_LISTED])
        more = f" and {len(known) - _MAX_LISTED} more" if len(known) > _MAX_LISTED else ""
        return f"There is no tool named {name!r}.{hint} The tools are: {listed}{more}."

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[ToolDefinition]:
        return iter(self.definitions())

    def __len__(self) -> int:
        return len(self._tools)
