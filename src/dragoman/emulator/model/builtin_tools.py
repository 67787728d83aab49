"""Stand-ins for Google's own tools: web search, URL context and code execution."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable

import msgspec

from dragoman.emulator.model.user_text import VALUE_PATTERNS

_LOOK_UP = re.compile(r"\b(?:google|search|look\s+up|news|latest|web|online)\b", re.IGNORECASE)
_COMPUTE = re.compile(r"\b(?:calculate|compute|python|code|sum|plot|solve)\b", re.IGNORECASE)
_ARITHMETIC = re.compile(r"(?<![\w.])[(\d][\d\s.()+*/-]*[\d)](?![\w])")
_DATE = re.compile(r"\d+-\d+-\d+")
_GREETING_CODE = 'print("offline")'
_MAX_URLS = 20
_LARGEST = 10**12

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


class CodeExecution(msgspec.Struct, frozen=True):
    """A program and its output."""

    source: str
    output: str


def asks_for_search(text: str) -> bool:
    return _LOOK_UP.search(text) is not None


def find_urls(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(VALUE_PATTERNS["url"].findall(text)))[:_MAX_URLS]


def is_reachable(url: str) -> bool:
    """Whether the URL counts as readable. Hosts in `.invalid` (RFC 2606) do not; no network is used."""
    host = url.partition("://")[2].partition("/")[0].partition(":")[0]
    return not host.endswith(".invalid")


def write_code(text: str) -> CodeExecution | None:
    """Return a program for the arithmetic in the text, or None.

    Text that only mentions computing gets a program that prints a greeting.
    """
    for found in _ARITHMETIC.finditer(text[:2000]):
        expression = " ".join(found.group().split())
        value = _evaluate(expression) if not _DATE.search(expression) else None
        if value is not None:
            return CodeExecution(f"print({expression})", f"{value}\n")
    return CodeExecution(_GREETING_CODE, "offline\n") if _COMPUTE.search(text) else None


def _evaluate(expression: str) -> float | None:
    """Return the value of plain arithmetic with at least one operator, or None for anything else."""
    try:
        tree = ast.parse(expression, mode="eval").body
        return _evaluate_node(tree) if isinstance(tree, ast.BinOp) else None
    except (SyntaxError, ValueError, ArithmeticError, RecursionError):
        return None


def _evaluate_node(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if abs(number) < _LARGEST:
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            result = _OPERATORS[type(op)](_evaluate_node(left), _evaluate_node(right))
            if abs(result) < _LARGEST:
                return result
    raise ValueError("not plain arithmetic")
