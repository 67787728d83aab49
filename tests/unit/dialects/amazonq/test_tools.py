"""Declarations: their order, their odd entries, their schemas."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from dragoman.dialects.amazonq import AmazonQ
from dragoman.ir import Tool
from tests.unit.dialects.amazonq.builders import (
    CONTEXT,
    CURRENT,
    body,
    refused,
    request,
    tool,
    user,
    with_tools,
)

WHERE = f"{CURRENT}{CONTEXT}.tools"


def test_a_tool_is_kept_as_it_is() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    found = request(with_tools(tool("fs_read", schema, description="Reads."))).tools
    assert found == (
        Tool(name="fs_read", description="Reads.", schema=json.dumps(schema).encode(), where="tools.fs_read"),
    )


def test_any_order_is_one_order() -> None:
    """The Rust client's list comes out of a hash map: another order in every request, and no cache ever hits."""
    tools = [tool(name, {"type": "object"}) for name in ("fs_write", "execute_bash", "fs_read")]
    orders = {request(with_tools(*order)).tools for order in itertools.permutations(tools)}
    assert [[one.name for one in order] for order in orders] == [["execute_bash", "fs_read", "fs_write"]]


def test_a_declaration_is_read_once_wherever_it_stands() -> None:
    one, other = tool("a", {"type": "object"}), tool("b", {"type": "object"})
    first, second = (request(with_tools(*tools)).tools for tools in ((one, other), (other, one)))
    assert all(left is right for left, right in zip(first, second, strict=True))


def test_cache_points_declare_nothing() -> None:
    point = {"cachePoint": {"type": "default"}}
    assert [one.name for one in request(with_tools(point, tool("a"), point)).tools] == ["a"]


@pytest.mark.parametrize(
    "schema", [{}, {"inputSchema": None}, {"inputSchema": {}}, {"inputSchema": {"json": None}}]
)
def test_a_tool_without_a_schema_takes_anything(schema: dict[str, Any]) -> None:
    assert request(with_tools(tool(**schema))).tools[0].schema == b"{}"


def test_of_two_tools_with_one_name_the_first_counts() -> None:
    first, second = request(with_tools(tool("a", {"title": "1"}), tool("a", {"title": "2"}))).tools
    assert (b"1" in first.schema, b"2" in second.schema) == (True, True)


def test_a_key_that_stands_twice_survives() -> None:
    """`required` stands twice in the schema of the client's own `delegate`."""
    twice = b'{"required":["a"],"type":"object","required":["a"]}'
    raw = body(with_tools(tool("delegate", "SCHEMA"))).replace(b'"SCHEMA"', twice)
    assert AmazonQ().decode_request(raw, {}).request.tools[0].schema == twice


@pytest.mark.parametrize(
    ("entry", "where", "code"),
    [
        ({}, "", ""),
        ({"cachePoint": None}, "", ""),
        ({"systemTool": {"name": "x"}}, "", ""),
        (tool(""), ".toolSpecification.name", ""),
        (tool("a", [1]), ".toolSpecification.inputSchema.json", "tool_schema"),
        (tool("a", "{}"), ".toolSpecification.inputSchema.json", "tool_schema"),
        ({"toolSpecification": {"name": 5}}, ".toolSpecification.name", ""),
    ],
)
def test_what_is_no_tool_is_refused_with_its_place(entry: dict[str, object], where: str, code: str) -> None:
    error = refused(with_tools(tool("good"), entry))
    assert (error.where, error.code) == (f"{WHERE}[1]{where}", code)


def test_no_tools_is_none() -> None:
    assert request(user("x", context={"tools": None})).tools == ()
    assert refused(user("x", context={"tools": 5})).where == WHERE
