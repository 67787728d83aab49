"""What an answer rests on: sources, sites, and the bytes of a text that are characters elsewhere (known problem K3)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects.gemini.citations import (
    Grounding,
    Sites,
    admits,
    decode_grounding,
    place_citations,
    read_sources,
    site_of,
    sites_of,
)
from dragoman.ir import Citation, ServerTool, Source

REDIRECT = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/x"
A, B = Source(url="https://a.org", title="A"), Source(url="https://b.org", title="B")


def grounding(**fields: Any) -> Grounding:
    found: Grounding = decode_grounding(json.dumps(fields).encode())
    return found


def support(*indices: int, **segment: Any) -> dict[str, Any]:
    return {"segment": segment, "groundingChunkIndices": list(indices)}


def placed(text: str, *supports: Any, runs: tuple[int, ...] = (0,)) -> list[tuple[str, tuple[Source, ...]]]:
    citations = place_citations(text, runs, grounding(groundingSupports=list(supports)), (A, B, None))
    return [(text[citation.start : citation.end], citation.sources) for citation in citations]


def test_bytes_become_characters() -> None:
    text = "Über 19°C. 🙂-Ja."
    data = text.encode()
    found = placed(
        text,
        support(0, endIndex=data.index(b". "), text="Über 19°C"),
        support(1, startIndex=data.index(b"Ja"), endIndex=len(data), text="Ja."),
    )
    assert found == [("Über 19°C", (A,)), ("Ja.", (B,))]


def test_white_space_around_a_citation_belongs_to_it() -> None:
    text = "\n one  two, three \n"
    found = placed(
        text,
        support(0, startIndex=2, endIndex=5),
        support(1, startIndex=7, endIndex=10),
        support(0, startIndex=12, endIndex=17),
    )
    assert [words for words, _ in found] == ["\n one  ", "two", "three \n"]


SEGMENTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "where it says": ({"startIndex": 4, "endIndex": 7, "text": "two"}, ["two"]),
    "without the zero": ({"endIndex": 3, "text": "one"}, ["one"]),
    "without an end": ({"startIndex": 4, "text": "two"}, ["two"]),
    "elsewhere": ({"startIndex": 99, "endIndex": 102, "text": "two"}, ["two"]),
    "in the second part": ({"startIndex": 4, "endIndex": 7, "text": "fou"}, ["fou"]),
    "nowhere": ({"startIndex": 0, "endIndex": 3, "text": "six"}, []),
    "without words": ({"startIndex": 4, "endIndex": 7}, ["two"]),
    "without words, in the second part": ({"partIndex": 1, "endIndex": 3}, ["thr"]),
    "without words, in a part that is not": ({"partIndex": 7, "endIndex": 3}, ["thr"]),
    "without words, beyond the end": ({"startIndex": 8, "endIndex": 99}, ["three-four"]),
    "of nothing": ({}, []),
    "backwards": ({"startIndex": 5, "endIndex": 2}, []),
    "before the beginning": ({"startIndex": -5, "endIndex": 3}, ["one"]),
}


@pytest.mark.parametrize(("segment", "words"), SEGMENTS.values(), ids=SEGMENTS.keys())
def test_genai_961_a_segment_is_found_by_its_place_or_by_its_words(
    segment: dict[str, Any], words: list[str]
) -> None:
    text = "one-two-three-four"
    assert [found for found, _ in placed(text, support(0, **segment), runs=(0, 8))] == words


def test_a_place_inside_a_character_is_at_its_beginning() -> None:
    assert placed("aü🙂b", support(0, startIndex=2, endIndex=6)) == [("ü", (A,))]


def test_citations_come_in_order_and_never_over_each_other() -> None:
    text = "abcdefghij"
    found = placed(
        text,
        support(1, startIndex=6, endIndex=8),
        support(0, startIndex=0, endIndex=4),
        support(1, startIndex=1, endIndex=3),
        support(1, startIndex=3, endIndex=5),
        support(0, startIndex=0, endIndex=4),
    )
    assert found == [("abcd", (A, B)), ("e", (B,)), ("gh", (B,))]


@pytest.mark.parametrize(
    "odd",
    [
        None,
        {},
        {"segment": None},
        {"segment": {"endIndex": 1}},
        support(2, endIndex=1),
        support(-1, 9, endIndex=1),
    ],
)
def test_a_support_of_nothing_is_none(odd: Any) -> None:
    assert placed("abc", odd) == []


@given(
    st.text(max_size=40),
    st.lists(st.tuples(st.integers(-3, 60), st.integers(-3, 60), st.booleans()), max_size=8),
)
def test_whatever_google_says_citations_lie_apart_in_the_text(
    text: str, spans: list[tuple[int, int, bool]]
) -> None:
    supports = [
        support(0, startIndex=start, endIndex=end, **({"text": text[:3]} if words else {}))
        for start, end, words in spans
    ]
    found = place_citations(text, (0,), grounding(groundingSupports=supports), (A,))
    ends = [0, *(edge for citation in found for edge in (citation.start, citation.end))]
    assert ends == sorted(ends)
    assert ends[-1] <= len(text)
    assert all(citation.start < citation.end for citation in found)


def test_only_so_many_supports_are_looked_at() -> None:
    many = [support(0, startIndex=place, endIndex=place + 1) for place in range(2_000)]
    assert len(placed("x" * 2_000, *many)) == 1_000


def test_every_kind_of_source_is_one() -> None:
    chunks = [
        {"web": {"uri": "https://a.org/x", "title": "A"}},
        {"retrievedContext": {"uri": "gs://b/doc", "title": "D", "text": "words"}},
        {"maps": {"uri": "https://maps.google.com/x", "title": "M"}},
        {"web": {"title": "no address"}},
        {},
        None,
    ]
    sources, unwanted = read_sources(grounding(groundingChunks=chunks), lambda _: True)
    assert sources == [
        Source(url="https://a.org/x", title="A"),
        Source(url="gs://b/doc", title="D", text="words"),
        Source(url="https://maps.google.com/x", title="M"),
        None,
        None,
        None,
    ]
    assert unwanted == 0


@pytest.mark.parametrize(
    ("web", "site"),
    [
        ({"uri": "https://www.a.org/x", "title": "Page"}, "a.org"),
        ({"uri": REDIRECT, "title": "www.A.org"}, "a.org"),
        ({"uri": REDIRECT, "title": "A page", "domain": "a.org"}, "a.org"),
        ({"uri": REDIRECT}, ""),
        ({"uri": "https://[broken"}, ""),
    ],
)
def test_k1_the_site_of_a_source(web: dict[str, Any], site: str) -> None:
    asked: list[str] = []

    def admits(name: str) -> bool:
        asked.append(name)
        return False

    sources, unwanted = read_sources(grounding(groundingChunks=[{"web": web}]), admits)
    assert (asked, sources, unwanted) == ([site], [None], 1)


@pytest.mark.parametrize(
    ("allowed", "blocked", "site", "admitted"),
    [
        ((), (), "a.org", True),
        (("a.org",), (), "a.org", True),
        (("a.org",), (), "x.a.org", True),
        (("a.org",), (), "xa.org", False),
        (("https://www.a.org/docs",), (), "a.org", True),
        ((".a.org",), (), "a.org", True),
        ((), (".a.org",), "b.a.org", False),
        (("*.a.org",), (), "b.a.org", True),
        (("a.org",), ("b.a.org",), "b.a.org", False),
        ((), ("A.org",), "a.org", False),
        ((), ("a.org",), "b.org", True),
    ],
)
def test_k1_sites_are_admitted_as_the_client_says(
    allowed: tuple[str, ...], blocked: tuple[str, ...], site: str, admitted: bool
) -> None:
    tool = ServerTool(kind="web_search", allowed_domains=allowed, blocked_domains=blocked)
    assert sites_of(tool).admit(site) is admitted


def test_an_address_is_judged_by_its_site() -> None:
    tool = ServerTool(kind="web_fetch", blocked_domains=("a.org",))
    assert not admits(tool, "https://www.a.org/x")
    assert admits(tool, "https://b.org")


def test_no_rules_admit_everything() -> None:
    assert Sites().admit("")
    assert site_of("no address") == ""


def test_what_was_said_before_stays_until_it_is_said_anew() -> None:
    first = grounding(webSearchQueries=["q"], groundingChunks=[{"web": {"uri": "u"}}])
    merged = first.merge(Grounding()).merge(grounding(groundingSupports=[support(0, endIndex=1)]))
    assert merged.web_search_queries == ["q"]
    assert merged.grounding_chunks
    assert merged.grounding_supports
    assert first.merge(grounding(webSearchQueries=["r"])).web_search_queries == ["r"]


def test_a_citation_knows_its_sources_once() -> None:
    twice = place_citations("ab", (0,), grounding(groundingSupports=[support(0, 0, 1, endIndex=2)]), (A, B))
    assert twice == [Citation(start=0, end=2, sources=(A, B))]
