"""Answers for which Google ran its own tools: what clients are told, in which order, from the streams it sends.

The streams are put together after recordings of others: 2.5 says nothing of its searches but at the end, Gemini 3
tells them as they are made, and the sources of either come last.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from dragoman.dialects import gemini
from dragoman.dialects.base import Target
from dragoman.dialects.gemini import server_tools_stream
from dragoman.ir import (
    AFTER_TEXT,
    CitedText,
    Event,
    Failed,
    Finished,
    Native,
    Request,
    ServerCall,
    ServerResult,
    ServerTool,
    Signature,
    SignatureDelta,
    Source,
    Started,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
    collect,
)
from dragoman.ir.grammar import check_events
from dragoman.notes import Note
from tests.unit.dialects.gemini.builders import NEW, OLD, READ, Json, array, calling, chunk, sse, user

SEARCH = ServerTool(kind="web_search", name="web_search")
FETCH = ServerTool(kind="web_fetch", name="fetch_it")
CODE = ServerTool(kind="code_execution", name="code_execution")
REDIRECT = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/"
NIPPON = Source(url=f"{REDIRECT}1", title="nippon.com")
WIKI = Source(url=f"{REDIRECT}2", title="wikipedia.org")
STARTED = Started(NEW, "r1")
END = Finished(reason="end", raw="STOP")
FIRST, SECOND, THIRD = (f"toolu_{number:016d}" for number in (1, 2, 3))


def web(source: Source) -> Json:
    return {"web": {"uri": source.url, "title": source.title}}


def support(text: str, *indices: int, start: int = 0) -> Json:
    segment = {"startIndex": start, "endIndex": start + len(text.encode()), "text": text}
    return {
        "segment": {key: value for key, value in segment.items() if value},
        "groundingChunkIndices": indices,
    }


def beside(whole: Json, **fields: Any) -> Json:
    """The same chunk with something beside the content of its candidate."""
    (candidate,) = whole["candidates"]
    return {**whole, "candidates": [{**candidate, **fields}]}


def ran(kind: str, identity: str, **args: Any) -> Json:
    tool = {"toolType": kind, "args": args, "id": identity}
    return {"toolCall": tool, "thoughtSignature": f"call-{identity}"}


def answered(kind: str, identity: str, **response: Any) -> Json:
    tool = {"toolType": kind, "response": response, "id": identity}
    return {"toolResponse": tool, "thoughtSignature": f"answer-{identity}"}


def own(*parts: Json) -> Signature:
    words = ",".join(json.dumps(part, separators=(",", ":")) for part in parts)
    return Signature(f"[{words}]", "gemini-g3")


def reader(*tools: ServerTool, to: str = NEW, backend: str = "gemini") -> Any:
    numbers = itertools.count(1)
    request = Request(model="any", messages=(user("q"),), server_tools=tools or (SEARCH,))
    if to == NEW and backend == "gemini":
        request = Request(model="any", messages=(user("q"),), tools=(READ,), server_tools=tools or (SEARCH,))
    target = Target(model=to, backend=backend)
    return gemini.encode_request(request, target, lambda: f"toolu_{next(numbers):016d}").reader()


def heard(data: bytes, *tools: ServerTool, size: int = 0, **options: Any) -> tuple[list[Event], list[Note]]:
    stream = reader(*tools, **options)
    step = size or len(data)
    events: list[Event] = []
    for start in range(0, len(data), step):
        events += stream.feed(data[start : start + step])
    events += stream.close()
    assert check_events(events) is None
    return events, list(stream.notes)


SEARCHED = [
    chunk(
        ran("GOOGLE_SEARCH_WEB", "a", queries=["Tokyo"]),
        ran("GOOGLE_SEARCH_WEB", "b", queries=["Delhi", "d"]),
    ),
    chunk(answered("GOOGLE_SEARCH_WEB", "a", search_suggestions="<i>ø</i>")),
    chunk(answered("GOOGLE_SEARCH_WEB", "b")),
    chunk({"text": "Tokyo has 37 million."}),
    chunk({"text": " Delhi has 33 million."}),
    beside(
        chunk({"text": "", "thoughtSignature": "s"}, finish="STOP", usage={"promptTokenCount": 3}),
        groundingMetadata={
            "searchEntryPoint": {"renderedContent": "<style/>"},
            "groundingChunks": [web(NIPPON), web(WIKI)],
            "groundingSupports": [
                support("Tokyo has 37 million.", 0),
                support("Delhi has 33 million.", 1, 0, start=22),
            ],
            "webSearchQueries": ["Delhi", "Tokyo", "d"],
        },
    ),
]
SEARCHED_PARTS = [
    ran("GOOGLE_SEARCH_WEB", "a", queries=["Tokyo"]),
    ran("GOOGLE_SEARCH_WEB", "b", queries=["Delhi", "d"]),
    answered("GOOGLE_SEARCH_WEB", "a", search_suggestions="<i>ø</i>"),
    answered("GOOGLE_SEARCH_WEB", "b"),
]
SEARCHED_EVENTS: list[Event] = [
    STARTED,
    ServerCall(
        id=f"{FIRST}-a",
        kind="web_search",
        name="web_search",
        args=b'{"queries":["Tokyo"]}',
        signature=own(*SEARCHED_PARTS),
    ),
    ServerCall(
        id=f"{SECOND}-b",
        kind="web_search",
        name="web_search",
        args=b'{"queries":["Delhi","d"]}',
        signature=own(),
    ),
    Usage(input_tokens=3, searches=3),
    ServerResult(call_id=f"{FIRST}-a", kind="web_search", sources=(NIPPON, WIKI)),
    ServerResult(call_id=f"{SECOND}-b", kind="web_search"),
    CitedText("Tokyo has 37 million. ", (NIPPON,)),
    CitedText("Delhi has 33 million.", (WIKI, NIPPON)),
    SignatureDelta(Signature("s", "gemini-g3"), AFTER_TEXT),
    END,
]


def test_k3_searches_of_gemini_3_are_told_before_the_text_that_rests_on_them() -> None:
    events, notes = heard(sse(*SEARCHED))
    assert events == SEARCHED_EVENTS
    assert notes == []


@pytest.mark.parametrize("size", [1, 7, 100])
def test_in_any_slicing(size: int) -> None:
    assert heard(sse(*SEARCHED), size=size)[0] == SEARCHED_EVENTS


def test_the_calls_leave_at_once_and_the_text_at_the_end() -> None:
    stream = reader()
    first = stream.feed(sse(*SEARCHED[:3]))
    assert [type(event) for event in first] == [Started, ServerCall, ServerCall]
    assert stream.feed(sse(*SEARCHED[3:])) == []
    assert stream.close() == SEARCHED_EVENTS[3:]


def test_text_before_a_search_is_not_held_back() -> None:
    stream = reader()
    assert stream.feed(sse(chunk({"text": "Let me see."})))[1:] == [TextDelta("Let me see.")]
    stream.feed(sse(chunk(ran("GOOGLE_SEARCH_WEB", "a"), answered("GOOGLE_SEARCH_WEB", "a"))))
    assert stream.feed(sse(chunk({"text": "Found."}))) == []
    sources = {"groundingChunks": [web(WIKI)], "groundingSupports": [support("Found.", 0)]}
    rest = stream.feed(sse(beside(chunk(finish="STOP"), groundingMetadata=sources))) + stream.close()
    assert rest[-2:] == [CitedText("Found.", (WIKI,)), END]


def test_where_nothing_was_searched_nothing_is_held_back() -> None:
    data = sse(chunk({"text": "a"}), chunk({"text": "b"}), chunk(finish="STOP"))
    assert heard(data)[0] == [STARTED, TextDelta("a"), TextDelta("b"), END]


GROUNDED_25 = [
    beside(chunk({"text": "Es ist grün."}), groundingMetadata={}),
    beside(
        chunk({"text": " Ja"}, finish="STOP"),
        groundingMetadata={
            "groundingChunks": [web(NIPPON), {}],
            "groundingSupports": [support("Es ist grün", 0), support("Ja", 1, start=14)],
            "webSearchQueries": ["q", "r"],
            "retrievalMetadata": {},
        },
    ),
]


@pytest.mark.parametrize("to", [{"to": OLD}, {"backend": "vertex"}])
def test_k1_a_search_that_is_told_at_the_end_comes_before_the_text_too(to: Any) -> None:
    assert heard(sse(*GROUNDED_25), **to)[0] == [
        STARTED,
        ServerCall(id=FIRST, kind="web_search", name="web_search", args=b'{"queries":["q","r"]}'),
        ServerResult(call_id=FIRST, kind="web_search", sources=(NIPPON,)),
        CitedText("Es ist grün", (NIPPON,)),
        TextDelta(". Ja"),
        END,
    ]


def test_thoughts_are_shown_while_the_text_is_held_back() -> None:
    stream = reader(to=OLD)
    events = stream.feed(sse(chunk({"text": "hm", "thought": True}), chunk({"text": "a"})))
    assert events == [STARTED, ThoughtDelta("hm")]
    assert stream.feed(sse(chunk(finish="STOP"))) + stream.close() == [TextDelta("a"), END]


def test_a_whole_answer_says_the_same() -> None:
    (first, last) = GROUNDED_25
    whole = beside(
        chunk({"text": "Es ist grün. Ja"}, finish="STOP"),
        groundingMetadata=last["candidates"][0]["groundingMetadata"],
    )
    assert collect(heard(array(whole), to=OLD)[0]) == collect(heard(sse(first, last), to=OLD)[0])


PAGES = {
    "urlMetadata": [
        {"retrievedUrl": "https://a.org", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS"},
        {"retrievedUrl": "https://b.org", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_PAYWALL"},
        {"retrievedUrl": None},
        None,
    ]
}


def test_pages_that_were_read_are_told_one_by_one() -> None:
    page = Source(url="https://a.org", title="A")
    sources = {"groundingChunks": [web(page)], "groundingSupports": [support("A says so", 0)]}
    data = sse(
        beside(chunk({"text": "A says"}), urlContextMetadata=PAGES),
        beside(
            chunk({"text": " so"}, finish="STOP", usage={"promptTokenCount": 1}), groundingMetadata=sources
        ),
    )
    for tools in ((FETCH,), (FETCH, SEARCH)):
        assert heard(data, *tools, to=OLD)[0] == [
            STARTED,
            Usage(input_tokens=1, fetches=2),
            ServerCall(id=FIRST, kind="web_fetch", name="fetch_it", args=b'{"urls":["https://a.org"]}'),
            ServerCall(id=SECOND, kind="web_fetch", name="fetch_it", args=b'{"urls":["https://b.org"]}'),
            ServerResult(call_id=FIRST, kind="web_fetch", sources=(page,)),
            ServerResult(
                call_id=SECOND,
                kind="web_fetch",
                sources=(Source(url="https://b.org", error="paywall"),),
            ),
            CitedText("A says so", (page,)),
            END,
        ]


def test_pages_read_by_gemini_3_are_told_once() -> None:
    urls = ["https://a.org", "https://b.org"]
    data = sse(
        chunk(ran("URL_CONTEXT", "u", urls=urls), answered("URL_CONTEXT", "u", urls_metadata=[])),
        beside(chunk({"text": "x"}), urlContextMetadata=PAGES),
        chunk(finish="STOP", usage={"promptTokenCount": 1}),
    )
    events, _ = heard(data, FETCH)
    assert [event for event in events if isinstance(event, ServerCall)] == [
        ServerCall(
            id=f"{FIRST}-u",
            kind="web_fetch",
            name="fetch_it",
            args=b'{"urls":["https://a.org"]}',
            signature=own(ran("URL_CONTEXT", "u", urls=urls), answered("URL_CONTEXT", "u", urls_metadata=[])),
        ),
        ServerCall(
            id=SECOND, kind="web_fetch", name="fetch_it", args=b'{"urls":["https://b.org"]}', signature=own()
        ),
    ]
    assert Usage(input_tokens=1, fetches=2) in events
    nameless = sse(chunk(ran("URL_CONTEXT", "u"), answered("URL_CONTEXT", "u")), chunk(finish="STOP"))
    (call,) = [event for event in heard(nameless, FETCH)[0] if isinstance(event, ServerCall)]
    assert call.args == b'{"urls":[]}'


CODE_PART = {"executableCode": {"language": "PYTHON", "code": "print(1)"}, "thoughtSignature": "c"}


def printed(output: str, outcome: str = "OUTCOME_OK") -> Json:
    return {"codeExecutionResult": {"outcome": outcome, "output": output}}


@pytest.mark.parametrize(
    ("results", "output", "error"),
    [
        ([printed("1\n")], "1\n", ""),
        ([printed("ok\n"), printed("Traceback", "OUTCOME_FAILED")], "ok\nTraceback", "failed"),
        ([printed("", "OUTCOME_DEADLINE_EXCEEDED")], "", "timeout"),
        ([{"codeExecutionResult": {}}], "", "failed"),
        ([], "", "unavailable"),
    ],
)
@pytest.mark.parametrize("to", [NEW, OLD])
def test_code_is_told_where_it_was_run(results: list[Json], output: str, error: str, to: str) -> None:
    stream = reader(CODE, to=to)
    first = stream.feed(sse(chunk({"text": "Let me"})))
    assert first == [STARTED, TextDelta("Let me")]
    data = sse(chunk(CODE_PART), *map(chunk, results), chunk({"text": "It is"}, finish="STOP"))
    origin = "gemini-g3" if to == NEW else "gemini-g25"
    signature = Signature(own(CODE_PART, *results).data, origin)
    assert stream.feed(data) + stream.close() == [
        ServerCall(
            id=FIRST,
            kind="code_execution",
            name="code_execution",
            args=b'{"code":"print(1)"}',
            signature=signature,
        ),
        ServerResult(call_id=FIRST, kind="code_execution", output=output, error=error),
        TextDelta("It is"),
        END,
    ]


def test_two_programs_are_two_and_a_result_of_none_is_kept() -> None:
    data = sse(chunk(printed("stray"), CODE_PART, printed("1"), CODE_PART, printed("2"), finish="STOP"))
    results = [event for event in heard(data, CODE)[0] if isinstance(event, ServerResult)]
    assert [result.output for result in results] == ["stray", "1", "2"]


def test_everything_behind_a_search_keeps_its_order() -> None:
    data = sse(
        chunk(ran("GOOGLE_SEARCH_WEB", "a"), answered("GOOGLE_SEARCH_WEB", "a")),
        chunk({"text": "hm", "thought": True}, {"text": "one"}),
        chunk(CODE_PART, printed("1")),
        chunk(ran("GOOGLE_SEARCH_WEB", "b"), answered("GOOGLE_SEARCH_WEB", "b")),
        chunk({"text": "two"}, calling(id="f", args={}, signature="s")),
        beside(
            chunk(finish="STOP"),
            groundingMetadata={
                "groundingChunks": [web(WIKI)],
                "groundingSupports": [support("onetwo", 0), support("two", 0)],
            },
        ),
    )
    events, _ = heard(data, SEARCH, CODE)
    assert [type(event) for event in events] == [
        Started,
        ServerCall,
        ServerResult,
        ThoughtDelta,
        CitedText,
        ServerCall,
        ServerResult,
        ServerCall,
        ServerResult,
        CitedText,
        ToolCall,
        Finished,
    ]
    assert [event.text for event in events if isinstance(event, CitedText)] == ["one", "two"]
    found = [event.sources for event in events if isinstance(event, ServerResult)]
    assert found == [(WIKI,), (), ()]


def test_what_was_found_is_told_even_if_google_did_not_tell_the_search() -> None:
    """The switch is on, no toolCall comes, and yet there are sources: told behind the text that is gone."""
    sources = {"groundingChunks": [web(WIKI)], "groundingSupports": [support("a", 0)]}
    data = sse(chunk({"text": "a"}), beside(chunk(finish="STOP"), groundingMetadata=sources))
    assert heard(data)[0] == [
        STARTED,
        TextDelta("a"),
        ServerCall(id=FIRST, kind="web_search", name="web_search", args=b'{"queries":[]}'),
        ServerResult(call_id=FIRST, kind="web_search", sources=(WIKI,)),
        END,
    ]


def test_a_response_to_nothing_is_none_and_a_call_without_one_goes_back_in_words() -> None:
    data = sse(
        chunk(answered("GOOGLE_SEARCH_WEB", "x")),
        chunk(ran("GOOGLE_SEARCH_WEB", "a", queries="odd"), {"text": "cut"}, finish="MAX_TOKENS"),
    )
    events, _ = heard(data)
    assert events == [
        STARTED,
        TextDelta("cut"),
        ServerCall(id=f"{FIRST}-a", kind="web_search", name="web_search", args=b'{"queries":[]}'),
        ServerResult(call_id=f"{FIRST}-a", kind="web_search"),
        Finished(reason="max_tokens", raw="MAX_TOKENS"),
    ]


@pytest.mark.parametrize(
    "part",
    [
        {"toolCall": {"toolType": "GOOGLE_MAPS", "id": "m"}},
        {"toolCall": {"id": "m"}},
        {"toolCall": []},
        {"inlineData": {"mimeType": "image/png", "data": "eA=="}},
    ],
)
def test_a_part_that_is_none_of_these_stays_what_it_is(part: Json) -> None:
    events, _ = heard(sse(chunk(part), chunk({"text": "a"}, finish="STOP")))
    assert isinstance(events[1], Native)
    assert events[2:] == [TextDelta("a"), END]


def test_k1_sources_of_sites_the_client_does_not_want_are_withheld() -> None:
    picky = ServerTool(kind="web_search", name="web_search", allowed_domains=("wikipedia.org",))
    events, notes = heard(sse(*SEARCHED), picky)
    results = [event for event in events if isinstance(event, ServerResult)]
    assert results[0].sources == (WIKI,)
    assert [event for event in events if isinstance(event, CitedText)] == [
        CitedText("Delhi has 33 million.", (WIKI,))
    ]
    assert collect(events).parts[4].text.startswith("Tokyo has 37")  # type: ignore[union-attr]
    assert [(note.kind, note.where) for note in notes] == [("withheld", "answer")]


def test_a_page_that_was_read_is_judged_by_the_rules_for_reading() -> None:
    search = ServerTool(kind="web_search", blocked_domains=("a.org",))
    fetch = ServerTool(kind="web_fetch", allowed_domains=("a.org",))
    page = Source(url="https://a.org", title="A")
    sources = {"groundingChunks": [web(page), web(WIKI)], "webSearchQueries": ["q"]}
    data = sse(
        beside(chunk({"text": "x"}, finish="STOP"), groundingMetadata=sources, urlContextMetadata=PAGES)
    )
    events, notes = heard(data, search, fetch, to=OLD)
    found = [event.sources for event in events if isinstance(event, ServerResult)]
    assert found[0] == (page, WIKI)
    assert notes == []
    only = ServerTool(kind="code_execution")
    events, _ = heard(data, only, to=OLD)
    assert [event.kind for event in events if isinstance(event, ServerCall)] == ["web_fetch", "web_fetch"]


@pytest.mark.parametrize("field", ["groundingMetadata", "urlContextMetadata"])
def test_metadata_that_cannot_be_read_costs_no_answer(field: str) -> None:
    odd = {"groundingChunks": 5, "urlMetadata": 5}
    events, notes = heard(sse(beside(chunk({"text": "a"}, finish="STOP"), **{field: odd})), to=OLD)
    assert events == [STARTED, TextDelta("a"), END]
    assert [note.why for note in notes] == [f"Google's {field} cannot be read"]
    assert heard(sse(beside(chunk({"text": "a"}, finish="STOP"), **{field: None})), to=OLD)[0] == events


def test_an_answer_that_breaks_off_was_never_shown() -> None:
    events, _ = heard(sse(chunk({"text": "a"})), to=OLD)
    assert [type(event) for event in events] == [Started, Failed]


def test_a_very_long_answer_is_not_held_back_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_tools_stream, "MAX_HELD_CHARS", 10)
    stream = reader(to=OLD)
    assert stream.feed(sse(chunk({"text": "123456789"}))) == [STARTED]
    assert stream.feed(sse(chunk({"text": "ab"}))) == [TextDelta("123456789"), TextDelta("ab")]
    assert stream.feed(sse(chunk({"text": "c"}))) == [TextDelta("c")]
    sources = {"groundingChunks": [web(WIKI)], "groundingSupports": [support("c", 0)]}
    rest = stream.feed(sse(beside(chunk(finish="STOP"), groundingMetadata=sources))) + stream.close()
    assert [type(event) for event in rest] == [ServerCall, ServerResult, Finished]
    assert [note.kind for note in stream.notes] == ["dropped"]


def test_the_notes_of_the_reader_inside_are_told() -> None:
    stream = reader()
    stream.feed(sse(chunk(calling(id="a", willContinue=True), finish="MAX_TOKENS")))
    stream.close()
    assert [note.why for note in stream.notes] == ["cut off by MAX_TOKENS"]
