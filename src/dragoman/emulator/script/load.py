"""Load a script file, and report all problems at once, each with its line.

YAML or JSON is parsed into nodes with line numbers, converted to the types of `model` by msgspec, and checked for what
the types cannot express: a step has one answer, patterns compile, faults exist, and a reply has Google's order.

Scalars follow YAML 1.2: `no`, `on`, `12:30`, dates and numbers with leading zeros are text. Keys are always text.
"""

from __future__ import annotations

import base64
import binascii
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dragoman.config.settings import did_you_mean
from dragoman.emulator.faults import make_fault
from dragoman.emulator.script.model import (
    BodyItem,
    Conditions,
    ExactText,
    RawResponse,
    ReplyItem,
    Script,
    ScriptStep,
    StreamItem,
)
from dragoman.errors import ConfigError

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
    """Return the document and its problems; raise `InvalidScalar` if it cannot be parsed."""
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


ProblemPath = tuple[str | int, ...]
FoundProblems = Iterator[tuple[ProblemPath, str]]

_ANSWER_KEYS = ("reply", "chunks", "http")
_REPLY_KEYS = ("thought", "text", "call")
_STREAM_KEYS = ("parts", "json", "error", "raw", "wait", "cut")
_BODY_ITEM_KEYS = ("text", "base64", "wait", "cut")
_BODY_KEYS = ("body", "json", "pieces")
_TEXT_KEYS = ("says", "results", "system")
_REPLY_ONLY_KEYS = ("finish", "usage")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f\u0100-\U0010ffff]*")
#: The listener writes these headers itself.
_OWN_HEADERS = frozenset("content-length transfer-encoding connection".split())


def check_script(script: Script) -> FoundProblems:
    """Yield each problem with its path."""
    for index, step in enumerate(script.steps):
        yield from _prefixed(("steps", index), _check_step(step))


def _prefixed(prefix: ProblemPath, found: FoundProblems) -> FoundProblems:
    for path, what in found:
        yield (*prefix, *path), what


def _check_step(step: ScriptStep) -> FoundProblems:
    given = _given_keys(step, _ANSWER_KEYS)
    if len(given) > 1:
        yield (given[1],), f"a step has one answer, and this one has {' and '.join(given)}"
    for key in _REPLY_ONLY_KEYS:
        if getattr(step, key) is not None and step.reply is None:
            yield (key,), f"{key} goes with reply"
    for key in ("when", "expect"):
        when = getattr(step, key)
        if when is not None:
            yield from _prefixed((key,), _check_when(when))
    if isinstance(step.reply, list):
        yield from _prefixed(("reply",), _check_reply(step.reply))
    for index, bit in enumerate(step.chunks or ()):
        yield from _prefixed(("chunks", index), _check_stream_item(bit))
    if step.http is not None:
        yield from _prefixed(("http",), _check_http(step.http))
    yield from _check_faults(step)


def _check_when(when: Conditions) -> FoundProblems:
    for key in _TEXT_KEYS:
        text = getattr(when, key)
        if isinstance(text, str):
            yield from _check_pattern((key,), text)
        elif isinstance(text, ExactText) and not _given_keys(text, ("is_", "starts", "sha256")):
            yield (key,), "say is, starts or sha256"
    for name, pattern in (when.header or {}).items():
        yield from _check_pattern(("header", name), pattern)
    for index, inner in enumerate(when.any_ or ()):
        yield from _prefixed(("any", index), _check_when(inner))
    if when.any_ == []:
        yield ("any",), "of an empty list nothing can hold"
    if when.not_ is not None:
        yield from _prefixed(("not",), _check_when(when.not_))


def _check_pattern(path: ProblemPath, pattern: str) -> FoundProblems:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        yield path, f"this is no regular expression: {error} (for an exact text write {{is: …}})"


def _check_reply(reply: Sequence[ReplyItem]) -> FoundProblems:
    highest = 0
    for index, said in enumerate(reply):
        given = _given_keys(said, _REPLY_KEYS)
        if len(given) != 1:
            yield (index,), f"say one of {', '.join(_REPLY_KEYS)}, not {len(given)}"
            continue
        rank = _REPLY_KEYS.index(given[0])
        if rank < highest:
            yield (
                (index,),
                f"{given[0]} comes before {_REPLY_KEYS[highest]} in Gemini's answers; chunks can have any order",
            )
        highest = max(rank, highest)
        if said.call is not None and not said.call.name:
            yield (index, "call", "name"), "a function has a name"


def _check_stream_item(bit: StreamItem) -> FoundProblems:
    given = _given_keys(bit, _STREAM_KEYS)
    if len(given) != 1:
        yield (), f"say one of {', '.join(_STREAM_KEYS)}, not {len(given)}"
    for key in _REPLY_ONLY_KEYS:
        if getattr(bit, key) is not None and bit.parts is None:
            yield (key,), f"{key} goes with parts"


def _check_http(http: RawResponse) -> FoundProblems:
    given = _given_keys(http, _BODY_KEYS)
    if len(given) > 1:
        yield (given[1],), f"an answer has one body, and this one has {' and '.join(given)}"
    for name, value in http.headers.items():
        if not _HEADER_NAME.fullmatch(name):
            yield ("headers", name), "this cannot be the name of a header"
        if not _HEADER_VALUE.fullmatch(value):
            yield ("headers", name), "this cannot be the value of a header"
        if name.lower() in _OWN_HEADERS:
            yield ("headers", name), "this header is written by the emulator"
    for index, piece in enumerate(http.pieces or ()):
        if isinstance(piece, BodyItem):
            yield from _prefixed(("pieces", index), _check_body_item(piece))


def _check_body_item(piece: BodyItem) -> FoundProblems:
    given = _given_keys(piece, _BODY_ITEM_KEYS)
    if len(given) != 1:
        yield (), f"say one of {', '.join(_BODY_ITEM_KEYS)}, not {len(given)}"
    try:
        base64.b64decode(piece.base64 or "", validate=True)
    except (binascii.Error, ValueError):
        yield ("base64",), "this is not base64"


def _check_faults(step: ScriptStep) -> FoundProblems:
    many = isinstance(step.fault, list)
    for index, said in enumerate(step.fault if isinstance(step.fault, list) else [step.fault]):
        if said is None:
            continue
        path: ProblemPath = ("fault", index) if many else ("fault",)
        if isinstance(said, Mapping) and len(said) != 1:
            yield path, "say one fault per mapping: a list can hold several"
            continue
        name, argument = (said, None) if isinstance(said, str) else next(iter(said.items()))
        what = _fault_problem(name, argument, own_chunks=step.chunks is not None or step.http is not None)
        if what:
            yield path, what


def _given_keys(table: msgspec.Struct, keys: Sequence[str]) -> list[Any]:
    return [key for key in keys if getattr(table, key) is not None]


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


def _fault_problem(name: str, argument: Any, *, own_chunks: bool) -> str:
    """Return why a step cannot have this fault, or "".

    `own_chunks` is true for a step that defines its own chunks or HTTP response.
    """
    try:
        fault = make_fault(name, argument)
    except ConfigError as error:
        return error.message
    if own_chunks and fault.change_chunks is not None:
        return f"{name} changes what the model says: it goes with reply, or with no answer at all"
    return ""
