"""Streamed function arguments (Vertex, `streamFunctionCallArguments`): write and merge the pieces.

Each piece is a JSON path with a value.

    stream = opener piece* end
    opener = {name, id?, willContinue}
    piece  = {partialArgs, willContinue}
    end    = {}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from dragoman.emulator.answer.cutting import split_text

JsonObject = dict[str, Any]
PathStep = str | int

_SIMPLE_NAME = re.compile(r"[A-Za-z_$][\w$-]*")
_STEP = re.compile(r"\.([A-Za-z_$][\w$-]*)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]", re.DOTALL)
#: The limit up to which a double represents every integer.
_MAX_EXACT_INTEGER = 2**53


def can_stream_arguments(args: Mapping[str, Any]) -> bool:
    """Whether pieces can represent the arguments without loss.

    They cannot represent an empty list or object, and `numberValue` is a double, which loses digits of large
    integers.
    """
    return all(_is_representable(value) for value in args.values())


def write_partial_args(args: Mapping[str, Any]) -> Iterator[JsonObject]:
    """Yield the entries of `partialArgs`, one per chunk."""
    for name, value in args.items():
        yield from _write_value(f"${_name_step(name)}", value)


def apply_partial_arg(args: JsonObject, piece: Mapping[str, Any]) -> None:
    """Store the value of a piece at its path in `args`.

    A string is appended to a string that is already there. A piece whose path does not fit is ignored.
    """
    path = _read_path(str(piece.get("jsonPath", "")))
    value = _value(piece)
    if not path or value is _NO_VALUE:
        return
    node: Any = args
    for step, following in pairwise(path):
        if not _accepts_step(node, step):
            return
        node = _get_or_create(node, step, [] if isinstance(following, int) else {})
    last = path[-1]
    if _accepts_step(node, last):
        before = _get_or_create(node, last, None)
        node[last] = before + value if isinstance(before, str) and isinstance(value, str) else value


def _is_representable(value: Any) -> bool:
    if isinstance(value, Mapping):
        return bool(value) and all(map(_is_representable, value.values()))
    if isinstance(value, list):
        return bool(value) and all(map(_is_representable, value))
    return not isinstance(value, int) or abs(value) < _MAX_EXACT_INTEGER


def _write_value(path: str, value: Any) -> Iterator[JsonObject]:
    if isinstance(value, Mapping):
        yield {"jsonPath": path, "willContinue": True}
        for name, item in value.items():
            yield from _write_value(path + _name_step(name), item)
    elif isinstance(value, list):
        yield {"jsonPath": path, "willContinue": True}
        for index, item in enumerate(value):
            yield from _write_value(f"{path}[{index}]", item)
    elif isinstance(value, str):
        texts = split_text(value) or [""]
        yield from ({"jsonPath": path, "stringValue": text, "willContinue": True} for text in texts[:-1])
        yield {"jsonPath": path, "stringValue": texts[-1]}
    else:
        yield {"jsonPath": path, **_scalar(value)}


def _scalar(value: Any) -> JsonObject:
    if value is None:
        return {"nullValue": "NULL_VALUE"}
    return {"boolValue": value} if isinstance(value, bool) else {"numberValue": value}


def _name_step(name: str) -> str:
    if _SIMPLE_NAME.fullmatch(name):
        return f".{name}"
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{escaped}']"


_NO_VALUE = object()


def _value(piece: Mapping[str, Any]) -> Any:
    if "nullValue" in piece:
        return None
    return next(
        (piece[key] for key in ("stringValue", "numberValue", "boolValue") if key in piece), _NO_VALUE
    )


def _read_path(path: str) -> list[PathStep]:
    steps: list[PathStep] = []
    for found in _STEP.finditer(path, 1):
        name, number, quoted = found.groups()
        if number is not None:
            steps.append(int(number))
        else:
            steps.append(name if name is not None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
    return steps


def _accepts_step(node: Any, step: PathStep) -> bool:
    return isinstance(node, list if isinstance(step, int) else dict)


def _get_or_create(node: Any, step: PathStep, fresh: Any) -> Any:
    """Return the value at a step, and store `fresh` there first if there is none."""
    if isinstance(step, str):
        return node.setdefault(step, fresh)
    node.extend([None] * (step + 1 - len(node)))
    node[step] = fresh if node[step] is None else node[step]
    return node[step]
