"""The estimate that is given before Google has counted (known problems H1, H2, H3)."""

from __future__ import annotations

import msgspec
import pytest

from dragoman.incremental.lru import LruCache
from dragoman.ir import (
    Media,
    Message,
    Native,
    Part,
    Request,
    ServerCall,
    ServerResult,
    Source,
    Text,
    Thought,
    Tool,
    ToolCall,
    ToolResult,
)
from dragoman.translation import token_estimate
from dragoman.translation.token_estimate import estimate_tokens


def _said(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def estimate(*parts: Part, **fields: object) -> int:
    messages = (Message(role="user", parts=parts),) if parts else ()
    return estimate_tokens(Request(model="m", messages=messages, **fields))  # type: ignore[arg-type]


def test_h1_even_an_empty_request_counts() -> None:
    assert estimate() == 1


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        (Text(text=""), 4),
        (Text(text="abcd"), 5),
        (Text(text="abcde"), 6),
        (Text(text="ääää"), 6),
        (Text(text="\ud83d"), 5),
        (Thought(text="x" * 4_000), 4),
        (Media(mime="image/png", data="x"), 1_124),
        (Media(mime="application/pdf", uri="https://x/y.pdf"), 564),
        (Media(mime="application/pdf", data="x" * 60_000), 1_124),
        (ToolCall(id="i", name="read", args=b'{"a":"bcd"}'), 7),
        (ToolResult(call_id="i", content=(Text(text="abcd"), Media(mime="image/png", data="x"))), 1_129),
        (ToolResult(call_id="i", response=b'{"a":1}!'), 10),
        (Native(json=b'{"executableCode":{}}...'), 10),
        (ServerCall(id="i", kind="web_search", name="find", args=b'{"a":"bcd"}'), 7),
        (ServerResult(call_id="i", kind="mcp", output="abcd"), 9),
        (
            ServerResult(call_id="i", kind="web_search", sources=(Source(url="abcd", title="e", text="f"),)),
            11,
        ),
    ],
)
def test_each_part_has_its_price(part: Part, tokens: int) -> None:
    assert estimate(part) == tokens


def test_h2_images_are_counted_as_images_not_as_text() -> None:
    assert estimate(Media(mime="image/png", data="A" * 320_000)) < 2_000


def test_h3_system_and_tools_count_too() -> None:
    tool = Tool(name="read", description="x" * 400, schema=b" " * 800)
    assert estimate(Text(text="hi")) + 100 == estimate(Text(text="hi"), system=(Text(text="x" * 400),))
    assert estimate(Text(text="hi")) + 301 == estimate(Text(text="hi"), tools=(tool,))


def test_h2_a_file_only_gemini_understands_counts_as_a_file_too() -> None:
    photo = b'{"inlineData":{"data":"%b"},"mediaResolution":{}}' % (b"A" * 1_000_000)
    parts = (
        Native(json=photo),
        ToolResult(call_id="1", native=b'{"functionResponse":{"parts":[%b]}}' % photo),
    )
    assert estimate_tokens(Request(model="m", messages=(Message(role="user", parts=parts),))) < 3_000
    code = Native(json=b'{"executableCode":{"code":"%b"}}' % (b"A" * 4_000))
    assert estimate_tokens(Request(model="m", messages=(Message(role="user", parts=(code,)),))) > 1_000


def test_system_and_tools_are_counted_once_for_all_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []
    count = token_estimate._tool

    def noted(tool: Tool) -> int:
        counted.append(tool.name)
        return count(tool)

    monkeypatch.setattr(token_estimate, "_tool", noted)
    monkeypatch.setattr(token_estimate, "_STANDING", LruCache(1 << 20))
    request = Request(model="m", messages=(_said("a"),), tools=(Tool(name="find", description="d" * 40),))
    longer = msgspec.structs.replace(request, messages=(*request.messages, _said("b" * 400)))
    other = msgspec.structs.replace(request, tools=(*request.tools, Tool(name="read")))
    sizes = [estimate_tokens(one) for one in (request, longer, other, request)]
    assert counted == ["find", "find", "read"]
    assert sizes[0] == sizes[3]
    assert sizes[1] == sizes[0] + 104
    assert sizes[2] == sizes[0] + 1


def test_a_history_whose_beginning_is_known_is_counted_from_there() -> None:
    history = tuple(_said(text * 40) for text in "abcd")
    turns = (history[:2], history, history[:1], (history[0], history[2]))
    alone = [estimate_tokens(Request(model="m", messages=messages)) for messages in turns]
    assert alone == [14 * len(messages) for messages in turns]
