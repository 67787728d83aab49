"""Searches, pages and programs over real HTTP with the vendor's SDK: run by Google, or by a call of their own."""

from __future__ import annotations

from typing import Any, cast

import pytest
from anthropic import Anthropic
from anthropic.types import Message
from openai import OpenAI
from openai.types.chat.chat_completion_message import AnnotationURLCitation

from tests.e2e.directives import plan, together, use
from tests.e2e.fake_google import Google
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.e2e.sdk_rounds import MODES, Mode, text_of

Json = dict[str, Any]

OLD, NEW = "gemini-2.5-flash", "gemini-3.8-flash"
ADD: Json = {
    "name": "add",
    "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
}
SEARCH: Json = {"type": "web_search_20250305", "name": "web_search"}
FETCH: Json = {"type": "web_fetch_20250910", "name": "web_fetch", "blocked_domains": ["b.org"]}
CODE: Json = {"type": "code_execution_20250522", "name": "code_execution"}


class Talk:
    """A conversation with one model and these tools, as the SDK keeps it."""

    def __init__(self, client: Anthropic, model: str, *tools: Json, **settings: Any) -> None:
        self._client = client
        self._settings = {"model": model, "max_tokens": 16_000, "tools": list(tools), **settings}
        self._messages: list[Any] = []

    def say(self, content: Any, mode: Mode = "whole") -> Message:
        self._messages.append({"role": "user", "content": content})
        asked = cast("Any", {**self._settings, "messages": self._messages})
        if mode == "whole":
            answer = self._client.messages.create(**asked)
        else:
            with self._client.messages.stream(**asked) as stream:
                answer = stream.get_final_message()
        self._messages.append({"role": "assistant", "content": answer.content})
        return cast("Message", answer)

    def answer(self, message: Message, *results: str) -> Message:
        calls = [block for block in message.content if block.type == "tool_use"]
        return self.say(
            [
                {"type": "tool_result", "tool_use_id": call.id, "content": result}
                for call, result in zip(calls, results, strict=True)
            ]
        )


def kinds(message: Message) -> list[str]:
    return [block.type for block in message.content]


def tools_of(google: Google) -> list[list[str]]:
    """The kinds of tools in each request Google got."""
    return [[kind for tool in request.get("tools", ()) for kind in tool] for request in google.requests()]


@pytest.mark.parametrize("model", [OLD, NEW])
@pytest.mark.parametrize("mode", MODES)
def test_k1_a_search_alone_is_shown_with_sources_citations_and_count(
    client: Anthropic, google: Google, model: str, mode: Mode
) -> None:
    talk = Talk(client, model, SEARCH)
    answer = talk.say("say Es ist grün. Ja!", mode)
    assert kinds(answer)[:2] == ["server_tool_use", "web_search_tool_result"]
    assert text_of(answer) == "Es ist grün. Ja!"
    found: Any = answer.content[1]
    assert [hit.title for hit in found.content] == ["example.com", "example.org"]
    cited = [block for block in answer.content if block.type == "text" and block.citations]
    assert [block.text for block in cited] == ["Es ist grün. ", "Ja!"]
    assert answer.usage.server_tool_use is not None
    assert answer.usage.server_tool_use.web_search_requests == 1
    assert text_of(talk.say("say And more.", mode)) == "And more."
    assert tools_of(google) == [["googleSearch"], ["googleSearch"]]


def test_k2_gemini_3_searches_beside_functions(client: Anthropic, google: Google) -> None:
    talk = Talk(client, NEW, ADD, SEARCH, CODE)
    first = talk.say(f"search the web, then {use('add', {'a': 1})}")
    assert kinds(first) == ["server_tool_use", "web_search_tool_result", "tool_use"]
    assert text_of(talk.answer(first, "2")) == "add returned: 2"
    assert text_of(talk.say("say Goodbye.")) == "Goodbye."
    parts = [next(iter(part)) for part in google.requests()[-1]["contents"][1]["parts"]]
    assert parts == ["toolCall", "toolResponse", "functionCall"]
    assert google.sentinels() == 0


@pytest.mark.parametrize("mode", MODES)
def test_k2_where_google_refuses_the_mix_a_search_is_a_call_of_its_own(
    client: Anthropic, google: Google, mode: Mode
) -> None:
    talk = Talk(client, OLD, ADD, {**SEARCH, "max_uses": 1})
    steps = plan(
        use("web_search", {"query": "dragoman"}), use("web_search", {"query": "more"}), say="I know it."
    )
    answer = talk.say(steps, mode)
    assert kinds(answer) == ["server_tool_use", "web_search_tool_result"] * 2 + ["text"]
    assert text_of(answer) == "I know it."
    first, found, _, refused, _ = cast("Any", answer.content)
    assert first.input == {"query": "dragoman"}
    assert [hit.title for hit in found.content] == ["example.com", "example.org"]
    assert refused.content.error_code == "max_uses_exceeded"
    assert answer.usage.server_tool_use is not None
    assert answer.usage.server_tool_use.web_search_requests == 1
    assert tools_of(google) == [
        ["functionDeclarations"],
        ["googleSearch"],
        ["functionDeclarations"],
        ["functionDeclarations"],
    ]
    told = google.requests()[2]["contents"][-1]["parts"][0]["functionResponse"]["response"]["output"]
    assert "Sources:\n- example.com: https://vertexaisearch" in told


@pytest.mark.parametrize("mode", MODES)
def test_k3_sources_of_a_search_aside_reach_openais_clients(
    gateway: Gateway, google: Google, mode: Mode
) -> None:
    openai = OpenAI(base_url=f"{gateway.url}/v1", api_key=GATEWAY_KEY, max_retries=0)
    steps = plan(use("web_search", {"query": "dragoman"}), say="I know it.")
    add: Any = {"name": "add", "parameters": ADD["input_schema"]}
    nested: Any = [{"type": "function", "function": add}]
    flat: Any = [{"type": "function", **add}, {"type": "web_search"}]
    with openai:
        if mode == "whole":
            chat = openai.chat.completions.create(
                model=OLD, messages=[{"role": "user", "content": steps}], tools=nested, web_search_options={}
            )
            noted: Any = [one.url_citation for one in chat.choices[0].message.annotations or ()]
            items = openai.responses.create(model=OLD, input=steps, tools=flat).output
        else:
            chunks: Any = openai.chat.completions.create(
                model=OLD,
                messages=[{"role": "user", "content": steps}],
                tools=nested,
                web_search_options={},
                stream=True,
            )
            deltas = [choice.delta.model_dump() for chunk in chunks for choice in chunk.choices]
            told = [note for delta in deltas for note in delta.get("annotations") or ()]
            noted = [AnnotationURLCitation(**one["url_citation"]) for one in told]
            with openai.responses.stream(model=OLD, input=steps, tools=flat) as stream:
                items = cast("Any", stream.get_final_response().output)
    end = len("I know it.")
    assert [(one.title, one.start_index, one.end_index) for one in noted] == [
        ("example.com", end, end),
        ("example.org", end, end),
    ]
    assert [item.type for item in items] == ["web_search_call", "message"]
    cited = cast("Any", items[-1]).content[0].annotations
    assert [(one.title, one.end_index) for one in cited] == [("example.com", end), ("example.org", end)]


def test_what_was_searched_aside_stays_in_the_history(client: Anthropic, google: Google) -> None:
    talk = Talk(client, OLD, ADD, SEARCH)
    talk.say(plan(use("web_search", {"query": "dragoman"}), say="I know it."))
    assert text_of(talk.say("say And more.")) == "And more."
    contents = google.requests()[-1]["contents"]
    kinds = [next(iter(part)) for content in contents for part in content["parts"]]
    assert kinds == ["text", "functionCall", "functionResponse", "text", "text"]


def test_a_search_of_ours_and_a_call_of_the_clients_in_one_step(client: Anthropic, google: Google) -> None:
    talk = Talk(client, OLD, ADD, SEARCH)
    first = talk.say(together(use("web_search", {"query": "dragoman"}), use("add", {"a": 1})))
    assert sorted(kinds(first)) == ["server_tool_use", "tool_use", "web_search_tool_result"]
    last = text_of(talk.answer(first, "2"))
    assert "web_search returned:" in last
    assert "add returned: 2" in last


def test_pages_and_programs_aside(client: Anthropic, google: Google) -> None:
    talk = Talk(client, OLD, ADD, FETCH, CODE)
    steps = plan(
        use("web_fetch", {"url": "https://a.org/x"}),
        use("web_fetch", {"url": "https://www.b.org/x"}),
        use("code_execution", {"code": "6 * 7"}),
        say="All done.",
    )
    answer = talk.say(steps)
    _, page, _, refused, program, printed, last = cast("Any", answer.content)
    assert page.content.url == "https://a.org/x"
    assert refused.content.error_code == "url_not_allowed"
    assert program.input == {"code": "6 * 7"}
    assert printed.content.stdout == "42\n"
    assert last.text == "All done."
    assert answer.usage.server_tool_use is not None
    assert answer.usage.server_tool_use.web_fetch_requests == 1
    assert [kinds for kinds in tools_of(google) if "functionDeclarations" not in kinds] == [
        ["urlContext"],
        ["codeExecution"],
    ]


def test_a_forced_search_is_made_aside_too(client: Anthropic, google: Google) -> None:
    talk = Talk(client, OLD, ADD, SEARCH, tool_choice={"type": "tool", "name": "web_search"})
    answer = talk.say("the weather in Cyrene")
    assert kinds(answer)[:2] == ["server_tool_use", "web_search_tool_result"]
    calling = google.requests()[0]["toolConfig"]["functionCallingConfig"]
    assert calling == {"mode": "ANY", "allowedFunctionNames": ["web_search"]}
