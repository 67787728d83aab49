"""WebSearch in Claude Code and web_search in Codex wherever Google's rules differ: 2.5, Gemini 3, and Vertex."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agents import Place
from tests.e2e.clients import INSTALL_S, Claude
from tests.e2e.conftest import NEW
from tests.e2e.directives import plan, use
from tests.e2e.fake_google import Google
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.e2e.recording_proxy import Tap, recording_proxy
from tests.e2e.test_codex import codex, execute, items

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

Json = dict[str, Any]

OLD, NEWER = "gemini-2.5-flash", "gemini-3.8-flash"
BACK_ENDS = [("gemini", OLD), ("gemini", NEWER), ("vertex", OLD), ("vertex", NEWER)]
ANSWER = "A dragoman is an interpreter. He was needed."


@pytest.fixture(params=BACK_ENDS, ids=" ".join)
def back_end(request: pytest.FixtureRequest) -> tuple[str, str]:
    kind, model = request.param
    return str(kind), str(model)


@pytest.fixture
def tap(tmp_path: Path, google: Google, back_end: tuple[str, str]) -> Iterator[Tap]:
    """In front of a gateway that sends everything to this back end; a refusal by either fails the test."""
    gateway = Gateway(tmp_path / "gateway", google.url, UPSTREAM_KIND=back_end[0])
    gateway.start()
    with recording_proxy(gateway.url) as tap:
        yield tap
        assert not tap.refused(), "\n".join(tap.refused())
    gateway.stop()
    assert "Traceback" not in gateway.log()


def searches(google: Google) -> list[Json]:
    return [one for one in google.requests() if any("googleSearch" in tool for tool in one.get("tools", ()))]


def beside_functions(request: Json) -> bool:
    return any("functionDeclarations" in tool for tool in request["tools"])


def test_claude_code(tmp_path: Path, tap: Tap, google: Google, back_end: tuple[str, str]) -> None:
    claude = Claude(
        version=NEW[0], model=back_end[1], folder=tmp_path / "claude", url=tap.url, key=GATEWAY_KEY
    )
    load, search = (
        use("ToolSearch", {"query": "select:WebSearch"}),
        use("WebSearch", {"query": "a dragoman"}),
    )
    run = claude.run(plan(load, search)).check()
    assert run.names() == ["ToolSearch", "WebSearch"]
    assert not any(result.get("is_error") for result in run.results())
    found = str(run.results()[-1]["content"])
    assert '{"title":"example.com","url":"https://vertexaisearch.cloud.google.com/' in found
    assert '{"title":"example.org",' in found
    (asked,) = searches(google)
    assert not beside_functions(asked)
    (told,) = [one.answered.body.decode() for one in tap.seen() if b"web_search_20250305" in one.asked.body]
    assert '"type":"web_search_result_location"' in told
    assert '"web_search_requests":1' in told


def test_codex(tmp_path: Path, tap: Tap, google: Google, back_end: tuple[str, str]) -> None:
    """Google searches beside Codex' own functions where it can, and in a question of its own where it cannot."""
    place, mixes = Place(tmp_path / "codex"), back_end == ("gemini", NEWER)
    first = "search the web" if mixes else use("web_search", {"query": "a dragoman"})
    run = codex(place, tap, "-m", back_end[1], plan(first, say=ANSWER))
    (search,) = items(run, "web_search")
    assert search["action"]["type"] == "search"
    (said,) = items(run, "agent_message")
    assert said["text"] == ANSWER
    codex(place, tap, "-m", back_end[1], "resume", "--last", execute("echo later > c.txt")).check()
    assert (place.cwd / "c.txt").read_text() == "later\n"
    assert {note["title"] for note in _annotations(tap)} == {"example.com", "example.org"}
    assert [beside_functions(one) for one in searches(google)] == ([True] * 3 if mixes else [False])
    assert google.sentinels() == 0


def _annotations(tap: Tap) -> list[Json]:
    """Of the answer, as Codex brings it back with the next question."""
    (message,) = [
        item
        for item in tap.bodies("/v1/responses")[1]["input"]
        if item["type"] == "message" and item["role"] == "assistant"
    ]
    return list(message["content"][0]["annotations"])
