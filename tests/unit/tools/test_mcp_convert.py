"""What an MCP server says reaches the model: everything, once, in a form it can read."""

from __future__ import annotations

from typing import Any

import mcp_types
import pytest

from dragoman.config.tools import McpServer
from dragoman.ir import Media, Text
from dragoman.tools.definition import Context, ToolOutput
from dragoman.tools.mcp.convert import convert_result, convert_tool


def result(*content: Any, structured: Any = None, is_error: bool = False) -> ToolOutput:
    return convert_result(
        mcp_types.CallToolResult(content=list(content), structured_content=structured, is_error=is_error)
    )


def text(words: str) -> mcp_types.TextContent:
    return mcp_types.TextContent(text=words)


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (text("hello"), Text(text="hello")),
        (mcp_types.ImageContent(data="AA==", mime_type="image/png"), Media(mime="image/png", data="AA==")),
        (mcp_types.AudioContent(data="AA==", mime_type="audio/wav"), Media(mime="audio/wav", data="AA==")),
        (
            mcp_types.ResourceLink(uri="file:///a", name="a", mime_type="text/plain", description="a file"),
            Text(text="[a](file:///a) text/plain a file"),
        ),
        (mcp_types.ResourceLink(uri="x:y", name="a", title="The A"), Text(text="[The A](x:y)")),
        (
            mcp_types.EmbeddedResource(resource=mcp_types.TextResourceContents(uri="file:///a", text="body")),
            Text(text="file:///a:\nbody"),
        ),
        (
            mcp_types.EmbeddedResource(
                resource=mcp_types.BlobResourceContents(uri="x:y", blob="AA==", mime_type="a/b")
            ),
            Media(mime="a/b", data="AA=="),
        ),
        (
            mcp_types.EmbeddedResource(resource=mcp_types.BlobResourceContents(uri="x:y", blob="AA==")),
            Media(mime="application/octet-stream", data="AA=="),
        ),
    ],
)
def test_every_kind_of_content_has_a_place(block: Any, part: Text | Media) -> None:
    assert result(block) == ToolOutput(content=(part,))


def test_structured_content_that_repeats_the_text_is_the_response() -> None:
    said = result(text('{"b": 2, "a": 1}'), structured={"a": 1, "b": 2})
    assert said.response == b'{"a":1,"b":2}'
    assert result(text("3"), structured={"result": 3}).response == b'{"result":3}'
    assert result(text("three"), structured={"result": "three"}).response == b'{"result":"three"}'
    assert result(structured={"a": 1}).response == b'{"a":1}'


def test_structured_content_beside_other_text_loses_neither() -> None:
    said = result(text("It is warm."), structured={"degrees": 30})
    assert said == ToolOutput(content=(Text(text="It is warm."), Text(text='{"degrees":30}')))
    mixed = result(text("It is warm."), text('{"degrees":30}'), structured={"degrees": 30})
    assert [part.text for part in mixed.content if isinstance(part, Text)] == [
        "It is warm.",
        '{"degrees":30}',
    ]
    assert mixed.response == b""


def test_structured_content_that_is_no_object_stays_text() -> None:
    assert result(text("[1,2]"), structured=[1, 2]) == ToolOutput(content=(Text(text="[1,2]"),))
    assert result(structured=[1, 2]) == ToolOutput(content=(Text(text="[1,2]"),))


def test_an_error_stays_an_error_with_its_words() -> None:
    assert result(text("no"), is_error=True) == ToolOutput(content=(Text(text="no"),), is_error=True)
    repeated = result(text('{"code":1}'), structured={"code": 1}, is_error=True)
    assert repeated == ToolOutput(content=(Text(text='{"code":1}'),), is_error=True)
    said = result(text("no"), structured={"code": 1}, is_error=True)
    assert said == ToolOutput(content=(Text(text="no"), Text(text='{"code":1}')), is_error=True)


@pytest.mark.parametrize(
    ("hints", "risk"),
    [
        (None, "run"),
        (mcp_types.ToolAnnotations(), "run"),
        (mcp_types.ToolAnnotations(read_only_hint=False), "run"),
        (mcp_types.ToolAnnotations(read_only_hint=True), "read"),
    ],
)
def test_only_a_tool_that_says_so_is_read_only(hints: mcp_types.ToolAnnotations | None, risk: str) -> None:
    def execute(args: dict[str, Any], context: Context) -> str:
        return ""

    tool = mcp_types.Tool(name="t", description="d", input_schema={"type": "object"}, annotations=hints)
    definition = convert_tool("s", tool, execute, McpServer(timeout_s=7))
    assert definition is not None
    assert (definition.name, definition.description, definition.risk) == ("mcp__s__t", "d", risk)
    assert (definition.schema, definition.timeout_s) == (b'{"type":"object"}', 7)
