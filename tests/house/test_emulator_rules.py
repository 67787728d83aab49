"""The page of rules cannot drift: every row names a test, and every test it names is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "emulator-rules.md"
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)(?:\[([^\]`]+)\])?`")
FEWEST_ROWS = 80


def rows() -> list[list[str]]:
    """The cells of every row of every table, without its head."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("|")]
    heads = [index for index, line in enumerate(lines) if set(line) <= set("|- ")]
    body = [line for index, line in enumerate(lines) if index not in heads and index + 1 not in heads]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body]


@cache
def contents(path: str) -> tuple[set[str], set[str]]:
    """The functions of a test file, and every string in it: the ids of its cases are among them."""
    tree = ast.parse((TESTS / path).read_text("utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    strings = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return functions, strings


def test_the_page_has_its_rules() -> None:
    assert len(rows()) >= FEWEST_ROWS


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:60])
def test_every_rule_names_tests_that_exist(row: list[str]) -> None:
    assert len(row) == 3, "a rule, what the emulator does, a test"
    rule, done, tests = row
    assert rule
    assert done
    named = NAMED.findall(tests)
    assert named, "no test"
    assert NAMED.sub("", tests).strip() == "", "something that is no test"
    for path, function, case in named:
        functions, strings = contents(path)
        assert function in functions, f"{path} has no {function}"
        assert not case or case in strings, f"{path} has no case {case!r}"
