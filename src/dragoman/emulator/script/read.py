"""Parse YAML or JSON into values with line numbers.

Scalars follow YAML 1.2: `no`, `on`, `12:30`, dates and numbers with leading zeros are text. Keys are always
text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_MAX_DEPTH = 100
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][-+]?[0-9]+)?")
_NAMED_VALUES: Mapping[str, Any] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}
#: A surrogate pair as JSON escapes it, after an even number of backslashes.
_SURROGATE_PAIR = re.compile(
    r"(?<!\\)((?:\\\\)*)\\u([dD][89aAbB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
)
_TEXT_TAGS = (None, "!", "tag:yaml.org,2002:str")
_LARGEST = 2**63


class ScriptProblem(msgspec.Struct, frozen=True):
    """A problem of a script: the line (0 if unknown), the path, and the message."""

    line: int
    path: str
    message: str


class ScriptSyntaxError(Exception):
    """The text is not YAML, or its structure exceeds a limit."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.problem = ScriptProblem(line, "", what)


class DocumentNode(msgspec.Struct, kw_only=True):
    """A value of the file and its position.

    `value` is a scalar, a list of nodes or a dict of nodes. `text` is the source of a plain scalar.
    """

    value: Any
    line: int
    path: str
    source_text: str | None = None


def parse_document(text: str) -> tuple[DocumentNode, list[ScriptProblem]]:
    """Return the document and its problems; raise `Unreadable` if it cannot be parsed."""
    import yaml  # imported here because only scripts need it

    # Unlike YAML, JSON allows tabs between tokens (never in strings) and escaped surrogate pairs.
    text = text.encode("utf-8", "replace").decode().removeprefix("\ufeff")
    if text.lstrip()[:1] == "{":
        text = _SURROGATE_PAIR.sub(_join_pair, text.replace("\t", " "))
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    problems: list[ScriptProblem] = []
    try:
        return _Builder(yaml.parse(text, Loader=loader), problems, 10 * len(text) + 1000).document(), problems
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ScriptSyntaxError(
            line, f"this character cannot stand in YAML: {_format_character(error.character)}"
        ) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = ": ".join(part for part in (error.context, error.problem) if part)
        line = min(mark.line, text.rstrip().count("\n")) + 1 if mark else 1
        raise ScriptSyntaxError(line, f"this is not YAML: {what}") from None
    except yaml.YAMLError as error:
        raise ScriptSyntaxError(1, f"this is not YAML: {error}") from None


def nodes_from_data(value: Any, where: str = "", depth: int = 0) -> DocumentNode:
    """Return the nodes of a Python value."""
    if depth > _MAX_DEPTH:
        raise ScriptSyntaxError(0, f"it is nested deeper than {_MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        entries = {
            str(key): nodes_from_data(item, child_path(where, str(key)), depth + 1)
            for key, item in value.items()
        }
        return DocumentNode(value=entries, line=0, path=where)
    if isinstance(value, list | tuple):
        items = [
            nodes_from_data(item, child_path(where, index), depth + 1) for index, item in enumerate(value)
        ]
        return DocumentNode(value=items, line=0, path=where)
    return DocumentNode(value=value, line=0, path=where)


def child_path(where: str, step: str | int) -> str:
    """Return the path of a key or an item of the value at `where`."""
    if isinstance(step, int):
        return f"{where}[{step}]"
    return f"{where}.{step}" if where else step


def plain_value(node: DocumentNode) -> Any:
    """Return the value without positions."""
    if isinstance(node.value, dict):
        return {key: plain_value(item) for key, item in node.value.items()}
    if isinstance(node.value, list):
        return [plain_value(item) for item in node.value]
    return node.value


class _Builder:
    """Builds nodes from parser events; `budget` limits the size of expanded aliases."""

    def __init__(self, events: Iterator[Any], problems: list[ScriptProblem], budget: int) -> None:
        self._events = events
        self._problems = problems
        self._budget = budget
        self._anchors: dict[str, DocumentNode] = {}

    def document(self) -> DocumentNode:
        root: DocumentNode | None = None
        for event in self._events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent" and root is not None:
                self._report(event, "", "a script is one document: this one begins a second")
                break
            if kind in ("StreamStartEvent", "StreamEndEvent", "DocumentStartEvent", "DocumentEndEvent"):
                continue
            root = self._node(event, "", 0)
        return root or DocumentNode(value={}, line=1, path="")

    def _node(self, event: Any, where: str, depth: int) -> DocumentNode:
        line = event.start_mark.line + 1
        kind = type(event).__name__
        if depth > _MAX_DEPTH:
            raise ScriptSyntaxError(line, f"it is nested deeper than {_MAX_DEPTH} levels")
        if kind == "AliasEvent":
            return self._alias(event, where, line)
        if event.tag not in _TEXT_TAGS:
            self._report(event, where, f"tags are not understood here: {event.tag}")
        node = DocumentNode(value=None, line=line, path=where)
        if kind == "ScalarEvent":
            node.value, node.source_text = self._scalar(event)
        elif kind == "SequenceStartEvent":
            node.value = self._list(where, depth)
        else:
            node.value = self._mapping(where, depth)
        # Register an anchor only when its node is complete, so that no node contains itself.
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: Any, where: str, line: int) -> DocumentNode:
        found = self._anchors.get(event.anchor)
        if found is None:
            self._report(event, where, f"there is no anchor &{event.anchor} before this")
            return DocumentNode(value=None, line=line, path=where)
        return self._copy(found, line, where)

    def _copy(self, node: DocumentNode, line: int, where: str) -> DocumentNode:
        self._budget -= 1
        if self._budget < 0:
            raise ScriptSyntaxError(line, "its aliases make it too large")
        value = node.value
        if isinstance(value, dict):
            value = {key: self._copy(item, line, child_path(where, key)) for key, item in value.items()}
        elif isinstance(value, list):
            value = [self._copy(item, line, child_path(where, index)) for index, item in enumerate(value)]
        return DocumentNode(value=value, line=line, path=where, source_text=node.source_text)

    def _list(self, where: str, depth: int) -> list[DocumentNode]:
        items: list[DocumentNode] = []
        while type(event := next(self._events)).__name__ != "SequenceEndEvent":
            items.append(self._node(event, child_path(where, len(items)), depth + 1))
        return items

    def _mapping(self, where: str, depth: int) -> dict[str, DocumentNode]:
        entries: dict[str, DocumentNode] = {}
        while type(event := next(self._events)).__name__ != "MappingEndEvent":
            key = self._key(event, where, depth)
            place = child_path(where, key)
            value = self._node(next(self._events), place, depth + 1)
            if key in entries:
                self._report(event, place, f"this key is already in line {entries[key].line}")
            else:
                entries[key] = msgspec.structs.replace(value, line=event.start_mark.line + 1)
        return entries

    def _key(self, event: Any, where: str, depth: int) -> str:
        if type(event).__name__ == "ScalarEvent":
            return _replace_surrogates(event.value)
        self._node(event, where, depth + 1)  # consume its events
        self._report(event, where, "a key must be text")
        return f"key in line {event.start_mark.line + 1}"

    def _scalar(self, event: Any) -> tuple[Any, str | None]:
        text = _replace_surrogates(event.value)
        is_plain = event.implicit[0] and event.tag is None
        return (_scalar_value(text), text) if is_plain else (text, None)

    def _report(self, event: Any, where: str, what: str) -> None:
        self._problems.append(ScriptProblem(event.start_mark.line + 1, where, what))


def _scalar_value(text: str) -> Any:
    """Return the value of a plain scalar. Numbers that do not fit JSON stay text."""
    if text in _NAMED_VALUES:
        return _NAMED_VALUES[text]
    if len(text) < 400 and any(digit in text for digit in "0123456789"):
        if _INTEGER.fullmatch(text) and -_LARGEST <= int(text) < _LARGEST:
            return int(text)
        if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
            return float(text)
    return text


def _join_pair(found: re.Match[str]) -> str:
    pair = bytes.fromhex(found[2] + found[3])
    return found[1] + pair.decode("utf-16-be")


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which the pure Python parser of PyYAML accepts, by U+FFFD."""
    if text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _format_character(character: Any) -> str:
    code = ord(character) if isinstance(character, str) else int(character)
    return f"U+{code:04X}"
