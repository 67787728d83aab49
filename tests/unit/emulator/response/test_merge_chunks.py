"""A stream and a whole answer say the same: every part, for every candidate, in pieces or not."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.dialects.gemini.stream import PartialArgs
from dragoman.dialects.gemini.wire import PartialArg
from dragoman.emulator.response.chunks import merge_chunks
from dragoman.emulator.response.parts import apply_partial_arg, can_stream_arguments, write_partial_args
from tests.unit.emulator.builders import (
    OLD_MODEL,
    STUDIO,
    VERTEX,
    Json,
    ask,
    calls,
    declare,
    stream,
    talk,
    user,
)

ARGS: Json = {
    "path": "/a/long/path that is cut into pieces because it has many words, and more words.txt",
    "n": 5,
    "x": 2.5,
    "yes": True,
    "none": None,
    "deep": {"list": [1, {"a": "b"}, ["c"]], "odd key's \\ name": "v"},
    "empty": "",
}
WORDS = st.sampled_from(
    [
        "hello",
        "say " + "one two three four five six seven eight nine ten " * 6,
        f"say looking then use f with {json.dumps(ARGS)} and use g with {{}}",
        'use f with {"list": [], "big": 90071992547409931}',
        "what is 3 * (4 + 5) then",
        "search the news on https://a.org/x and https://b.org",
        "say it is so then cite https://c.org/1 then cite https://c.org/2",
    ]
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[Json, Json]:
    vertex = draw(st.booleans())
    model = draw(st.sampled_from(["gemini-3.8-flash", "gemini-4-argon", OLD_MODEL]))
    config: Json = {"thinkingConfig": {"includeThoughts": draw(st.booleans())}}
    if model == OLD_MODEL:
        config["candidateCount"] = draw(st.integers(1, 4))
    if draw(st.booleans()):
        config["maxOutputTokens"] = draw(st.sampled_from([1, 30, 90, 400]))
    if draw(st.booleans()):
        config["stopSequences"] = [draw(st.sampled_from(["four", "emulator", "T", "absent"]))]
    body = talk(user(draw(WORDS)), generationConfig=config)
    match draw(st.sampled_from(["none", "functions", "built-in", "pieces"])):
        case "functions":
            body["tools"] = declare("f", "g")
        case "built-in":
            body["tools"] = [{"googleSearch": {}}, {"urlContext": {}}]
            if not vertex:
                body["tools"].append({"codeExecution": {}})
            if not vertex and model != OLD_MODEL:
                body["toolConfig"] = {"includeServerSideToolInvocations": True}
        case "pieces":
            body["tools"] = declare("f", "g")
            if vertex:
                body["toolConfig"] = {"functionCallingConfig": {"streamFunctionCallArguments": True}}
    return body, {"model": model, "path": VERTEX if vertex else STUDIO}


def joined(chunks: list[Json]) -> dict[int, Json]:
    """The test's own reading of a stream: what each candidate said, by kind."""
    heard: dict[int, Json] = {}
    for chunk in chunks:
        for candidate in chunk["candidates"]:
            said = heard.setdefault(
                candidate.get("index", 0), {"text": "", "thought": "", "calls": [], "other": [], "signed": []}
            )
            for part in candidate["content"].get("parts", ()):
                _hear(said, part)
            said["finish"] = candidate.get("finishReason", said.get("finish"))
    return heard


def _hear(said: Json, part: Json) -> None:
    said["signed"] += [part["thoughtSignature"]] if "thoughtSignature" in part else []
    if "text" in part:
        said["thought" if part.get("thought") else "text"] += part["text"]
    elif "functionCall" not in part:
        said["other"].append({key: value for key, value in part.items() if key != "thoughtSignature"})
    elif "name" in part["functionCall"]:
        call = part["functionCall"]
        said["calls"].append([call["name"], call.get("id"), call.get("args"), PartialArgs()])
    else:
        pieces = part["functionCall"].get("partialArgs", [])
        said["calls"][-1][3].feed([msgspec.convert(piece, PartialArg) for piece in pieces])


def settled(heard: dict[int, Json]) -> dict[int, Json]:
    for said in heard.values():
        said["calls"] = [
            (name, given, args if args is not None else json.loads(pieces.close()))
            for name, given, args, pieces in said["calls"]
        ]
    return heard


@settings(deadline=None)
@given(requests())
def test_the_whole_answer_says_what_the_stream_says(asked: tuple[Json, Json]) -> None:
    body, options = asked
    chunks = stream(body, **options)
    whole = ask(body, **options)
    assert settled(joined([whole])) == settled(joined(chunks))
    assert whole["usageMetadata"] == chunks[-1]["usageMetadata"]
    assert "partialArgs" not in json.dumps(whole)
    wanted = body["generationConfig"].get("candidateCount", 1)
    assert [candidate["index"] for candidate in whole["candidates"]] == list(range(wanted))
    for candidate in whole["candidates"]:
        assert candidate["finishReason"]
        assert candidate["content"] == {} or candidate["content"]["parts"]


@settings(deadline=None)
@given(requests())
def test_every_chunk_counts_as_its_surface_does(asked: tuple[Json, Json]) -> None:
    body, options = asked
    chunks = stream(body, **options)
    for index, chunk in enumerate(chunks):
        usage = chunk["usageMetadata"]
        if options["path"] == VERTEX and index < len(chunks) - 1:
            assert usage == {"trafficType": "ON_DEMAND"}
            continue
        names = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount")
        assert usage["totalTokenCount"] == sum(usage.get(name, 0) for name in names)
        assert 0 not in usage.values()


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.floats(-9, 9), st.text(max_size=80)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=6), VALUES, max_size=4))
def test_arguments_in_pieces_are_the_arguments(args: Json) -> None:
    if not can_stream_arguments(args):
        assert "[]" in json.dumps(args) or "{}" in json.dumps(args) or _has_huge(args)
        return
    ours: Json = {}
    for piece in write_partial_args(args):
        apply_partial_arg(ours, piece)
    assert ours == args


def _has_huge(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(_has_huge, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int) and abs(value) >= 2**53


def test_pieces_have_googles_form() -> None:
    body = talk(
        user(f"use f with {json.dumps(ARGS)}"),
        tools=declare("f"),
        toolConfig={"functionCallingConfig": {"streamFunctionCallArguments": True}},
    )
    chunks = stream(body, path=VERTEX)
    calls = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]][:-1]
    opener, *pieces, end = (part["functionCall"] for part in calls)
    assert opener.keys() == {"name", "id", "willContinue"}
    assert ["thoughtSignature" in part for part in calls] == [True] + [False] * (len(calls) - 1)
    assert end == {}
    assert all(piece.keys() == {"partialArgs", "willContinue"} for piece in pieces)
    entries = [piece["partialArgs"][0] for piece in pieces]
    texts = [entry for entry in entries if entry["jsonPath"] == "$.path"]
    assert [entry.get("willContinue") for entry in texts] == [True] * (len(texts) - 1) + [None]
    assert "".join(entry["stringValue"] for entry in texts) == ARGS["path"]
    assert {"jsonPath": "$.n", "numberValue": 5} in entries
    assert {"jsonPath": "$.yes", "boolValue": True} in entries
    assert {"jsonPath": "$.none", "nullValue": "NULL_VALUE"} in entries
    assert {"jsonPath": "$.deep", "willContinue": True} in entries
    assert {"jsonPath": "$.deep.list", "willContinue": True} in entries
    assert {"jsonPath": "$.deep.list[1].a", "stringValue": "b"} in entries


@pytest.mark.parametrize("model", ["gemini-3.8-flash", OLD_MODEL])
def test_a_whole_answer_is_not_affected_by_pieces(model: str) -> None:
    plain = talk(user(f"use f with {json.dumps(ARGS)} and use g with {{}}"), tools=declare("f", "g"))
    pieces = {**plain, "toolConfig": {"functionCallingConfig": {"streamFunctionCallArguments": True}}}
    found = [ask(body, path=VERTEX, model=model) for body in (plain, pieces)]
    assert calls(found[0]) == calls(found[1]) == [("f", ARGS), ("g", {})]
    assert found[0]["usageMetadata"] == found[1]["usageMetadata"]


def test_a_signed_text_is_not_joined_with_the_next() -> None:
    parts: list[Json] = [{"text": "a"}, {"text": "b", "thoughtSignature": "s"}, {"text": "c"}]
    folded = merge_chunks([{"candidates": [{"content": {"parts": parts}}]}])["candidates"][0]["content"]
    assert folded["parts"] == [{"text": "ab", "thoughtSignature": "s"}, {"text": "c"}]


def test_ai_studio_never_sends_pieces() -> None:
    config = {"functionCallingConfig": {"mode": "AUTO"}}
    body = talk(user(f"use f with {json.dumps(ARGS)}"), tools=declare("f"), toolConfig=config)
    assert "willContinue" not in json.dumps(stream(body))


def test_candidates_differ_and_end_on_their_own() -> None:
    body = talk(user("say " + "word " * 20), generationConfig={"candidateCount": 3})
    for path in (STUDIO, VERTEX):
        heard = joined(stream(body, model=OLD_MODEL, path=path))
        texts = [heard[index]["text"] for index in range(3)]
        assert len(set(texts)) == 3
        assert {said["finish"] for said in heard.values()} == {"STOP"}


ENDS: list[tuple[list[Json], Json]] = [
    ([{"promptFeedback": {"blockReason": "SAFETY"}}], {"promptFeedback": {"blockReason": "SAFETY"}}),
    (
        [{"candidates": [{"finishReason": "SAFETY"}]}],
        {"candidates": [{"finishReason": "SAFETY", "content": {}, "index": 0}]},
    ),
    (
        [{"candidates": [{"content": {"parts": [{"text": "a"}]}}]}, {"error": {"code": 500}}],
        {"error": {"code": 500}},
    ),
]


@pytest.mark.parametrize(("chunks", "whole"), ENDS)
def test_broken_streams_are_folded_too(chunks: list[Json], whole: Json) -> None:
    assert merge_chunks(chunks) == whole


def test_a_call_cut_in_the_middle_keeps_what_came() -> None:
    parts: list[Json] = [
        {"functionCall": {"name": "f", "willContinue": True}},
        {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}], "willContinue": True}},
    ]
    chunks = [{"candidates": [{"content": {"parts": [part]}}]} for part in parts]
    folded = merge_chunks(chunks)["candidates"][0]["content"]["parts"]
    assert folded == [{"functionCall": {"name": "f", "args": {"a": "x"}}}]


def test_folding_leaves_the_chunks_as_they_are() -> None:
    """A script sends the same chunks again and again."""
    opener = {"name": "f", "args": {"a": "x"}, "willContinue": True}
    piece = {"partialArgs": [{"jsonPath": "$.a", "stringValue": "y"}]}
    chunks = [spoken({"functionCall": call}) for call in (opener, piece)]
    first, second = merge_chunks(chunks), merge_chunks(chunks)
    assert first == second
    assert first["candidates"][0]["content"]["parts"] == [
        {"functionCall": {"name": "f", "args": {"a": "xy"}}}
    ]


@pytest.mark.parametrize(
    "calls",
    [
        [{"willContinue": True}, {"partialArgs": [{"jsonPath": "$.a", "stringValue": "y"}]}],
        [
            {"name": "f", "willContinue": True},
            {"partialArgs": [{"jsonPath": "$.a", "stringValue": "y"}], "willContinue": True},
            {
                "partialArgs": [
                    {"jsonPath": "$.a.b", "stringValue": "y"},
                    {"jsonPath": "$.a[0]", "numberValue": 1},
                ]
            },
        ],
        [
            {"name": "f", "willContinue": True},
            {
                "partialArgs": [
                    {"jsonPath": "$.a[0]", "numberValue": 1},
                    {"jsonPath": "$.a.b", "numberValue": 2},
                ]
            },
        ],
    ],
)
def test_pieces_that_do_not_fit_together_are_no_exception(calls: list[Json]) -> None:
    merged = merge_chunks([spoken({"functionCall": call}) for call in calls])
    assert len(merged["candidates"][0]["content"]["parts"]) == 1


def spoken(part: Json) -> Json:
    return {"candidates": [{"content": {"parts": [part], "role": "model"}}]}
