"""JSON as real clients send it: half emoji, bad UTF-8, too deep; and where a mistake is."""

from __future__ import annotations

import msgspec
import pytest

from dragoman import jsontext
from dragoman.errors import InvalidRequest


class Item(msgspec.Struct):
    size: int


class Body(msgspec.Struct):
    items: list[Item]
    named: dict[str, int] = {}


decode_body = msgspec.json.Decoder(Body).decode

SURROGATES = [
    (rb'"\ud83d\ude00"', rb'"\ud83d\ude00"'),
    (rb'"\uD83D\uDE00"', rb'"\uD83D\uDE00"'),
    (rb'"cut \ud83d"', rb'"cut \ufffd"'),
    (rb'"\ude00 tail"', rb'"\ufffd tail"'),
    (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
    (rb'"\ud83dA"', rb'"\ufffdA"'),
    (rb'"\ud83d\n"', rb'"\ufffd\n"'),
    (rb'"\\ud83d"', rb'"\\ud83d"'),
    (rb'"\\\ud83d"', rb'"\\\ufffd"'),
    (rb'"\DBFF \udfff"'.replace(rb"\DB", rb"\uDB"), rb'"\ufffd \ufffd"'),
    (rb'"\ud7ff\ue000"', rb'"\ud7ff\ue000"'),
]


@pytest.mark.parametrize(("given", "expected"), SURROGATES)
def test_half_an_emoji_is_replaced_and_nothing_else(given: bytes, expected: bytes) -> None:
    mended = jsontext.replace_lone_surrogates(given)
    assert mended == expected
    msgspec.json.decode(mended)


def test_a_body_without_surrogates_is_the_very_same_object() -> None:
    body = rb'{"a":"\u00e9 \\u"}'
    assert jsontext.replace_lone_surrogates(body) is body


def test_a_good_body_is_decoded() -> None:
    assert jsontext.decode(decode_body, b'{"items":[{"size":1}]}').items == [Item(1)]


@pytest.mark.parametrize(
    ("body", "where", "place"),
    [
        (b'{"items":[{"size":1},{"size":"x"}]}', "", "items[1].size"),
        (b'{"items":[{"size":1},{}]}', "", "items[1]"),
        (b'{"items":[{"size":"x"}]}', "messages[3]", "messages[3].items[0].size"),
        (b'{"items":[{"size":"x"}]}', ".content[0]", ".content[0].items[0].size"),
        (b'{"items":[],"named":{"a":"x"}}', "", "named[...]"),
        (b"[]", "", ""),
        (b"[]", "tools", "tools"),
    ],
)
def test_a_wrong_type_is_named_with_its_place(body: bytes, where: str, place: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        jsontext.decode(decode_body, body, where)
    assert caught.value.where == place
    assert "`$" not in caught.value.message
    assert caught.value.kind == "invalid_request"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "not valid JSON"),
        (b"", "the body is empty"),
        (b'{"items":[]}x', "not valid JSON"),
        (b'{"items":"\xff"}', "items|not valid UTF-8|Expected"),
        (b'{"x":' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_json_is_refused_in_words(body: bytes, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message) as caught:
        jsontext.decode(decode_body, body, "tools")
    assert caught.value.where.startswith("tools")


def test_bad_utf8_is_refused_as_such() -> None:
    with pytest.raises(InvalidRequest, match="not valid UTF-8"):
        jsontext.decode(msgspec.json.Decoder(list[str]).decode, b'["\xff"]')
