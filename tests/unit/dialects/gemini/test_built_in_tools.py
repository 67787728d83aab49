"""What Google runs for a client: which tool, beside which others, and what it has no setting for (known problem K2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects import gemini
from dragoman.dialects.base import Target
from dragoman.dialects.gemini.server_tools_stream import ServerToolsStream
from dragoman.dialects.gemini.stream import GeminiStream
from dragoman.ir import Location, OutputFormat, Request, ServerTool, ToolChoice
from tests.unit.dialects.gemini.builders import NEW, OLD, READ, Json, body_of, encode, notes_of, user

SEARCH = ServerTool(kind="web_search", name="web_search", where="tools[1]")
FETCH = ServerTool(kind="web_fetch", name="web_fetch", where="tools[2]")
CODE = ServerTool(kind="code_execution", name="code_execution", where="tools[3]")
SHOWN = {"includeServerSideToolInvocations": True}
CASES: dict[str, tuple[Json, list[str], Any, list[str]]] = {
    "search alone on 3": ({"server_tools": (SEARCH,)}, ["googleSearch"], SHOWN, []),
    "search alone on 2.5": ({"server_tools": (SEARCH,), "to": OLD}, ["googleSearch"], None, []),
    "search alone on Vertex": (
        {"server_tools": (SEARCH,), "backend": "vertex"},
        ["googleSearch"],
        None,
        [],
    ),
    "everything on 3": (
        {"server_tools": (SEARCH, FETCH, CODE)},
        ["googleSearch", "urlContext", "codeExecution"],
        SHOWN,
        [],
    ),
    "everything on Vertex": (
        {"server_tools": (SEARCH, FETCH, CODE), "backend": "vertex"},
        ["googleSearch", "urlContext"],
        None,
        ["tools[3]"],
    ),
    "code alone on Vertex": (
        {"server_tools": (CODE,), "backend": "vertex"},
        ["codeExecution"],
        None,
        [],
    ),
    "beside functions on 3": (
        {"server_tools": (SEARCH, CODE), "tools": (READ,)},
        ["functionDeclarations", "googleSearch", "codeExecution"],
        SHOWN,
        [],
    ),
    "beside functions on 2.5": (
        {"server_tools": (SEARCH, CODE), "tools": (READ,), "to": OLD},
        ["functionDeclarations"],
        None,
        ["tools[1]", "tools[3]"],
    ),
    "beside functions on Vertex": (
        {"server_tools": (SEARCH,), "tools": (READ,), "backend": "vertex"},
        ["functionDeclarations"],
        None,
        ["tools[1]"],
    ),
    "one that is not Google's": (
        {"server_tools": (ServerTool(kind="mcp", where="tools[0]"), SEARCH)},
        ["googleSearch"],
        SHOWN,
        ["tools[0]"],
    ),
}


@pytest.mark.parametrize(("asked", "kinds", "config", "dropped"), CASES.values(), ids=CASES.keys())
def test_k2_what_stands_beside_what(asked: Json, kinds: list[str], config: Any, dropped: list[str]) -> None:
    body = body_of(**asked)
    assert [kind for tool in body["tools"] for kind in tool] == kinds
    assert body.get("toolConfig") == config
    assert [note.where for note in notes_of(**asked) if note.kind == "dropped"] == dropped


def test_k2_a_model_that_refused_the_mix_is_not_asked_again() -> None:
    request = Request(model="any", messages=(user("q"),), tools=(READ,), server_tools=(SEARCH,))
    encoded = gemini.encode_request(request, Target(model=NEW, unmixed_tools=True), str)
    body = json.loads(encoded.body)
    assert [list(tool) for tool in body["tools"]] == [["functionDeclarations"]]
    assert [note.where for note in encoded.notes] == ["tools[1]"]


def test_a_choice_of_functions_stands_beside_the_switch() -> None:
    config = body_of(tools=(READ,), server_tools=(SEARCH,), tool_choice=ToolChoice(mode="any"))["toolConfig"]
    assert config == {"functionCallingConfig": {"mode": "ANY"}, **SHOWN}


def test_nothing_of_it_without_server_tools() -> None:
    encoded = encode(tools=(READ,))
    assert "toolConfig" not in json.loads(encoded.body)
    assert isinstance(encoded.reader(), GeminiStream)
    assert isinstance(encode(server_tools=(SEARCH,)).reader(), ServerToolsStream)
    dropped = encode(server_tools=(SEARCH,), tools=(READ,), to=OLD)
    assert isinstance(dropped.reader(), GeminiStream)


def instructions(**asked: Any) -> str:
    parts = body_of(**asked).get("systemInstruction", {"parts": []})["parts"]
    return " ".join(part["text"] for part in parts)


WISHES: dict[str, tuple[Json, str, str]] = {
    "uses": ({"max_uses": 3}, "Search the web at most 3 time(s).", "max_uses"),
    "no uses": ({"max_uses": 0}, "Search the web at most 0 time(s).", "max_uses"),
    "allowed": (
        {"allowed_domains": ("a.org", "b.org")},
        "nothing from the web but pages of these sites: a.org, b.org.",
        "allowed_domains",
    ),
    "blocked": (
        {"blocked_domains": ("c.org",)},
        "Use no pages of these sites: c.org.",
        "blocked_domains",
    ),
    "place": (
        {"location": Location(city="Oslo", country="NO", timezone="Europe/Oslo")},
        "The user is in Oslo, NO (time zone Europe/Oslo)",
        "user_location",
    ),
    "zone": (
        {"location": Location(timezone="Europe/Oslo")},
        "in an unknown place (time zone",
        "user_location",
    ),
    "region": ({"location": Location(region="Vestland")}, "in Vestland; search", "user_location"),
}


@pytest.mark.parametrize(("settings", "words", "setting"), WISHES.values(), ids=WISHES.keys())
def test_k1_what_google_has_no_setting_for_is_asked_of_the_model(
    settings: Json, words: str, setting: str
) -> None:
    tool = ServerTool(kind="web_search", where="tools[0]", **settings)
    assert words in instructions(server_tools=(tool,))
    (note,) = notes_of(server_tools=(tool,))
    assert (note.kind, note.where) == ("moved", f"tools[0].{setting}")


def test_vertex_excludes_sites_itself() -> None:
    tool = ServerTool(kind="web_search", where="tools[0]", blocked_domains=("c.org",))
    body = body_of(server_tools=(tool,), backend="vertex")
    assert body["tools"] == [{"googleSearch": {"excludeDomains": ["c.org"]}}]
    assert "systemInstruction" not in body
    written = ("https://www.C.org/x", "*.c.org", ".c.org", " ", "d.org")
    tool = ServerTool(kind="web_search", where="tools[0]", blocked_domains=written)
    body = body_of(server_tools=(tool,), backend="vertex")
    assert body["tools"] == [{"googleSearch": {"excludeDomains": ["c.org", "d.org"]}}]
    fetch = ServerTool(kind="web_fetch", where="tools[0]", blocked_domains=("c.org",))
    assert "Use no pages" in instructions(server_tools=(fetch,), backend="vertex")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("web_search", "Search the web before"),
        ("web_fetch", "Read the web pages"),
        ("code_execution", "run it"),
    ],
)
def test_a_forced_tool_is_asked_for(kind: Any, words: str) -> None:
    assert words in instructions(server_tools=(ServerTool(kind=kind, forced=True),))
    assert notes_of(server_tools=(ServerTool(kind=kind, forced=True),)) == ()


def test_two_of_a_kind_are_one_with_the_limits_of_both() -> None:
    first = ServerTool(kind="web_search", where="a", max_uses=5, allowed_domains=("a.org",))
    second = ServerTool(
        kind="web_search", where="b", max_uses=2, allowed_domains=("b.org", "a.org"), forced=True
    )
    body = body_of(server_tools=(first, second, ServerTool(kind="web_search")))
    assert body["tools"] == [{"googleSearch": {}}]
    asked = instructions(server_tools=(first, second))
    assert "at most 2" in asked
    assert "a.org, b.org." in asked
    assert "before you answer" in asked


def test_b16_json_output_beside_googles_tools() -> None:
    wanted = {"output": OutputFormat(), "server_tools": (SEARCH,)}
    assert body_of(**wanted)["generationConfig"]["responseMimeType"] == "application/json"
    assert "generationConfig" not in body_of(to=OLD, **wanted)
    assert "JSON only" in instructions(to=OLD, **wanted)
