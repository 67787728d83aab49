"""fields.json compiled: for each contract, every message with its fields under every accepted spelling."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from dragoman.emulator.backend import Backend
from dragoman.emulator.validate.messages import ENUMS, unpublished_messages

#: What a part is: exactly one of these. Discovery documents do not say so, Google's parser does.
PART_DATA = (
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)

#: What no published table has either: a second spelling on AI Studio.
_EXTRA_SPELLINGS = {
    "_responseJsonSchema": "responseJsonSchema",
    "_response_json_schema": "responseJsonSchema",
}

#: Kinds whose values need no reading when they come as this type.
_PLAIN = {"string": str, "bool": bool, "struct": dict}

#: Discovery nests these enums; the protos and the error texts do not.
_ENUM_TYPE_NAMES = {"Schema.Type": "Type"}


class Field:
    """One field: its canonical and snake_case names, what it holds, and how often.

    `plain` is the type of the values that are taken as they are.
    """

    __slots__ = (
        "enum",
        "is_list",
        "is_map",
        "kind",
        "message",
        "name",
        "oneof",
        "plain",
        "snake",
        "type_name",
    )

    def __init__(self, name: str, entry: dict[str, Any], oneof: str) -> None:
        self.name = name
        self.snake = to_snake(name)
        self.is_list: bool = entry.get("rep", False)
        self.oneof = oneof
        kind: str = entry["kind"]
        self.is_map = kind.startswith("map:")
        self.kind, _, self.type_name = kind.removeprefix("map:").partition(":")
        self.plain = None if self.is_list or self.is_map else _PLAIN.get(self.kind)
        self.message: Message | None = None
        self.enum: dict[str, str] = {}


class Message:
    """One message: its fields by every accepted spelling."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: dict[str, Field] = {}


def to_snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda match: "_" + match.group().lower(), name)


def load_messages(backend: Backend) -> dict[str, Message]:
    """Every message of the contract behind a back end."""
    return _compile(backend.table)


@cache
def _read_tables() -> dict[str, Any]:
    text = resources.files("dragoman.emulator").joinpath("fields.json").read_bytes()
    tables: dict[str, Any] = msgspec.json.decode(text)
    return tables


@cache
def _compile(table: str) -> dict[str, Message]:
    source = _read_tables()[table]
    entries = {**source["messages"], **unpublished_messages(table)}
    enums = {**source["enums"], **ENUMS}
    messages = {name: Message(name) for name in entries}
    for name, fields in entries.items():
        for field_name, entry in fields.items():
            data = "data" if name == "Part" and field_name in PART_DATA else ""
            field = Field(field_name, entry, entry.get("oneof", data) or data)
            _link(field, messages, enums)
            messages[name].fields[field.name] = field
            messages[name].fields[field.snake] = field
    config = messages["GenerationConfig"].fields
    config.update({spelling: config[name] for spelling, name in _EXTRA_SPELLINGS.items() if table == "mldev"})
    return messages


def _link(field: Field, messages: dict[str, Message], enums: dict[str, list[str]]) -> None:
    if field.kind == "msg":
        field.message = messages[field.type_name]
    elif field.kind == "enum":
        values = enums[field.type_name]
        field.enum = {value.upper(): value for value in values}
        field.enum.update({str(number): value for number, value in enumerate(values)})
        plain = field.type_name.removeprefix("mldev.")
        field.type_name = _ENUM_TYPE_NAMES.get(plain, plain)
