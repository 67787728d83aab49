"""Stage 1: JSON to message, table-driven, reporting every violation at once in Google's words.

The result is the same document in canonical spelling: camelCase names, enum names as published, numbers as
numbers, bytes decoded, lists always lists, nulls gone. The later stages see only that.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.emulator.backend import Backend
from dragoman.emulator.refusal import Refusal, bad_fields
from dragoman.emulator.validate.scalars import READERS, TYPE_WORDS, Unreadable
from dragoman.emulator.validate.tables import Field, Message, load_messages

#: Levels of `properties` that still pass (measured 2026-09).
_MAX_PROPERTY_DEPTH = 30

_NOT_REPEATING = "Proto field is not repeating, cannot start list."

#: A place: (parent place, snake name, index). Rendered only when something is wrong there.
Place = tuple[Any, str, int | None] | None


def parse(raw: bytes, backend: Backend, message: str = "GenerateContentRequest") -> dict[str, Any]:
    """The canonical document, or Google's refusal naming everything that is wrong with it."""
    try:
        document = msgspec.json.decode(raw or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _broken_json(raw) from None
    except RecursionError:
        raise Refusal("Invalid JSON payload received. Message too deep.") from None
    if not isinstance(document, dict):
        line = 'Invalid JSON payload received. Unknown name "": Root element must be a message.'
        raise bad_fields([("", line)])
    walker = _Walker(backend)
    parsed = walker.read_message(document, load_messages(backend)[message], None, 0)
    if walker.violations:
        raise bad_fields(walker.violations)
    return parsed


class _Walker:
    """Walks one document along the tables and collects (path, line) violations."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.violations: list[tuple[str, str]] = []

    def read_message(
        self, value: dict[str, Any], message: Message, place: Place, depth: int
    ) -> dict[str, Any]:
        fields = message.fields
        parsed: dict[str, Any] = {}
        taken: dict[str, str] = {}
        for key, item in value.items():
            field = fields.get(key)
            if field is None:
                self._unknown(key, place)
                continue
            if item is None:
                continue
            if field.oneof and taken.setdefault(field.oneof, field.name) != field.name:
                self._second_of(field, key, place)
                continue
            result = self._read_field(item, field, place, depth)
            if field.is_list and field.name in parsed:
                result = parsed[field.name] + result
            parsed[field.name] = result
        return parsed

    def _read_field(self, value: Any, field: Field, parent: Place, depth: int) -> Any:
        if field.is_list:
            items = value if isinstance(value, list) else [value]
            return [
                self._read_one(item, field, parent, (parent, field.snake, index), depth)
                for index, item in enumerate(items)
                if item is not None
            ]
        if field.is_map:
            return self._read_map(value, field, parent, depth)
        return self._read_one(value, field, parent, (parent, field.snake, None), depth)

    def _read_map(self, value: Any, field: Field, parent: Place, depth: int) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._wrong_shape(value, field, parent, (parent, field.snake, None))
            return {}
        if field.message is not None and depth >= _MAX_PROPERTY_DEPTH:
            key = next(iter(value), field.name)
            line = f"Message too deep. Max recursion depth reached for key '{key}'"
            self.violations.append((render((parent, field.snake, None)), line))
            return {}
        parsed = {}
        for index, (key, item) in enumerate(value.items()):
            place = ((parent, field.snake, index), "value", None)
            if item is not None:
                parsed[key] = self._read_one(item, field, (parent, field.snake, index), place, depth + 1)
        return parsed

    def _read_one(self, value: Any, field: Field, parent: Place, place: Place, depth: int) -> Any:
        if field.message is not None:
            if isinstance(value, dict):
                return self.read_message(value, field.message, place, depth)
            return self._wrong_shape(value, field, parent, place)
        kind = field.kind
        if kind == "value" or (kind == "struct" and isinstance(value, dict)):
            return value
        if isinstance(value, dict | list) or kind == "struct":
            return self._wrong_shape(value, field, parent, place)
        if kind == "enum":
            return self._read_enum(value, field, place)
        try:
            return READERS[kind](value)
        except Unreadable as problem:
            return self._invalid(place, TYPE_WORDS[kind], str(problem) or _show(value))

    def _read_enum(self, value: Any, field: Field, place: Place) -> str | None:
        if isinstance(value, str | int) and not isinstance(value, bool):
            name = field.enum.get(str(value).upper().replace("-", "_"))
            if name is not None:
                return name
        self._invalid(place, self.backend.type_url(field.type_name), _show(value))
        return None

    def _wrong_shape(self, value: Any, field: Field, parent: Place, place: Place) -> None:
        """A list, an object or a scalar where the field wants another of them."""
        if isinstance(value, list):
            self._unknown(field.snake, parent, _NOT_REPEATING)
        elif isinstance(value, dict):
            self._invalid(parent, field.snake, "Starting an object on a scalar field")
        else:
            word = TYPE_WORDS.get(field.kind) or self.backend.type_url(field.type_name)
            self._invalid(place, word, _show(value))

    def _unknown(self, name: str, place: Place, why: str = "Cannot find field.") -> None:
        path = render(place)
        at = f" at '{path}'" if path else ""
        why = why if name else "Proto fields must have a name."
        self.violations.append((path, f'Invalid JSON payload received. Unknown name "{name}"{at}: {why}'))

    def _second_of(self, field: Field, key: str, place: Place) -> None:
        self._invalid(place, "oneof", f"oneof field '{field.oneof}' is already set. Cannot set '{key}'")

    def _invalid(self, place: Place, word: str, why: str) -> None:
        path = render(place)
        self.violations.append((path, f"Invalid value at '{path}' ({word}), {why}"))


def render(place: Place) -> str:
    """`tools[0].function_declarations[1].parameters.properties[2].value`"""
    names: list[str] = []
    while place is not None:
        parent, name, index = place
        names.append(name if index is None else f"{name}[{index}]")
        place = parent
    return ".".join(reversed(names))


def _show(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else msgspec.json.encode(value).decode()


def _broken_json(raw: bytes) -> Refusal:
    """Google quotes the place; ours is the start of the body."""
    snippet = raw[:40].decode("utf-8", "replace")
    line = f"Invalid JSON payload received. Unexpected token.\n{snippet}\n^"
    return bad_fields([("", line)])
