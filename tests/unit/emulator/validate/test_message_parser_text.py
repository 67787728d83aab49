"""Bodies that are hardly JSON, and numbers that are hardly numbers: refused in Google's words, never a crash."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.emulator.errors import ApiError
from dragoman.emulator.routes import Backend
from dragoman.emulator.validate import parse_request
from tests.unit.emulator.builders import Json, hello, message

STUDIO = Backend("studio", "v1beta")
GOOGLE = "type.googleapis.com/google.ai.generativelanguage.v1beta"
GOOD = json.dumps(hello()).encode()


def read(document: Any, backend: Backend = STUDIO) -> Json:
    return parse_request(json.dumps(document).encode(), backend)


def config(**fields: Any) -> Json:
    return {"generationConfig": fields}


def refuse(body: bytes) -> str:
    with pytest.raises(ApiError) as caught:
        parse_request(body, STUDIO)
    return caught.value.message


NOT_JSON = {
    "byte order mark": b"\xef\xbb\xbf" + GOOD,
    "UTF-16": GOOD.decode().encode("utf-16"),
    "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00" + GOOD,
    "white space": b" \n",
    "cut off": GOOD[:-1],
    "two documents": GOOD + GOOD,
    "trailing comma": GOOD[:-1] + b",}",
    "single quotes": b"{'contents': []}",
    "bare NaN": b'{"generationConfig": {"temperature": NaN}}',
    "bare Infinity": b'{"generationConfig": {"temperature": -Infinity}}',
    "leading zero": b'{"generationConfig": {"topK": 01}}',
    "half a character": b'{"contents": [{"parts": [{"text": "\\ud83d"}]}]}',
    "half a character in a name": b'{"\\ud83d": 1}',
    "not UTF-8": b'{"contents": [{"parts": [{"text": "\xff"}]}]}',
    "not UTF-8 in an unknown field": b'{"x": 1, "y": "\xff"}',
    "not UTF-8 beside a violation": b'{"x": 1, "contents": [{"parts": [{"text": "\xff"}]}]}',
}


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_what_is_not_json_is_said_before_anything_else(body: bytes) -> None:
    assert refuse(body).startswith("Invalid JSON payload received. Unexpected token.\n")


def test_an_empty_body_is_an_empty_message() -> None:
    assert parse_request(b"", STUDIO) == {}
    assert message(b"") == "* GenerateContentRequest.contents: contents is not specified\n"


def test_of_a_name_given_twice_the_last_counts() -> None:
    assert parse_request(b'{"model": "a", "model": "b"}', STUDIO) == {"model": "b"}


def test_both_spellings_of_a_list_are_one_list() -> None:
    both = {"safetySettings": [{"category": 7}], "safety_settings": {"category": 8}}
    assert len(read(both)["safetySettings"]) == 2


def test_both_spellings_of_a_value_are_one_value() -> None:
    assert read({"cachedContent": "a", "cached_content": "b"}) == {"cachedContent": "b"}
    assert read(config(topK=1, top_k=2)) == config(topK=2)


def test_a_list_in_the_list_of_contents_is_no_content() -> None:
    """Read as a field, it would be a list of contents."""
    assert "not repeating" in refuse(b'{"contents": [[{"parts": [{"text": "x"}]}]]}')


@pytest.mark.parametrize("contents", [b"null", b"[]", b"[null]", b" [ null , null ] "])
def test_no_contents_in_any_spelling(contents: bytes) -> None:
    assert parse_request(b'{"contents": %s}' % contents, STUDIO) in ({}, {"contents": []})


def nested(levels: int, begin: str, inside: str, end: str) -> bytes:
    return (begin * levels + inside + end * levels).encode()


@pytest.mark.parametrize(
    ("begin", "inside", "end"),
    [('{"a":', "1", "}"), ("[", "", "]"), ('[{"a":', "1", "}]")],
    ids=["objects", "lists", "both"],
)
def test_deep_values_are_refused_at_the_same_depth_for_everybody(begin: str, inside: str, end: str) -> None:
    head, tail = b'{"generationConfig": {"responseJsonSchema": ', b"}}"
    per_level = 2 if len(begin) > 5 else 1
    fits = 98 // per_level
    parse_request(head + nested(fits, begin, inside, end) + tail, STUDIO)
    for levels in (fits + 1, 500, 100_000):
        body = head + nested(levels, begin, inside, end) + tail
        assert refuse(body) == "Invalid JSON payload received. Message too deep."


@pytest.mark.parametrize("field", ["items", "anyOf", "any_of"])
def test_deep_schemas_are_refused_and_not_fallen_into(field: str) -> None:
    body = b'{"generationConfig": {"responseSchema": ' + nested(900, f'{{"{field}":', "{}", "}") + b"}}"
    assert refuse(body) == "Invalid JSON payload received. Message too deep."


def test_brackets_in_words_are_not_depth() -> None:
    assert read(hello())["contents"] == hello()["contents"]
    words = "[{" * 5000
    assert read({"model": words}) == {"model": words}


TAKEN = {
    "text of an integer": (config(topK="-3"), config(topK=-3)),
    "whole number with a point": (config(topK=3.0), config(topK=3)),
    "text of a number": (config(temperature="1e-1"), config(temperature=0.1)),
    "words for numbers": (config(temperature="Infinity"), config(temperature=float("inf"))),
    "text of a truth": (config(responseLogprobs="true"), config(responseLogprobs=True)),
    "enum with a dash": (
        config(thinkingConfig={"thinkingLevel": "thinking-level-unspecified"}),
        config(thinkingConfig={"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}),
    ),
    "enum as a whole number with a point": (
        {"toolConfig": {"functionCallingConfig": {"mode": 2.0}}},
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
    ),
    "enum as the text of a number": (
        {"toolConfig": {"functionCallingConfig": {"mode": "2"}}},
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
    ),
    "null inside a list": (config(stopSequences=["a", None, "b"]), config(stopSequences=["a", "b"])),
    "null inside a map": ({"labels": {"a": None, "b": "c"}}, {"labels": {"b": "c"}}),
}


@pytest.mark.parametrize(("document", "canonical"), TAKEN.values(), ids=TAKEN.keys())
def test_loose_values_become_what_they_mean(document: Json, canonical: Json) -> None:
    assert read(document) == canonical


def of(name: str, word: str, shown: str) -> str:
    return f"Invalid value at 'generation_config.{name}' ({word}), {shown}"


REFUSED = {
    "truth as an integer": (config(topK=True), of("top_k", "TYPE_INT32", "true")),
    "fraction as an integer": (config(topK=1.5), of("top_k", "TYPE_INT32", "1.5")),
    "fraction in the text of an integer": (config(topK="1.0"), of("top_k", "TYPE_INT32", '"1.0"')),
    "very long integer": (config(topK="9" * 400), of("top_k", "TYPE_INT32", f'"{"9" * 400}"')),
    "digits of another script": (config(topK="٣"), of("top_k", "TYPE_INT32", '"٣"')),
    "number with spaces": (config(temperature=" 1"), of("temperature", "TYPE_FLOAT", '" 1"')),
    "number with underscores": (config(temperature="1_0"), of("temperature", "TYPE_FLOAT", '"1_0"')),
    "number in Python's words": (config(temperature="inf"), of("temperature", "TYPE_FLOAT", '"inf"')),
    "number beyond floats": (config(temperature="1e99"), of("temperature", "TYPE_FLOAT", '"1e99"')),
    "truth as a number": (config(temperature=False), of("temperature", "TYPE_FLOAT", "false")),
    "number as a truth": (config(responseLogprobs=1), of("response_logprobs", "TYPE_BOOL", "1")),
    "capital truth": (config(responseLogprobs="True"), of("response_logprobs", "TYPE_BOOL", '"True"')),
    "truth as an enum": (
        config(mediaResolution=True),
        of("media_resolution", f"{GOOGLE}.GenerationConfig.MediaResolution", "true"),
    ),
    "number nobody gave an enum": (
        config(mediaResolution=99),
        of("media_resolution", f"{GOOGLE}.GenerationConfig.MediaResolution", "99"),
    ),
}


@pytest.mark.parametrize(("document", "line"), REFUSED.values(), ids=REFUSED.keys())
def test_values_that_mean_something_else_are_refused(document: Json, line: str) -> None:
    assert refuse(json.dumps(document).encode()) == line


@pytest.mark.parametrize("number", [b"1e400", b"-1e400", b"9" * 400])
def test_numbers_beyond_everything_are_a_400(number: bytes) -> None:
    assert refuse(b'{"generationConfig": {"temperature": %s}}' % number).startswith("Invalid ")
    assert refuse(b'{"generationConfig": {"topK": %s}}' % number).startswith("Invalid ")


@pytest.mark.parametrize("data", ["+_+_", "-/-/", "A", "AAAAA", "AA=A", "A A!", "é", "=" * 3 + "A"])
def test_bytes_in_no_alphabet(data: str) -> None:
    """Both alphabets are known, but not at once; a length of 4n + 1 is impossible."""
    part = {"text": "x", "thoughtSignature": data}
    place = "contents[0].parts[0].thought_signature"
    line = f"Invalid value at '{place}' (TYPE_BYTES), Base64 decoding failed for \"{data}\""
    assert refuse(json.dumps({"contents": [{"parts": [part]}]}).encode()) == line


def test_violations_are_told_in_the_order_of_the_document() -> None:
    body = {
        "zzz": 1,
        "contents": [{"parts": [{"text": 5, "": 1}]}, {"role": "user", "name": "x"}],
        "tools": {"functionDeclarations": {"parameters": {"properties": {"a": {}, "b": {"type": 3.5}}}}},
        "yyy": 1,
    }
    assert refuse(json.dumps(body).encode()).split("\n") == [
        'Invalid JSON payload received. Unknown name "zzz": Cannot find field.',
        "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 5",
        "Invalid JSON payload received. Unknown name \"\" at 'contents[0].parts[0]': Proto fields must have a name.",
        "Invalid JSON payload received. Unknown name \"name\" at 'contents[1]': Cannot find field.",
        "Invalid value at 'tools[0].function_declarations[0].parameters.properties[1].value.type' "
        f"({GOOGLE}.Type), 3.5",
        'Invalid JSON payload received. Unknown name "yyy": Cannot find field.',
    ]
