"""Arguments that arrive piece by piece (Vertex, known problem E10)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman.dialects.gemini.stream import PartialArgs
from dragoman.dialects.gemini.wire import PartialArg
from dragoman.errors import UpstreamProtocolError


def assemble(*pieces: dict[str, Any]) -> Any:
    args = PartialArgs()
    for piece in pieces:
        args.feed([msgspec.convert(piece, PartialArg, strict=False)])
    return msgspec.json.decode(args.close())


def at(path: str, **value: Any) -> dict[str, Any]:
    return {"jsonPath": path, **value}


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([], {}),
        ([at("$")], {}),
        ([at("$.a", stringValue="x")], {"a": "x"}),
        (
            [
                at("$.a", stringValue="x", willContinue=True),
                at("$.a", stringValue="y"),
                at("$.a", stringValue=""),
            ],
            {"a": "xy"},
        ),
        ([at("$.a", numberValue=1)], {"a": 1}),
        ([at("$.a", numberValue=1.0)], {"a": 1}),
        ([at("$.a", numberValue=1.5)], {"a": 1.5}),
        ([at("$.a", numberValue=1e30)], {"a": 10**30 + 19884624838656}),
        ([at("$.a", numberValue="NaN")], {"a": None}),
        ([at("$.a", boolValue=True), at("$.b", boolValue=False)], {"a": True, "b": False}),
        ([at("$.a", nullValue=None)], {"a": None}),
        ([at("$.a", nullValue="NULL_VALUE")], {"a": None}),
        ([at("$.a", stringValue="")], {"a": ""}),
        ([at("$.a", numberValue=0)], {"a": 0}),
        ([at("$.a", willContinue=True), at("$.a.b", stringValue="x")], {"a": {"b": "x"}}),
        (
            [at("$.a.b.c", stringValue="x"), at("$.a.b.d", stringValue="y")],
            {"a": {"b": {"c": "x", "d": "y"}}},
        ),
        ([at("$.a[0]", stringValue="x"), at("$.a[1]", stringValue="y")], {"a": ["x", "y"]}),
        ([at("$.a[1]", stringValue="y")], {"a": [None, "y"]}),
        ([at("$.a[0].b", stringValue="x"), at("$.a[0].b", stringValue="y")], {"a": [{"b": "xy"}]}),
        ([at("$.a[0][1]", numberValue=2)], {"a": [[None, 2]]}),
        ([at("$['a.b']", stringValue="x")], {"a.b": "x"}),
        ([at('$["a.b"]', stringValue="x")], {"a.b": "x"}),
        ([at(r"$['it\'s']", stringValue="x")], {"it's": "x"}),
        ([at(r"$['back\\slash']", stringValue="x")], {"back\\slash": "x"}),
        ([at("$['']", stringValue="x")], {"": "x"}),
        (
            [at("$.some-key", stringValue="x"), at("$.ünï cödé", stringValue="y")],
            {"some-key": "x", "ünï cödé": "y"},
        ),
        ([at("$[0]", stringValue="x")], {"0": "x"}),
        ([at("$.a", stringValue="x"), at("$.a", numberValue=1)], {"a": 1}),
        ([at("$.a", numberValue=1), at("$.a.b", stringValue="x")], {"a": {"b": "x"}}),
        ([at("$.a[0]", numberValue=1), at("$.a[0]", numberValue=2)], {"a": [2]}),
        ([at("$.a[2]", numberValue=1), at("$.a[0]", numberValue=2)], {"a": [2, None, 1]}),
    ],
)
def test_e10_pieces_are_put_at_their_places(pieces: list[dict[str, Any]], expected: Any) -> None:
    assert assemble(*pieces) == expected


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "",
        "$a",
        "$.",
        "$..a",
        "$.a[",
        "$.a[]",
        "$.a[x]",
        "$.a[-1]",
        "$.a['b]",
        "$.a[100001]",
        "$.a[" + "9" * 5_000 + "]",
        "$" + ".a" * 101,
        "$" + "[0]" * 5_000,
    ],
)
def test_c10_a_path_that_leads_nowhere_is_refused_not_skipped(path: str) -> None:
    with pytest.raises(UpstreamProtocolError):
        assemble(at(path, stringValue="x"))


def test_c10_a_name_inside_a_list_is_refused() -> None:
    with pytest.raises(UpstreamProtocolError):
        assemble(at("$.a[0]", stringValue="x"), at("$.a.b", stringValue="y"))
    with pytest.raises(UpstreamProtocolError):
        assemble(at("$.a[0]", stringValue="x"), at("$.a.b.c", stringValue="y"))


def test_the_deepest_path_can_be_written() -> None:
    assert assemble(at("$" + ".a" * 100, stringValue="x"))
