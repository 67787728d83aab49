"""The vendors' SDKs read searches, pages, programs, tools of servers and citations, whole and streamed."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message
from anthropic.types.beta import BetaMessage
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from dragoman.dialects import anthropic, openai_chat, openai_responses
from dragoman.ir import Event, Usage, collect
from tests.oracle.test_anthropic_sdk import BETA_STREAM_EVENT, STREAM_EVENT, accumulated, plain
from tests.unit.dialects.anthropic import stream_checks as messages
from tests.unit.dialects.anthropic import test_server_tools as anthropic_tables
from tests.unit.dialects.openai_chat import stream_checks as chat
from tests.unit.dialects.openai_responses import stream_checks as responses
from tests.unit.dialects.openai_responses import test_server_tools as responses_tables
from tests.unit.dialects.stream_checks import whole_stream

USAGE = Usage(input_tokens=9, output_tokens=3, searches=2, fetches=1)
CASES: dict[str, list[Event]] = {
    **{name: [*events, *anthropic_tables.CITED] for name, (events, _) in anthropic_tables.SHAPES.items()},
    **{f"{name}, again": events for name, (events, _) in responses_tables.SHAPES.items()},
}


@pytest.mark.parametrize("name", CASES)
def test_anthropics_sdk_reads_it_typed(name: str) -> None:
    events = whole_stream(CASES[name], usage=USAGE)
    body = anthropic.encode_response(collect(events), messages.answer())
    beta = BetaMessage.model_validate_json(body, strict=True)
    assert beta.usage.server_tool_use is not None
    assert beta.usage.server_tool_use.web_search_requests == 2
    assert not any(block.model_extra for block in beta.content)
    for event in messages.parse(messages.stream_bytes(events)):
        assert not BETA_STREAM_EVENT.validate_python(event["data"]).model_extra
    if any(block.type.startswith("mcp") for block in beta.content):  # beta alone knows these
        return
    strict = Message.model_validate_json(body, strict=True)
    assert plain(accumulated(events)) == plain(strict)
    for event in messages.parse(messages.stream_bytes(events)):
        STREAM_EVENT.validate_python(event["data"])


def test_anthropics_sdk_sees_what_was_found_and_cited() -> None:
    events = whole_stream(CASES["a search"], usage=USAGE)
    _, found, _, cited, *_ = accumulated(events).content
    assert found.type == "web_search_tool_result"
    assert isinstance(found.content, list)
    assert [hit.url for hit in found.content] == ["https://a.org", "https://b.org"]
    assert cited.type == "text"
    assert [(citation.type, getattr(citation, "url", "")) for citation in cited.citations or ()] == [
        ("web_search_result_location", "https://a.org"),
        ("web_search_result_location", "https://b.org"),
    ]


@pytest.mark.parametrize("name", CASES)
def test_openais_sdk_reads_it_typed(name: str) -> None:
    events = whole_stream(CASES[name], usage=USAGE)
    given = responses.answer(includes=("web_search_call.action.sources", "code_interpreter_call.outputs"))
    body = openai_responses.encode_response(collect(events), given)
    strict = Response.model_validate_json(body, strict=True)
    completed, _ = responses.folded(responses.stream_bytes(events, given))
    assert completed is not None
    assert [item.type for item in completed.output] == [item.type for item in strict.output]
    for item in strict.output:
        assert not item.model_extra, item


def test_openais_sdk_sees_what_was_found_and_cited() -> None:
    events = whole_stream(CASES["a search"], usage=USAGE)
    given = responses.answer(includes=("web_search_call.action.sources",))
    completed, _ = responses.folded(responses.stream_bytes(events, given))
    assert completed is not None
    found: Any = next(item for item in completed.output if item.type == "web_search_call")
    assert found.action.queries == ["q", "r"]
    assert [source.url for source in found.action.sources] == ["https://a.org", "https://b.org"]
    message: Any = next(item for item in completed.output if item.type == "message")
    (part,) = message.content
    assert [(note.type, part.text[note.start_index : note.end_index]) for note in part.annotations] == [
        ("url_citation", "a"),
        ("url_citation", "a"),
        ("url_citation", "b"),
    ]


@pytest.mark.parametrize("name", CASES)
def test_openais_sdk_reads_a_completion(name: str) -> None:
    events = whole_stream(CASES[name], usage=USAGE)
    body = openai_chat.encode_response(collect(events), chat.answer())
    completion = ChatCompletion.model_validate_json(body, strict=True)
    notes = completion.choices[0].message.annotations or []
    streamed = ChatCompletion.model_validate(chat.folded(chat.stream_bytes(events)))
    assert streamed.choices[0].message.annotations == completion.choices[0].message.annotations
    assert len(notes) == (3 if "again" not in name else 0)
