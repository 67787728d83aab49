"""One call for which Google ran its own tools: what the client gets, what is remembered, what goes back."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from dragoman.dialects import CLIENTS, anthropic
from dragoman.dialects.base import Target
from dragoman.ir import unseal
from dragoman.translation.exchange import Exchange, TranslationOptions
from tests.unit.dialects.anthropic.builders import assistant, body, tool, user
from tests.unit.dialects.anthropic.stream_checks import Json, assembled
from tests.unit.dialects.gemini.builders import chunk, sse

TARGET = Target(model="gemini-3.8-flash")
SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
CALL = {
    "toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "a", "args": {"queries": ["q"]}},
    "thoughtSignature": "s",
}
ANSWER = {
    "toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "id": "a", "response": {}},
    "thoughtSignature": "t",
}


def ending() -> Json:
    last = chunk({"text": "", "thoughtSignature": "u"}, finish="STOP", usage={"promptTokenCount": 3})
    last["candidates"][0]["groundingMetadata"] = {
        "webSearchQueries": ["q"],
        "groundingChunks": [{"web": {"uri": "https://a.org", "title": "a.org"}}],
        "groundingSupports": [
            {"segment": {"startIndex": 3, "endIndex": 8, "text": "is so"}, "groundingChunkIndices": [0]}
        ],
    }
    return last


SEARCHED = (chunk(CALL, ANSWER), chunk({"text": "It is"}), chunk({"text": " so."}), ending())


def ready(*messages: Json, options: TranslationOptions | None = None, **fields: Any) -> Exchange:
    numbers = itertools.count()
    exchange = Exchange(
        anthropic, new_id=lambda: f"{next(numbers):016d}", options=options or TranslationOptions()
    )
    exchange.decode(body(*(messages or (user("q"),)), **{"tools": [SEARCH], **fields}))
    exchange.encode(TARGET)
    return exchange


def answered(exchange: Exchange, *chunks: Json) -> Json:
    data = exchange.open() + exchange.receive(sse(*chunks)) + exchange.finish()
    return assembled(data) if exchange.request.stream else dict(json.loads(data))


@pytest.mark.parametrize("stream", [True, False])
def test_k1_a_search_is_shown_with_what_it_found_before_the_text(stream: bool) -> None:
    message = answered(ready(stream=stream), *SEARCHED)
    assert [block["type"] for block in message["content"]] == [
        "server_tool_use",
        "web_search_tool_result",
        "text",
        "text",
        "text",
    ]
    assert message["content"][0]["input"] == {"query": "q"}
    assert [block.get("citations") is not None for block in message["content"][2:]] == [False, True, False]
    assert message["usage"]["server_tool_use"]["web_search_requests"] == 1
    assert message["stop_reason"] == "end_turn"


def test_no_text_is_sent_before_its_sources_are_known() -> None:
    exchange = ready(stream=True)
    exchange.open()
    shown = exchange.receive(sse(*SEARCHED[:3]))
    assert b"server_tool_use" in shown
    assert b"It is" not in shown
    assert b"It " in exchange.receive(sse(SEARCHED[3])) + exchange.finish()


def history(message: Json) -> list[Json]:
    return [user("q"), assistant(*message["content"]), user("more")]


def test_k3_what_google_ran_goes_back_as_it_came_without_any_memory() -> None:
    message = answered(ready(), *SEARCHED)
    again = ready(*history(message))
    turn = json.loads(again.encode(TARGET))["contents"][1]["parts"]
    assert turn[:2] == [CALL, ANSWER]
    assert turn[2] == {"text": "It is so."}


def test_k3_a_client_that_keeps_no_opaque_words_has_the_store() -> None:
    first = ready()
    message = answered(first, *SEARCHED)
    for hit in message["content"][1]["content"]:
        hit["encrypted_content"] = ""
    again = ready(*history(message))
    words = dict(first.store_entries)
    recalled = {
        key: sealed for key in again.missing_keys if (sealed := unseal(words.get(key, ""))) is not None
    }
    turn = json.loads(again.encode(TARGET, recalled))["contents"][1]["parts"]
    assert turn == [CALL, ANSWER, {"text": "It is so."}, {"text": "", "thoughtSignature": "u"}]
    forgotten = json.loads(again.encode(TARGET))["contents"][1]["parts"]
    assert forgotten == [{"text": "[web_search: q]\na.org <https://a.org>\n"}, {"text": "It is so."}]


def test_a_server_tool_that_the_dialect_cannot_express_is_noted() -> None:
    exchange = Exchange(CLIENTS["openai_chat"], new_id=lambda: "0" * 16)
    asked = {"model": "m", "messages": [user("q")], "tools": [{"type": "web_search"}]}
    exchange.decode(json.dumps(asked).encode())
    exchange.encode(TARGET)
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    exchange.receive(sse(chunk(code, {"codeExecutionResult": {"outcome": "OUTCOME_OK"}}), *SEARCHED))
    whole = json.loads(exchange.finish())
    assert whole["choices"][0]["message"]["annotations"][0]["url_citation"]["url"] == "https://a.org"
    assert [note.why for note in exchange.notes if note.where == "answer"] == [
        "code_execution was used; this dialect has no words for that"
    ]


def test_a_search_that_google_reports_only_at_the_end_is_not_stored() -> None:
    exchange = ready()
    exchange.encode(Target(model="gemini-2.5-flash"))
    assert answered(exchange, *SEARCHED[1:])["content"][0]["type"] == "server_tool_use"
    assert all(key.startswith("text-") for key, _ in exchange.store_entries)


def test_server_tools_can_be_switched_off() -> None:
    off = TranslationOptions(enable_tool_calling=False)
    exchange = ready(options=off, tools=[SEARCH, tool("f")])
    sent = json.loads(exchange.encode(TARGET))
    assert "tools" not in sent
    assert [note.where for note in exchange.notes] == ["tools"]
    assert "tools" not in json.loads(ready(options=off).encode(TARGET))
