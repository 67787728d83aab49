"""What a grounded answer says of its sources: whole, streamed, on either back end and of either generation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.emulator.builders import (
    OLD_MODEL,
    STUDIO,
    VERTEX,
    Json,
    ask,
    declare,
    function_responses,
    message,
    parts,
    stream,
    talk,
    text,
    user,
)

SEARCH: list[Json] = [{"googleSearch": {}}]
READ: list[Json] = [{"urlContext": {}}]
SHOWN = {"includeServerSideToolInvocations": True}
REDIRECT = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/"
WORDS = "say Es ist grün. Ja! Ende"


def grounding(body: Json, **options: Any) -> Json:
    found: Json = ask(body, **options)["candidates"][0]["groundingMetadata"]
    return found


@pytest.mark.parametrize(
    ("path", "model"), [(STUDIO, OLD_MODEL), (STUDIO, ""), (VERTEX, ""), (VERTEX, OLD_MODEL)]
)
def test_what_was_found_is_googles_address_of_it_and_its_site(path: str, model: str) -> None:
    options = {"path": path, **({"model": model} if model else {})}
    metadata = grounding(talk(user(WORDS), tools=SEARCH), **options)
    webs = [chunk["web"] for chunk in metadata["groundingChunks"]]
    assert [web["title"] for web in webs] == ["example.com", "example.org"]
    assert all(web["uri"].startswith(REDIRECT) for web in webs)
    assert [web.get("domain") for web in webs] == (
        ["example.com", "example.org"] if path == VERTEX else [None, None]
    )
    assert metadata["webSearchQueries"] == [WORDS]
    assert ("retrievalMetadata" in metadata) == (path == VERTEX)
    assert metadata == grounding(talk(user(WORDS), tools=SEARCH), **options)


def test_segments_are_measured_in_bytes_and_leave_out_zeros() -> None:
    supports = grounding(talk(user(WORDS), tools=SEARCH))["groundingSupports"]
    assert [support["segment"] for support in supports] == [
        {"endIndex": 13, "text": "Es ist grün."},
        {"startIndex": 14, "endIndex": 17, "text": "Ja!"},
        {"startIndex": 18, "endIndex": 22, "text": "Ende"},
    ]
    assert [support["groundingChunkIndices"] for support in supports] == [[0], [1], [0, 1]]
    old = grounding(talk(user(WORDS), tools=SEARCH), model=OLD_MODEL)["groundingSupports"]
    assert [len(support["confidenceScores"]) for support in old] == [1, 1, 2]
    assert "confidenceScores" not in supports[0]


def test_excluded_sites_are_not_found() -> None:
    tools = [{"googleSearch": {"excludeDomains": ["example.com", "example.net"]}}]
    metadata = grounding(talk(user(WORDS), tools=tools), path=VERTEX)
    assert [chunk["web"]["title"] for chunk in metadata["groundingChunks"]] == ["example.org"]
    nothing = [{"googleSearch": {"excludeDomains": ["example.com", "example.net", "example.org"]}}]
    metadata = grounding(talk(user(WORDS), tools=nothing), path=VERTEX)
    assert metadata.keys() == {"searchEntryPoint", "webSearchQueries", "retrievalMetadata"}


def test_pages_that_were_read_are_sources_and_others_are_not() -> None:
    answer = ask(talk(user("say ok: https://a.org/x https://no.invalid:80/y"), tools=READ))
    (candidate,) = answer["candidates"]
    assert [page["urlRetrievalStatus"] for page in candidate["urlContextMetadata"]["urlMetadata"]] == [
        "URL_RETRIEVAL_STATUS_SUCCESS",
        "URL_RETRIEVAL_STATUS_ERROR",
    ]
    metadata = candidate["groundingMetadata"]
    assert [chunk["web"]["uri"] for chunk in metadata["groundingChunks"]] == ["https://a.org/x"]
    assert "webSearchQueries" not in metadata


def test_a_stream_tells_pages_first_and_sources_last() -> None:
    asked = talk(user("read https://a.org/x and tell me more of it"), tools=READ)
    for model in ("gemini-3.8-flash", OLD_MODEL):
        first, *between, last = [chunk["candidates"][0] for chunk in stream(asked, model=model)]
        assert "urlContextMetadata" in first
        assert not any("urlContextMetadata" in candidate for candidate in between)
        assert last["groundingMetadata"]["groundingChunks"]
        empty = [candidate.get("groundingMetadata") for candidate in (first, *between)]
        assert set(map(str, empty)) == ({"{}"} if model == OLD_MODEL else {"None"})


def test_a_call_has_no_sources() -> None:
    asked = talk(user("search the web, then use f with {}"), tools=[*SEARCH, *declare("f")], toolConfig=SHOWN)
    assert "groundingMetadata" not in ask(asked)["candidates"][0]


def test_beside_functions_a_search_is_no_matter_of_course() -> None:
    tools = [*SEARCH, *declare("f")]
    assert (
        "groundingMetadata" not in ask(talk(user("say hi"), tools=tools, toolConfig=SHOWN))["candidates"][0]
    )
    assert grounding(talk(user("say the news"), tools=tools, toolConfig=SHOWN))


def test_what_google_ran_is_signed_all_through() -> None:
    answer = ask(
        talk(
            user("news of https://a.org and 2 + 3"),
            tools=[*SEARCH, *READ, {"codeExecution": {}}],
            toolConfig=SHOWN,
        )
    )
    kinds = [(next(iter(part)), "thoughtSignature" in part) for part in parts(answer)]
    assert kinds == [
        ("toolCall", True),
        ("toolResponse", True),
        ("toolCall", True),
        ("toolResponse", True),
        ("executableCode", True),
        ("codeExecutionResult", False),
        ("text", True),
    ]
    assert parts(answer)[3]["toolResponse"]["response"] == {
        "urls_metadata": [
            {"retrieved_url": "https://a.org", "url_retrieval_status": "URL_RETRIEVAL_STATUS_SUCCESS"}
        ]
    }


def turn(*, without: str = "", unsigned: str = "") -> list[Json]:
    """A turn in which Google searched before it called a function, not as it was."""
    tools = [*SEARCH, *declare("f")]
    asked = user("search the web, then use f with {}")
    content: Json = ask(talk(asked, tools=tools, toolConfig=SHOWN))["candidates"][0]["content"]
    content["parts"] = [part for part in content["parts"] if not without or without not in part]
    for part in content["parts"]:
        if unsigned and unsigned in part:
            del part["thoughtSignature"]
    return [asked, content, function_responses("f")]


def history(*contents: Json) -> Json:
    return talk(*contents, tools=[*SEARCH, *declare("f")], toolConfig=SHOWN)


def test_what_google_ran_may_come_back_or_be_left_out_whole() -> None:
    assert text(ask(history(*turn()))) == "f returned: ok"
    asked, content, result = turn(without="toolCall")
    content["parts"] = [part for part in content["parts"] if "toolResponse" not in part]
    assert text(ask(history(asked, content, result))) == "f returned: ok"


@pytest.mark.parametrize("half", ["toolCall", "toolResponse"])
def test_half_of_what_google_ran_is_refused(half: str) -> None:
    assert message(history(*turn(without=half))) == "Request contains an invalid argument."


@pytest.mark.parametrize("part", ["toolCall", "toolResponse"])
def test_in_the_current_turn_it_comes_back_signed(part: str) -> None:
    unsigned = turn(unsigned=part)
    assert message(history(*unsigned)) == "Request contains an invalid argument."
    done = {"role": "model", "parts": [{"text": "done"}]}
    assert text(ask(history(*unsigned, done, user("say later")))) == "later"
