"""The tools at hand, by name."""

from __future__ import annotations

import pytest

from dragoman.tools import InvalidTool, Registry, ToolDefinition, tool


def test_functions_and_definitions_are_registered_alike() -> None:
    registry = Registry([ToolDefinition(name="declared")])

    @registry.tool
    def first(a: int) -> int:
        return a

    @registry.tool(risk="read", name="other")
    def second(a: int) -> int:
        return a

    @tool(risk="write")
    def third() -> None: ...

    registry.register(third)
    assert (first(1), second(2)) == (1, 2)
    assert registry.names() == ("declared", "first", "other", "third")
    assert [one.risk for one in registry] == ["run", "run", "read", "write"]
    assert ("first" in registry, "second" in registry, len(registry)) == (True, False, 4)
    assert [one.name for one in registry.to_ir()] == list(registry.names())
    found = registry.get("other")
    assert found is not None
    assert found is registry.definitions()[2]
    assert registry.get("nothing") is None


def test_two_tools_of_one_name_are_refused_unless_that_is_meant() -> None:
    registry = Registry([ToolDefinition(name="a", description="old")])
    with pytest.raises(InvalidTool, match="a: there is already a tool of this name"):
        registry.register(ToolDefinition(name="a", description="new"))
    registry.register(ToolDefinition(name="a", description="new"), replace=True)
    assert registry.definitions()[0].description == "new"
    registry.remove("a")
    registry.remove("a")
    assert registry.names() == ()
