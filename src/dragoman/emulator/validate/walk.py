"""Walk a JSON document along the field tables; return the canonical form and collect all violations."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.emulator.backend import Backend
from dragoman.emulator.validate.scalars import SCALAR_READERS, TYPE_NAMES, InvalidScalar
from dragoman.emulator.validate.tables import FieldDescriptor, MessageDescriptor

#: Measured 2026-09: this many levels of `properties` are accepted.
_MAX_PROPERTY_DEPTH = 30

_NOT_REPEATING = "Proto field is not repeating, cannot start list."

#: A place is (parent place, snake name, index). It is rendered only for an error.
FieldPath = tuple[Any, str, int | None] | None


class MessageParser:
    """Walks one document and collects violations as (path, line)."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.violations: list[tuple[str, str]] = []

    def read_message(
        self, value: dict[str, Any], message: MessageDescriptor, place: FieldPath, depth: int
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
            name = field.name
            if field.oneof and taken.setdefault(field.oneof, name) != name:
                self._oneof_conflict(field, key, place)
            elif type(item) is field.python_type:
                parsed[name] = item
            elif field.is_list:
                result = self._read_list(item, field, place, depth)
                parsed[name] = parsed[name] + result if name in parsed else result
            elif field.is_map:
                parsed[name] = self._read_map(item, field, place, depth)
            else:
                parsed[name] = self._read_one(item, field, place, (place, field.snake_name, None), depth)
        return parsed

    def _read_list(self, value: Any, field: FieldDescriptor, parent: FieldPath, depth: int) -> list[Any]:
        items = value if isinstance(value, list) else [value]
        message, snake = field.message, field.snake_name
        return [
            self.read_message(item, message, (parent, snake, index), depth)
            if message is not None and type(item) is dict
            else self._read_one(item, field, parent, (parent, snake, index), depth)
            for index, item in enumerate(items)
            if item is not None
        ]

    def _read_map(self, value: Any, field: FieldDescriptor, parent: FieldPath, depth: int) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._wrong_shape(value, field, parent, (parent, field.snake_name, None))
            return {}
        if field.message is not None and depth >= _MAX_PROPERTY_DEPTH:
            key = next(iter(value), field.name)
            line = f"Message too deep. Max recursion depth reached for key '{key}'"
            self.violations.append((format_path((parent, field.snake_name, None)), line))
            return {}
        parsed = {}
        for index, (key, item) in enumerate(value.items()):
            entry = (parent, field.snake_name, index)
            if item is not None:
                parsed[key] = self._read_one(item, field, entry, (entry, "value", None), depth + 1)
        return parsed

    def _read_one(
        self, value: Any, field: FieldDescriptor, parent: FieldPath, place: FieldPath, depth: int
    ) -> Any:
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
            return SCALAR_READERS[kind](value)
        except InvalidScalar as problem:
            return self._invalid(place, TYPE_NAMES[kind], str(problem) or _show(value))

    def _read_enum(self, value: Any, field: FieldDescriptor, place: FieldPath) -> str | None:
        word = value
        if isinstance(value, float) and value.is_integer():
            word = int(value)
        name = None if isinstance(value, bool) else field.enum.get(str(word).upper().replace("-", "_"))
        if name is None:
            self._invalid(place, self.backend.type_url(field.type_name), _show(value))
        return name

    def _wrong_shape(self, value: Any, field: FieldDescriptor, parent: FieldPath, place: FieldPath) -> None:
        """Report a list, an object or a scalar where the field expects another of the three."""
        if isinstance(value, list):
            self._unknown(field.snake_name, parent, _NOT_REPEATING)
        elif isinstance(value, dict):
            self._invalid(parent, field.snake_name, "Starting an object on a scalar field")
        else:
            word = TYPE_NAMES.get(field.kind) or self.backend.type_url(field.type_name)
            self._invalid(place, word, _show(value))

    def _unknown(self, name: str, place: FieldPath, why: str = "Cannot find field.") -> None:
        path = format_path(place)
        at = f" at '{path}'" if path else ""
        why = why if name else "Proto fields must have a name."
        self.violations.append((path, f'Invalid JSON payload received. Unknown name "{name}"{at}: {why}'))

    def _oneof_conflict(self, field: FieldDescriptor, key: str, place: FieldPath) -> None:
        self._invalid(place, "oneof", f"oneof field '{field.oneof}' is already set. Cannot set '{key}'")

    def _invalid(self, place: FieldPath, word: str, why: str) -> None:
        path = format_path(place)
        self.violations.append((path, f"Invalid value at '{path}' ({word}), {why}"))


def format_path(place: FieldPath) -> str:
    """Return a place as `tools[0].function_declarations[1].parameters.properties[2].value`."""
    names: list[str] = []
    while place is not None:
        parent, name, index = place
        names.append(name if index is None else f"{name}[{index}]")
        place = parent
    return ".".join(reversed(names))


def _show(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else msgspec.json.encode(value).decode()
