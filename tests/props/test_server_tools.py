"""Google's own tools behind every dialect: any order of what it tells, many turns, all models and back ends."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects import CLIENTS, gemini
from dragoman.dialects.base import Target
from dragoman.ir import (
    Citation,
    CitedText,
    Event,
    Failed,
    Native,
    Request,
    ServerCall,
    ServerResult,
    ServerTool,
    Text,
    TextDelta,
    Tool,
    collect,
    replay,
)
from dragoman.ir.grammar import check_events
from dragoman.translation.exchange import Exchange
from tests.props.hypothesis_settings import examples
from tests.props.sdk_accumulators import FOLDS
from tests.unit.dialects.anthropic.scripted_client import Player, answer_calls
from tests.unit.dialects.anthropic.stream_checks import streamed as anthropic_streamed
from tests.unit.dialects.anthropic.stream_checks import whole as anthropic_whole
from tests.unit.dialects.gemini.builders import Json, chunk, sse, user
from tests.unit.dialects.openai_chat.stream_checks import streamed as chat_streamed
from tests.unit.dialects.openai_chat.stream_checks import whole as chat_whole
from tests.unit.dialects.openai_responses.stream_checks import streamed as responses_streamed
from tests.unit.dialects.openai_responses.stream_checks import whole as responses_whole
from tests.unit.dialects.scripted_client import MODELS, ask

WORDS = st.sampled_from(["one ", "zwei. ", "dreißig🙂", "\n", " ", "four!"])
SOURCES = [{"web": {"uri": f"https://{name}.org", "title": f"{name}.org"}} for name in "abc"]


def _ran(number: int, kind: str) -> list[Json]:
    named = {"toolType": kind, "id": f"id{number}"}
    args = {"queries": ["q"]} if kind == "GOOGLE_SEARCH_WEB" else {"urls": ["https://a.org", "https://d.org"]}
    return [
        {"toolCall": {**named, "args": args}, "thoughtSignature": "c"},
        {"toolResponse": {**named, "response": {}}, "thoughtSignature": "r"},
    ]


_CODE = {"executableCode": {"language": "PYTHON", "code": "1"}}
_PRINTED = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}


@st.composite
def answers(draw: st.DrawFn) -> list[Json]:
    """Chunks in which anything may stand beside anything, with sources for some of the text."""
    numbers = itertools.count()
    parts: list[Json] = []
    for _ in range(draw(st.integers(0, 7))):
        kind = draw(
            st.sampled_from(["text", "text", "thought", "search", "fetch", "code", "half", "call", "odd"])
        )
        match kind:
            case "text":
                parts.append({"text": draw(WORDS)})
            case "thought":
                parts.append({"text": "hm", "thought": True})
            case "search":
                parts += _ran(next(numbers), "GOOGLE_SEARCH_WEB")
            case "fetch":
                parts += _ran(next(numbers), "URL_CONTEXT")
            case "code":
                parts += [_CODE, *([_PRINTED] * draw(st.integers(0, 2)))]
            case "half":
                parts.append(draw(st.sampled_from(_ran(next(numbers), "GOOGLE_SEARCH_WEB"))))
            case "call":
                parts.append({"functionCall": {"name": "read", "id": "f", "args": {}}})
            case "odd":
                parts.append({"toolCall": {"toolType": "GOOGLE_MAPS"}})
    if draw(st.booleans()):
        parts = draw(st.permutations(parts))
    chunks = [chunk(part) for part in parts] if draw(st.booleans()) else [chunk(*parts)]
    last = chunk(finish=draw(st.sampled_from(["STOP", "MAX_TOKENS"])), usage={"promptTokenCount": 1})
    chunks.append(last)
    text = "".join(part.get("text", "") for part in parts if not part.get("thought"))
    for _ in range(draw(st.integers(0, 2))):
        where = draw(st.sampled_from(chunks))["candidates"][0]
        where["groundingMetadata"] = draw(_grounding(text))
        where["urlContextMetadata"] = {"urlMetadata": [{"retrievedUrl": "https://a.org"}]}
    return chunks


@st.composite
def _grounding(draw: st.DrawFn, text: str) -> Json:
    supports: list[Json] = []
    for _ in range(draw(st.integers(0, 4))):
        start, end = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        segment: Json = {
            "startIndex": len(text[:start].encode()),
            "endIndex": len(text[:end].encode()),
            **({"text": text[start:end]} if draw(st.booleans()) else {}),
        }
        supports.append({"segment": segment, "groundingChunkIndices": draw(st.lists(st.integers(0, 4)))})
    return {
        "groundingChunks": SOURCES,
        "groundingSupports": supports,
        **({"webSearchQueries": ["q"]} if draw(st.booleans()) else {}),
    }


KINDS: list[Any] = ["web_search", "web_fetch", "code_execution"]


def _read(data: bytes, kinds: list[Any], target: Target, size: int) -> list[Event]:
    numbers = itertools.count()
    request = Request(
        model="m",
        messages=(user("q"),),
        tools=() if target.backend == "vertex" or "2.5" in target.model else (Tool(name="read"),),
        server_tools=tuple(ServerTool(kind=kind, blocked_domains=("b.org",)) for kind in kinds),
    )
    reader = gemini.encode_request(request, target, lambda: f"toolu_{next(numbers):016d}").reader()
    events: list[Event] = []
    for start in range(0, len(data), size):
        events += reader.feed(data[start : start + size])
    return events + reader.close()


TARGETS = st.sampled_from(
    [
        Target(model="gemini-3.8-flash"),
        Target(model="gemini-2.5-flash"),
        Target(model="gemini-3.8-flash", backend="vertex"),
    ]
)


@examples(300)
@given(
    chunks=answers(),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, unique=True),
    target=TARGETS,
    size=st.integers(1, 5000),
)
def test_whatever_google_tells_in_whatever_order(
    chunks: list[Json], kinds: list[Any], target: Target, size: int
) -> None:
    """The grammar holds, no word is lost or moved, every call has its result, slicing changes nothing."""
    data = sse(*chunks)
    events = _read(data, kinds, target, len(data))
    assert check_events(events) is None
    assert not isinstance(events[-1], Failed)
    said = "".join(event.text for event in events if isinstance(event, TextDelta | CitedText))
    parts = [part for item in chunks for part in item["candidates"][0]["content"]["parts"]]
    assert said == "".join(part["text"] for part in parts if "text" in part and not part.get("thought"))
    cited = [source.url for event in events if isinstance(event, CitedText) for source in event.sources]
    assert "https://b.org" not in cited or kinds == ["code_execution"]
    assert _renumbered(_read(data, kinds, target, size)) == _renumbered(events)
    response = collect(events)
    assert collect(list(replay(response))) == response
    _check_citations(response.parts)
    for streamed, whole in (
        (anthropic_streamed, anthropic_whole),
        (chat_streamed, chat_whole),
        (responses_streamed, responses_whole),
    ):
        shown = [
            event for event in events if not isinstance(event, Native)
        ]  # which no client but Gemini's gets
        assert _message(streamed(shown)) == _message(whole(shown))


def _renumbered(events: list[Event]) -> str:
    """With the ids in the order of their appearance: which number an id has is nobody's business."""
    words = repr(events)
    for number, identity in enumerate(dict.fromkeys(re.findall(r"toolu_\d{16}", words))):
        words = words.replace(identity, f"#{number}")
    return words


def _check_citations(parts: tuple[Any, ...]) -> None:
    for part in parts:
        citations: tuple[Citation, ...] = part.citations if isinstance(part, Text) else ()
        ends = [0, *(edge for citation in citations for edge in (citation.start, citation.end))]
        assert ends == sorted(ends)
        assert not citations or ends[-1] <= len(part.text)


def _message(body: Json) -> Any:
    """What was said, without what only a stream or only a whole answer knows."""
    return body.get("content") or body.get("output") or body.get("choices")


TOOLS: list[Json] = [
    {"name": "Read", "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
]
SERVER_TOOLS: list[Json] = [
    {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
    {"type": "web_fetch_20260318", "name": "web_fetch"},
    {"type": "code_execution_20260521", "name": "code_execution"},
]
PLANS = (
    "search the web, then say It is known. Über alles!",
    'search the news, then use Read with {"n": 1} then say done',
    "look up https://a.org and https://no.invalid online, then say Read it.",
    "compute 6 * 7 online",
    'use Read with {"n": 1} then say hello',
    "just say hello",
)


@examples(60)
@given(
    plans=st.lists(st.sampled_from(PLANS), min_size=1, max_size=3),
    models=st.lists(st.sampled_from(MODELS), min_size=1, max_size=2),
    backend=st.sampled_from(["gemini", "vertex"]),
    served=st.lists(st.sampled_from(SERVER_TOOLS), max_size=3, unique_by=str),
    functions=st.booleans(),
    keeps=st.tuples(st.booleans(), st.booleans()),
    stream=st.booleans(),
)
def test_k2_any_conversation_is_accepted_by_every_model_and_back_end(
    plans: list[str],
    models: list[str],
    backend: str,
    served: list[Json],
    functions: bool,
    keeps: tuple[bool, bool],
    stream: bool,
) -> None:
    """With functions and without, in the next step and in the next turn, whatever the client and the store keep."""
    models = [model for model in models if backend == "gemini" or "latest" not in model] or [
        "gemini-3.8-flash"
    ]
    player = Player(
        keeps_own=keeps[0],
        keeps_store=keeps[1],
        stream=stream,
        backend=backend,
        tools=[*(TOOLS if functions else []), *served],
        thinking={"type": "adaptive"},
    )
    turn = itertools.cycle(models)
    for plan in plans:
        message = player.turn(next(turn), plan)
        while results := answer_calls(message):
            message = player.turn(next(turn), results)
        assert message["stop_reason"] == "end_turn"


SEARCHING: dict[str, Json] = {
    "anthropic": {
        "max_tokens": 9000,
        "messages": [{"role": "user", "content": "Q"}],
        "tools": SERVER_TOOLS[:1],
    },
    "openai_chat": {
        "messages": [{"role": "user", "content": "Q"}],
        "web_search_options": {},
        "stream_options": {"include_usage": True},
    },
    "openai_responses": {"input": "Q", "tools": [{"type": "web_search"}]},
}


def _cited(tongue: str, body: Json) -> list[tuple[str, str]]:
    """The words of an answer that rest on something, each with where it is from."""
    match tongue:
        case "anthropic":
            return [
                (block["text"], entry["url"])
                for block in body["content"]
                for entry in block.get("citations") or ()
            ]
        case "openai_chat":
            message = body["choices"][0]["message"]
            entries = [entry["url_citation"] for entry in message["annotations"]]
            return [
                (message["content"][entry["start_index"] : entry["end_index"]], entry["url"])
                for entry in entries
            ]
    (part,) = [part for item in body["output"] if item["type"] == "message" for part in item["content"]]
    return [
        (part["text"][entry["start_index"] : entry["end_index"]], entry["url"])
        for entry in part["annotations"]
    ]


@pytest.mark.parametrize("tongue", SEARCHING)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("model", "backend"),
    [("gemini-2.5-flash", "gemini"), ("gemini-3.8-flash", "gemini"), ("gemini-3.8-flash", "vertex")],
)
def test_k1_what_the_emulator_finds_is_cited_to_every_client(
    tongue: str, stream: bool, model: str, backend: str
) -> None:
    tokens = (f"{number:016d}" for number in itertools.count())
    exchange = Exchange(CLIENTS[tongue], new_id=lambda: next(tokens), keep_events=True)
    words = "say Es ist grün. Ja! Ende"
    asked = json.dumps({"model": "m", "stream": stream, **SEARCHING[tongue]}).replace(
        '"Q"', json.dumps(words)
    )
    exchange.decode(asked.encode())
    upstream = exchange.encode(Target(model=model, backend=backend))
    status, answer = ask(model, upstream, stream=stream, backend=backend)
    assert status == 200, answer
    out = exchange.open() + exchange.receive(answer) + exchange.finish()
    assert FOLDS[tongue](out, stream=stream).text == "Es ist grün. Ja! Ende"
    cited = _cited(tongue, json.loads(exchange.whole_body()))
    assert [words for words, _ in cited] == ["Es ist grün. ", "Ja! ", "Ende", "Ende"]
    assert len({url for _, url in cited}) == 2
    events = exchange.client_events
    assert [type(event) for event in events if isinstance(event, ServerCall | ServerResult)] == [
        ServerCall,
        ServerResult,
    ]
