"""Searching for tools: what can be found of one, how it is asked for, and which come first."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.ir import Message, Request, SearchBy, ServerResult, ServerTool, Text, Tool, ToolCall, ToolChoice
from dragoman.translation.tool_search import (
    GATEWAY_SEARCH,
    MAX_FOUND,
    SearchPlan,
    declare_search,
    plan_search,
    run_search,
)
from dragoman.translation.tool_search import linear_regex as pattern_module
from dragoman.translation.tool_search.index import bare_name, document_of, words_of
from dragoman.translation.tool_search.search import list_names

Json = dict[str, Any]


def tool(name: str, description: str = "", deferred: bool = True, **properties: Json) -> Tool:
    schema = json.dumps({"type": "object", "properties": properties}).encode()
    return Tool(name=name, description=description, schema=schema, deferred=deferred)


CREATE = tool(
    "mcp__github__create_issue",
    "Open a new issue in a repository.",
    repo={"type": "string", "description": "owner/name"},
    labels={"type": "array", "items": {"type": "object", "properties": {"colour": {}}}},
)
LIST = tool("mcp__github__list_issues", "List the issues of a repository.")
MERGE = tool("mcp__github__mergePullRequest", "Merge a change.", number={"type": "integer"})
WEATHER = tool("getWeather", "The forecast for a place.", place={"description": "City or\n airport code"})
ORDERS = tool("crm.list_open_orders", "Orders of a customer.", customer_id={})
PROFILE = tool("crm.get_customer_profile", "Who a customer is.", customer_id={})
TOOLS = (CREATE, LIST, MERGE, WEATHER, ORDERS, PROFILE)


def found(by: SearchBy, tools: tuple[Tool, ...] = TOOLS, /, **args: Any) -> list[str]:
    result = run_search("c1", by, json.dumps(args).encode(), tools)
    assert (result.call_id, result.kind, result.error) == ("c1", "tool_search", "")
    return [bare_name(name) for name in result.tools]


def refused(by: SearchBy, args: bytes, tools: tuple[Tool, ...] = TOOLS) -> tuple[str, str]:
    result = run_search("c1", by, args, tools)
    assert result.tools == ()
    return result.error, result.output


class TestWords:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("getUserData", ["get", "user", "data"]),
            ("HTTPServer2Start", ["http", "server", "2", "start"]),
            ("mcp__github__list_issues", ["mcp", "github", "list", "issue"]),
            ("Queries, boxes; classes: the status of this", ["query", "box", "class", "status"]),
            ("s3 is gas and glass", ["s", "3", "gas", "glass"]),
            ("Größe Überschrift 天気", ["größe", "überschrift", "天気"]),
            ("", []),
        ],
    )
    def test_names_are_taken_apart(self, text: str, words: list[str]) -> None:
        assert words_of(text) == words

    @pytest.mark.parametrize(
        ("name", "bare"),
        [("a", "a"), ("mcp__a__b", "b"), ("ns.b", "b"), ("a:b", "b"), ("a/b_c", "b_c"), ("odd__", "odd__")],
    )
    def test_the_name_without_its_group(self, name: str, bare: str) -> None:
        assert bare_name(name) == bare

    def test_every_argument_is_a_line_also_a_nested_one(self) -> None:
        assert document_of(CREATE).arguments == ("repo owner/name", "labels", "colour")
        assert document_of(WEATHER).arguments == ("place City or airport code",)

    @pytest.mark.parametrize("schema", [b"true", b"not json", b"[" * 10_000, b'{"properties":{"a":true}}'])
    def test_any_schema_will_do(self, schema: bytes) -> None:
        arguments = document_of(Tool(name="a", schema=schema)).arguments
        assert arguments == (("a",) if b"properties" in schema else ())

    def test_a_description_can_be_anything(self) -> None:
        assert document_of(tool("a", b={"description": 7})).arguments == ("b",)

    def test_what_goes_on_for_ever_is_cut(self) -> None:
        properties: dict[str, Any] = {f"p{number}": {} for number in range(500)}
        endless = tool("a", "x" * 10_000, **properties)
        assert len(document_of(endless).arguments) == 200
        assert len(document_of(endless).description) == 4_000


class TestByPattern:
    @pytest.mark.parametrize(
        ("pattern", "names"),
        [
            ("issue", ["create_issue", "list_issues"]),
            ("ISSUE", ["create_issue", "list_issues"]),
            ("^get", ["getWeather"]),
            ("airport", ["getWeather"]),
            ("customer_id", ["get_customer_profile", "list_open_orders"]),
            ("owner.name", ["create_issue"]),
            ("order|list", ["list_open_orders", "list_issues"]),
            ("nothing of that kind", []),
        ],
    )
    def test_names_descriptions_and_arguments(self, pattern: str, names: list[str]) -> None:
        assert found("pattern", pattern=pattern) == names

    def test_names_come_before_descriptions_and_those_before_arguments(self) -> None:
        tools = (tool("a", wanted={}), tool("b", "it is wanted"), tool("is_wanted"), tool("c", "unwanted"))
        assert found("pattern", tools, pattern="wanted") == ["is_wanted", "b", "c", "a"]

    def test_never_more_than_can_be_read(self) -> None:
        tools = tuple(tool(f"t{number:03}") for number in range(300))
        assert found("pattern", tools, pattern="t") == [f"t{number:03}" for number in range(MAX_FOUND)]

    def test_a_model_that_calls_it_otherwise_is_understood(self) -> None:
        assert found("pattern", query="weather") == ["getWeather"]

    @pytest.mark.parametrize(
        ("args", "error"),
        [
            (b'{"pattern":"("}', "Invalid regular expression pattern: missing ), unterminated subpattern"),
            (b'{"pattern":"%b"}' % (b"a" * 201), "pattern is longer than 200 characters"),
            (b'{"pattern":""}', "pattern is missing: it must be text"),
            (b'{"pattern":7}', "pattern is missing: it must be text"),
            (b'{"a":"x","b":"y"}', "pattern is missing: it must be text"),
            (b"{}", "pattern is missing: it must be text"),
            (b"[]", "pattern is missing: it must be text"),
            (b"{", "pattern is missing: it must be text"),
        ],
    )
    def test_what_is_wrong_is_told_in_anthropics_words(self, args: bytes, error: str) -> None:
        code, message = refused("pattern", args)
        assert code == "invalid_tool_input"
        assert message.startswith(error)

    def test_too_much_work_is_an_error_and_no_delay(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pattern_module, "_MAX_WORK", 5)
        code, message = refused("pattern", b'{"pattern":"(a|b)*c"}', (tool("ab" * 50),))
        assert (code, message) == (
            "execution_time_exceeded",
            "the pattern takes too long; write a simpler one",
        )


class TestByWords:
    @pytest.mark.parametrize(
        ("query", "first"),
        [
            ("open an issue on GitHub", "create_issue"),
            ("list issues", "list_issues"),
            ("merge a pull request", "mergePullRequest"),
            ("forecast", "getWeather"),
            ("airport", "getWeather"),
            ("orders of a customer", "list_open_orders"),
            ("get_customer_profile", "get_customer_profile"),
            ("`crm.get_customer_profile`, please", "get_customer_profile"),
        ],
    )
    def test_the_best_comes_first(self, query: str, first: str) -> None:
        assert found("words", query=query)[0] == first

    def test_what_has_none_of_the_words_is_not_found(self) -> None:
        assert found("words", query="zebra") == []
        assert found("words", query="the of and") == []
        assert found("words", (), query="issue") == []
        assert found("words", (tool("the"),), query="a zebra") == []

    def test_equals_come_in_the_order_of_their_names(self) -> None:
        tools = tuple(tool(f"{letter}_thing", "a thing") for letter in "hgfedcba")
        assert found("words", tools, query="thing") == [f"{letter}_thing" for letter in "abcde"]

    def test_a_rare_word_counts_more_than_a_common_one(self) -> None:
        tools = (*(tool(f"a{number}", "a file") for number in range(9)), tool("z", "a zip"))
        assert found("words", tools, query="file zip") == ["z", "a0", "a1", "a2", "a3"]

    def test_a_tool_that_is_called_by_its_name_comes_before_all_that_fit_better(self) -> None:
        long = tool("crm.get_user", "and so on " * 200)
        tools = (tool("get_user_user", "get user get user"), long)
        assert found("words", tools, query="get_user") == ["get_user", "get_user_user"]

    def test_a_long_description_is_no_advantage(self) -> None:
        short, long = tool("b", "zip it"), tool("a", "zip it, " + "and so on " * 200)
        assert found("words", (long, short), query="zip") == ["b", "a"]

    def test_a_query_has_an_end(self) -> None:
        code, message = refused("words", json.dumps({"query": "x" * 501}).encode())
        assert (code, message) == ("invalid_tool_input", "query is longer than 500 characters")


class TestByPaths:
    @pytest.mark.parametrize(
        ("args", "names"),
        [
            ({"paths": ["crm"]}, ["get_customer_profile", "list_open_orders"]),
            ({"paths": ["crm."]}, ["get_customer_profile", "list_open_orders"]),
            ({"paths": ["crm.*"]}, ["get_customer_profile", "list_open_orders"]),
            ({"paths": "crm"}, ["get_customer_profile", "list_open_orders"]),
            ({"paths": ["list_open_orders", "getWeather"]}, ["list_open_orders", "getWeather"]),
            ({"paths": ["crm.list_open_orders", 7]}, ["list_open_orders"]),
            ({"paths": ["airport codes"]}, ["getWeather"]),
            (
                {"paths": ["crm", "crm"], "query": "weather"},
                ["get_customer_profile", "list_open_orders", "getWeather"],
            ),
            ({"query": "forecast"}, ["getWeather"]),
            ({"paths": [""], "query": "zebra"}, []),
        ],
    )
    def test_names_groups_and_words(self, args: Json, names: list[str]) -> None:
        assert found("paths", **args) == names

    @pytest.mark.parametrize("args", [b"{}", b'{"paths":[]}', b'{"paths":[7]}', b'{"query":7}'])
    def test_something_must_be_asked_for(self, args: bytes) -> None:
        assert refused("paths", args) == ("invalid_tool_input", "query is missing: it must be text")

    def test_a_large_group_is_cut(self) -> None:
        tools = tuple(tool(f"big.t{number:03}") for number in range(100))
        assert found("paths", tools, paths=["big"]) == [f"t{number:03}" for number in range(20)]


QUERIES = st.text(alphabet="abciousel_ |*()[]?.", max_size=20)
ARGS = st.one_of(
    QUERIES.map(lambda text: {"pattern": text, "query": text, "paths": [text]}),
    st.dictionaries(st.sampled_from(["pattern", "query", "paths", "x"]), st.none() | QUERIES | st.integers()),
)


@settings(max_examples=300, deadline=None)
@given(by=st.sampled_from(["pattern", "words", "paths"]), args=ARGS, order=st.permutations(TOOLS))
def test_any_search_finds_something_known_or_says_why_not_whatever_the_order(
    by: SearchBy, args: Json, order: list[Tool]
) -> None:
    result = run_search("c", by, json.dumps(args).encode(), order)
    assert len(set(result.tools)) == len(result.tools) <= 20
    assert set(result.tools) <= {tool.name for tool in TOOLS}
    assert not result.tools or not result.error
    assert result == run_search("c", by, json.dumps(args).encode(), TOOLS)


class TestDeclaration:
    @pytest.mark.parametrize(
        ("by", "properties", "required"),
        [
            ("pattern", ["pattern"], ["pattern"]),
            ("words", ["query"], ["query"]),
            ("paths", ["paths", "query"], []),
        ],
    )
    def test_the_model_is_told_what_there_is(
        self, by: SearchBy, properties: list[str], required: list[str]
    ) -> None:
        declared = declare_search("seek", by, TOOLS)
        assert declared.name == "seek"
        assert declared.description.startswith("6 more functions exist than are declared here.")
        assert "mcp__github__{create_issue, list_issues, mergePullRequest}" in declared.description
        schema = json.loads(declared.schema)
        assert (list(schema["properties"]), schema["required"]) == (properties, required)

    def test_the_order_of_the_tools_changes_nothing(self) -> None:
        assert declare_search("s", "words", TOOLS) == declare_search("s", "words", TOOLS[::-1])

    def test_names_by_their_groups(self) -> None:
        names = ["a", "mcp__x__one", "mcp__x__two", "ns.three", "z"]
        assert list_names(names) == "- a, z\n- mcp__x__{one, two}\n- ns.{three}"

    def test_too_many_names_are_only_counted(self) -> None:
        names = sorted(f"mcp__server{number % 7}__{'x' * 40}_{number}" for number in range(1_000))
        listed = list_names(["alone", *names])
        assert listed.splitlines()[:2] == ["- 1 functions", "- mcp__server0__{143 functions}"]
        assert len(listed) < 6_000

    def test_even_groups_may_be_too_many(self) -> None:
        listed = list_names([f"mcp__{'x' * 60}{number}__a" for number in range(1_000)])
        assert listed.endswith("\n- and more")
        assert len(listed) < 6_100


def request(*tools: Tool, **more: Any) -> Request:
    return Request(model="m", messages=(Message(role="user", parts=(Text(text="q"),)),), tools=tools, **more)


def planned(asked: Request, above: int = 0) -> SearchPlan:
    plan = plan_search(asked, above)
    assert plan is not None
    return plan


SEEN = tool("Read", deferred=False)
SEARCH = ServerTool(kind="tool_search", name="seek", by="pattern")


class TestPlan:
    def test_a_client_that_asks_for_a_search_gets_it(self) -> None:
        plan = planned(request(SEEN, *TOOLS, server_tools=(SEARCH,), found=("getWeather",)))
        (search,) = plan.searches
        assert (search.tool.name, search.by, search.shown) == ("seek", "pattern", True)
        assert plan.deferred == TOOLS
        assert plan.found == ("getWeather",)
        assert plan.choice is None
        assert str(plan.note).startswith("withheld tools: 5 tool(s) wait until the model finds them: mcp__")
        call = ToolCall(id="c", name="seek", args=b'{"pattern":"weather"}')
        assert search.run(call, plan.deferred) == ServerResult(
            call_id="c", kind="tool_search", tools=("getWeather",)
        )

    def test_a_search_that_is_chosen_is_forced(self) -> None:
        forced = ServerTool(kind="tool_search", name="seek", forced=True)
        choice = ToolChoice(parallel=False)
        asked = request(*TOOLS, server_tools=(SEARCH, forced), tool_choice=choice)
        assert planned(asked).choice == ToolChoice(mode="any", names=("seek",), parallel=False)

    @pytest.mark.parametrize(("number", "above"), [(6, 0), (6, 6), (6, 7), (0, 1)])
    def test_without_need_all_are_shown(self, number: int, above: int) -> None:
        assert plan_search(request(*TOOLS[:number]), above) is None

    def test_a_search_for_nothing_is_none(self) -> None:
        assert plan_search(request(SEEN, server_tools=(SEARCH,)), 0) is None

    @pytest.mark.parametrize(
        ("theirs", "ours", "waiting"),
        [(3, 3, []), (4, 3, ["getWeather"]), (0, 4, ["own3"]), (4, 4, ["getWeather", "own3"])],
    )
    def test_our_own_are_counted_by_themselves(self, theirs: int, ours: int, waiting: list[str]) -> None:
        own = tuple(tool(f"own{number}") for number in range(ours))
        plan = plan_search(request(*TOOLS[:theirs], *own), 3, ours)
        assert [one.name for one in (plan.deferred if plan else ())] == waiting

    def test_of_our_own_with_a_name_of_the_clients_none_waits(self) -> None:
        """It is declared under another."""
        assert plan_search(request(*TOOLS[:1], tool("own"), TOOLS[0]), 1, 2) is None

    def test_too_many_are_searched_behind_the_clients_back(self) -> None:
        plan = planned(request(SEEN, *TOOLS), 2)
        (search,) = plan.searches
        assert (search.tool.name, search.by, search.shown) == (GATEWAY_SEARCH, "words", False)
        assert plan.deferred == TOOLS[1:]

    def test_a_name_that_is_declared_twice_is_its_first_tools(self) -> None:
        again = tool("getWeather", "another", deferred=False)
        asked = request(SEEN, WEATHER, again, server_tools=(SEARCH,))
        assert planned(asked).deferred == (WEATHER,)
        assert planned(request(SEEN, again, WEATHER), 1).deferred == (again,)

    def test_the_same_tools_are_read_once(self) -> None:
        asked = request(*TOOLS, server_tools=(SEARCH,))
        assert planned(asked).searches[0] is planned(asked).searches[0]
