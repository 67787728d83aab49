"""With 250 tools only those that are declared or found travel; sizes are counted, never times."""

from __future__ import annotations

import pytest

from benchmarks.mcp_tools import mcp_tools
from benchmarks.tool_search import SEARCH_MODES, WANTED, measure, print_tool_search

#: The most that may be declared besides what was found: the search, and the client's first tools.
SHOWN = {"tool_search_tool_bm25": 1, "tools.search_above = 10": 11}
FOUND_AT_MOST = 5  # by one search


def test_there_are_250_of_them_as_large_as_in_the_wild() -> None:
    tools = mcp_tools()
    assert len({tool["name"] for tool in tools}) == 250


def test_all_of_them_travel_with_every_request_where_nobody_searches() -> None:
    turns, calls = measure(SEARCH_MODES[0])
    assert calls == WANTED
    assert {sent.declared for turn in turns for sent in turn} == {250}
    assert min(sent.tokens for turn in turns for sent in turn) > 100_000


@pytest.mark.parametrize("way", SEARCH_MODES[1:], ids=lambda way: way.title)
def test_only_what_was_found_travels_where_the_model_searches(way: object) -> None:
    (chosen,) = (one for one in SEARCH_MODES if one is way)
    turns, calls = measure(chosen)
    everything, _ = measure(SEARCH_MODES[0])
    assert calls == WANTED
    for number, turn in enumerate(turns, start=1):
        declared = [sent.declared for sent in turn]
        assert declared == sorted(declared)
        assert declared[-1] <= SHOWN[chosen.title] + FOUND_AT_MOST * number
    assert turns[0][0].declared == SHOWN[chosen.title]
    assert turns[-1][-1].declared < 250 / 6
    for field in ("bytes", "tokens"):
        found, full = (
            sum(getattr(sent, field) for turn in many for sent in turn) for many in (turns, everything)
        )
        assert found < full / 5


def test_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_tool_search()
    shown = capsys.readouterr().out
    assert [way.title in shown for way in SEARCH_MODES] == [True] * 3
    assert shown.count("100.0%") == 7
