"""Load a script file, and report all problems at once, each with its line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from dragoman.config.keys import did_you_mean
from dragoman.emulator.script.check import check_script
from dragoman.emulator.script.model import Script
from dragoman.emulator.script.read import (
    DocumentNode,
    ScriptProblem,
    ScriptSyntaxError,
    nodes_from_data,
    parse_document,
    plain_value,
)
from dragoman.errors import ConfigError

_MAX_CONVERSIONS = 2000
_MAX_PROBLEMS = 50
_PATH = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")
_EXPECTED = re.compile(r"Expected `(.*)`, got `(.*)`")
_BOUND = re.compile(r"Expected `(.*)` (.*)")
_TYPE_NAMES = {
    "object": "a mapping",
    "array": "a list",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
}
_TYPE_NAMES |= {"bool": "true or false", "null": "nothing"}
#: Scalars that YAML 1.1 reads as booleans.
_OLD_BOOLEANS = frozenset("yes no on off y n".split())
_OCTAL = re.compile(r"[-+]?0[0-7]+")

NodePath = tuple[str | int, ...]


class ScriptError(ConfigError):
    """The script is invalid; `problems` lists all reasons."""

    def __init__(self, problems: list[ScriptProblem], file: str) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(_format_problem(problem, file) for problem in problems))


class LoadedScript(msgspec.Struct, frozen=True, kw_only=True):
    """A script, its file, and the line of each of its steps (0 if unknown)."""

    script: Script
    file: str
    lines: tuple[int, ...]


ScriptSource = str | os.PathLike[str] | Mapping[str, Any]


def load_script(source: ScriptSource) -> LoadedScript:
    """Load a script from a file, a text or a mapping."""
    if isinstance(source, Mapping):
        return load_data(source)
    if isinstance(source, str) and _is_text(source):
        return load_text(source)
    path = Path(source)
    try:
        return load_text(path.read_bytes().decode("utf-8", "replace"), str(source))
    except OSError as error:
        raise ScriptError([ScriptProblem(0, "", error.strerror or str(error))], str(source)) from None


def load_text(text: str, file: str = "script") -> LoadedScript:
    try:
        root, problems = parse_document(text)
    except ScriptSyntaxError as unreadable:
        raise ScriptError([unreadable.problem], file) from None
    return _load(root, problems, file)


def load_data(value: Mapping[str, Any], file: str = "script") -> LoadedScript:
    try:
        return _load(nodes_from_data(value), [], file)
    except ScriptSyntaxError as unreadable:
        raise ScriptError([unreadable.problem], file) from None


def _is_text(source: str) -> bool:
    return "\n" in source or ": " in source or source.lstrip()[:1] == "{"


def _load(root: DocumentNode, problems: list[ScriptProblem], file: str) -> LoadedScript:
    converter = _Converter(root, problems)
    script = converter.convert()
    if script is not None:
        for path, what in check_script(script):
            node = _find(root, path)
            if id(node) not in converter.touched:  # the node has another problem, which is reported already
                problems.append(ScriptProblem(node.line, node.path, what))
    if problems or script is None:
        problems.sort(key=lambda problem: problem.line)
        raise ScriptError(problems[:_MAX_PROBLEMS], file)
    steps = root.value["steps"].value if "steps" in root.value else []
    return LoadedScript(script=script, file=file, lines=tuple(node.line for node in steps))


class _Converter:
    """Collects all validation errors of a document, although msgspec stops at the first.

    It reports the error, removes the invalid node, and converts again.
    """

    def __init__(self, root: DocumentNode, problems: list[ScriptProblem]) -> None:
        self._root = root
        self._problems = problems
        self._removed: set[tuple[int, str]] = set()
        self.touched: set[int] = set()  # ids of nodes from which a child was removed

    def convert(self) -> Script | None:
        """Return the script without its invalid parts, or None if nothing is left."""
        for _ in range(_MAX_CONVERSIONS):
            try:
                return msgspec.convert(plain_value(self._root), Script)
            except msgspec.ValidationError as error:
                what, _, path = str(error).rpartition(" - at `$")
                if not what:
                    what, path = path, ""
                if not self._report_and_remove(what, _parse_path(path.rstrip("`"))):
                    return None
        return None

    def _report_and_remove(self, what: str, path: NodePath) -> bool:
        """Report the error and remove its node. Return False if nothing would be left."""
        node, path = _follow_path(self._root, path)
        if (found := _UNKNOWN.fullmatch(what)) is not None:
            hint = did_you_mean(found[1], _keys_at(path))
            self._report(node.value[found[1]], f"there is no such key{hint}")
            return self._remove((*path, found[1]))
        if (found := _MISSING.fullmatch(what)) is not None:
            if (id(node), found[1]) not in self._removed:
                self._report(node, f"{found[1]} is missing")
            return self._remove(path)
        expected = _EXPECTED.fullmatch(what)
        if expected is not None and node.source_text is not None and "str" in expected[1].split(" | "):
            node.value = node.source_text  # text was expected: use the scalar as it was written
            return True
        self._report(node, _explain(what, node, path))
        return self._remove(path)

    def _report(self, node: DocumentNode, what: str) -> None:
        self._problems.append(ScriptProblem(node.line, node.path, what))

    def _remove(self, path: NodePath) -> bool:
        if not path:
            return False
        parent = _find(self._root, path[:-1])
        self.touched.add(id(parent))
        if isinstance(parent.value, dict):
            self._removed.add((id(parent), str(path[-1])))
        del parent.value[path[-1]]
        return True


def _parse_path(path: str) -> NodePath:
    return tuple(name or (int(index) if index.isdigit() else "...") for name, index in _PATH.findall(path))


def _follow_path(root: DocumentNode, path: NodePath) -> tuple[DocumentNode, NodePath]:
    """Return the node at one of msgspec's paths, and the path with all keys.

    msgspec writes `...` for the keys of a free mapping; that is the first entry whose value is not text.
    """
    node = root
    steps: list[str | int] = []
    for step in path:
        if step == "...":
            step = next(key for key, item in node.value.items() if not isinstance(item.value, str))
        node = node.value[step]
        steps.append(step)
    return node, tuple(steps)


def _find(root: DocumentNode, path: NodePath) -> DocumentNode:
    """Return the node at a path, or the nearest ancestor that exists."""
    node = root
    for step in path:
        if isinstance(node.value, dict):
            inner = node.value.get(step)
        else:
            inner = node.value[step] if isinstance(node.value, list) and isinstance(step, int) else None
        if inner is None:
            break
        node = inner
    return node


def _keys_at(path: NodePath) -> list[str]:
    """Return the keys of the table at this path."""
    table = next(part for part in _parts(_type_at(path)) if _is_table(part))
    return [field.encode_name for field in msgspec.structs.fields(table)]


def _type_at(path: NodePath) -> Any:
    """Return the type annotation at this path."""
    annotation: Any = Script
    for step in path:
        table = next((part for part in _parts(annotation) if _is_table(part)), None)
        if isinstance(step, str) and table is not None:
            fields = {field.encode_name: field.type for field in msgspec.structs.fields(table)}
            annotation = fields.get(step, annotation)
    return annotation


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield the types and literal values of which an annotation consists."""
    yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from _parts(inner)


def _is_table(part: Any) -> bool:
    return isinstance(part, type) and issubclass(part, msgspec.Struct)


def _explain(what: str, node: DocumentNode, path: NodePath) -> str:
    if (expected := _EXPECTED.fullmatch(what)) is not None:
        kinds = [_TYPE_NAMES.get(kind, kind) for kind in expected[1].split(" | ") if kind != "null"]
        got = repr(node.value) if isinstance(node.value, str) else _TYPE_NAMES.get(expected[2], expected[2])
        return f"expected {' or '.join(kinds)}, got {got}{_hint(node, kinds)}"
    if (bound := _BOUND.fullmatch(what)) is not None:
        return f"expected {_TYPE_NAMES.get(bound[1], bound[1])} {bound[2]}, got {node.value!r}"
    # The remaining errors are about a value that is not in a Literal.
    parts = list(_parts(_type_at(path)))
    words = [part for part in parts if isinstance(part, str)]
    kinds = [_TYPE_NAMES[kind.__name__] for kind in (int, bool) if kind in parts]
    hint = _hint(node, kinds) or did_you_mean(str(node.value), words)
    return f"expected {' or '.join([*kinds, *words])}, got {node.value!r}{hint}"


def _hint(node: DocumentNode, kinds: list[str]) -> str:
    text = node.source_text or ""
    if text.lower() in _OLD_BOOLEANS and "true or false" in kinds:
        return " (YAML 1.2 knows only true and false)"
    if _OCTAL.fullmatch(text):
        return " (a number with leading zeros is text)"
    return ""


def _format_problem(problem: ScriptProblem, file: str) -> str:
    line = f":{problem.line}" if problem.line else ""
    where = f"{problem.path}: " if problem.path else ""
    return f"{file}{line}: {where}{problem.message}"
