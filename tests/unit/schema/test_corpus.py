"""Every schema case of the conformance corpus, through both forms of a declaration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.schema import clean_schema, compile_schema
from tests.corpus import check

FOLDER = Path(check.__file__).parent / "schema"
CASES = [json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))]
# Vertex allows no description beside `anyOf`: it stands on the first alternative.
NOT_ON_VERTEX = {"schema/type_array_union"}


def declaration(case: dict[str, Any], **schema: Any) -> dict[str, Any]:
    tool = case["input"]["tool"]
    given = {key: value for key, value in schema.items() if value is not None}
    return {"name": tool["name"], "description": tool["description"], **given}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_clean(case: dict[str, Any]) -> None:
    out, _ = clean_schema(case["input"]["tool"]["input_schema"], where="s")
    assert check.check_case(case, declaration(case, parametersJsonSchema=out)) == ([], [])


COMPILED = [
    pytest.param(case, vertex, id=f"{case['id']}{'-vertex' if vertex else ''}")
    for case in CASES
    for vertex in (False, True)
    if not (vertex and case["id"] in NOT_ON_VERTEX)
]


@pytest.mark.parametrize(("case", "vertex"), COMPILED)
def test_compile(case: dict[str, Any], vertex: bool) -> None:
    out, _ = compile_schema(case["input"]["tool"]["input_schema"], where="s", vertex=vertex)
    assert check.check_case(case, declaration(case, parameters=out)) == ([], [])


def test_the_corpus_is_there() -> None:
    assert len(CASES) >= 32
