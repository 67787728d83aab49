"""Arguments in pieces (Vertex, `streamFunctionCallArguments`): written as paths with values, and put together.

stream = opener piece* end;  opener = {name, id?, willContinue};  piece = {partialArgs, willContinue};  end = {}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from dragoman.emulator.answer.cutting import split_text

Json = dict[str, Any]
Step = str | int

_SIMPLE = re.compile(r"[A-Za-z_$][\w$-]*")
_STEP = re.compile(r"\.([A-Za-z_$][\w$-]*)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]", re.DOTALL)
#: Beyond it a double no longer holds every whole number.
_EXACT = 2**53


def can_stream(args: Mapping[str, Any]) -> bool:
    """Whether pieces can say it all: an empty list looks like an empty object, a huge number loses digits."""
    return all(_has_form(value) for value in args.values())


def write_pieces(args: Mapping[str, Any]) -> Iterator[Json]:
    """The entries of `partialArgs`, one per chunk."""
    for name, value in args.items():
        yield from _pieces(f"${_name_step(name)}", value)


def put_piece(args: Json, piece: Mapping[str, Any]) -> None:
    """Put a piece's value at its path; a string goes on where one stands, what fits nowhere is dropped."""
    path = _read_path(str(piece.get("jsonPath", "")))
    value = _value(piece)
    if not path or value is _NOTHING:
        return
    node: Any = args
    for step, following in pairwise(path):
        if not _has_room(node, step):
            return
        node = _below(node, step, [] if isinstance(following, int) else {})
    last = path[-1]
    if _has_room(node, last):
        before = _below(node, last, None)
        node[last] = before + value if isinstance(before, str) and isinstance(value, str) else value


def _has_form(value: Any) -> bool:
    if isinstance(value, Mapping):
        return bool(value) and all(map(_has_form, value.values()))
    if isinstance(value, list):
        return bool(value) and all(map(_has_form, value))
    return not isinstance(value, int) or abs(value) < _EXACT


def _pieces(path: str, value: Any) -> Iterator[Json]:
    if isinstance(value, Mapping):
        yield {"jsonPath": path, "willContinue": True}
        for name, item in value.items():
            yield from _pieces(path + _name_step(name), item)
    elif isinstance(value, list):
        yield {"jsonPath": path, "willContinue": True}
        for index, item in enumerate(value):
            yield from _pieces(f"{path}[{index}]", item)
    elif isinstance(value, str):
        texts = split_text(value) or [""]
        yield from ({"jsonPath": path, "stringValue": text, "willContinue": True} for text in texts[:-1])
        yield {"jsonPath": path, "stringValue": texts[-1]}
    else:
        yield {"jsonPath": path, **_scalar(value)}


def _scalar(value: Any) -> Json:
    if value is None:
        return {"nullValue": "NULL_VALUE"}
    return {"boolValue": value} if isinstance(value, bool) else {"numberValue": value}


def _name_step(name: str) -> str:
    if _SIMPLE.fullmatch(name):
        return f".{name}"
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{escaped}']"


_NOTHING = object()


def _value(piece: Mapping[str, Any]) -> Any:
    if "nullValue" in piece:
        return None
    return next((piece[key] for key in ("stringValue", "numberValue", "boolValue") if key in piece), _NOTHING)


def _read_path(path: str) -> list[Step]:
    steps: list[Step] = []
    for found in _STEP.finditer(path, 1):
        name, number, quoted = found.groups()
        if number is not None:
            steps.append(int(number))
        else:
            steps.append(name if name is not None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
    return steps


def _has_room(node: Any, step: Step) -> bool:
    return isinstance(node, list if isinstance(step, int) else dict)


def _below(node: Any, step: Step, fresh: Any) -> Any:
    """What stands at a step, made room for when nothing does."""
    if isinstance(step, str):
        return node.setdefault(step, fresh)
    node.extend([None] * (step + 1 - len(node)))
    node[step] = fresh if node[step] is None else node[step]
    return node[step]
