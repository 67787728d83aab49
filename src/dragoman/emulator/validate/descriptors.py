"""Message and field descriptors: for each contract, every message with its fields by all accepted spellings.

They are compiled from fields.json and from the messages that no published table contains: counting, embedding,
caches and files.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from dragoman.emulator.routes import Backend

Fields = dict[str, dict[str, Any]]

_CONTENTS = {"kind": "msg:Content", "rep": True}
_STRING = {"kind": "string"}
_VALUES = {"kind": "value", "rep": True}

ENUMS = {
    "TaskType": [
        "TASK_TYPE_UNSPECIFIED",
        "RETRIEVAL_QUERY",
        "RETRIEVAL_DOCUMENT",
        "SEMANTIC_SIMILARITY",
        "CLASSIFICATION",
        "CLUSTERING",
        "QUESTION_ANSWERING",
        "FACT_VERIFICATION",
        "CODE_RETRIEVAL_QUERY",
    ]
}

_CACHED_CONTENT: Fields = {
    "name": _STRING,
    "displayName": _STRING,
    "model": _STRING,
    "contents": _CONTENTS,
    "systemInstruction": {"kind": "msg:Content"},
    "tools": {"kind": "msg:Tool", "rep": True},
    "toolConfig": {"kind": "msg:ToolConfig"},
    "ttl": {"kind": "duration", "oneof": "expiration"},
    "expireTime": {"kind": "timestamp", "oneof": "expiration"},
    "createTime": {"kind": "timestamp"},
    "updateTime": {"kind": "timestamp"},
    "usageMetadata": {"kind": "struct"},
}
_EMBEDDING: Fields = {
    "taskType": {"kind": "enum:TaskType"},
    "title": _STRING,
    "outputDimensionality": {"kind": "int32"},
}

_STUDIO: dict[str, Fields] = {
    "CountTokensRequest": {
        "contents": _CONTENTS,
        "generateContentRequest": {"kind": "msg:GenerateContentRequest"},
        "model": _STRING,
    },
    "CachedContent": _CACHED_CONTENT,
    "EmbedContentRequest": {"model": _STRING, "content": {"kind": "msg:Content"}, **_EMBEDDING},
    "BatchEmbedContentsRequest": {
        "model": _STRING,
        "requests": {"kind": "msg:EmbedContentRequest", "rep": True},
    },
    "CreateFileRequest": {"file": {"kind": "msg:File"}},
    "File": {
        "name": _STRING,
        "displayName": _STRING,
        "mimeType": _STRING,
        "sizeBytes": {"kind": "int64"},
    },
}
_VERTEX: dict[str, Fields] = {
    "CountTokensRequest": {
        "contents": _CONTENTS,
        "generationConfig": {"kind": "msg:GenerationConfig"},
        "instances": _VALUES,
        "model": _STRING,
        "systemInstruction": {"kind": "msg:Content"},
        "tools": {"kind": "msg:Tool", "rep": True},
    },
    "CachedContent": {**_CACHED_CONTENT, "encryptionSpec": {"kind": "struct"}},
    "EmbedContentRequest": {
        "content": {"kind": "msg:Content"},
        "autoTruncate": {"kind": "bool"},
        "embedContentConfig": {"kind": "msg:EmbedContentConfig"},
        **_EMBEDDING,
    },
    "EmbedContentConfig": {
        "autoTruncate": {"kind": "bool"},
        "documentOcr": {"kind": "bool"},
        "audioTrackExtraction": {"kind": "bool"},
        **_EMBEDDING,
    },
    "PredictRequest": {
        "instances": _VALUES,
        "parameters": {"kind": "value"},
        "labels": {"kind": "map:string"},
    },
    "ComputeTokensRequest": {"contents": _CONTENTS, "instances": _VALUES, "model": _STRING},
}


def unpublished_messages(table: str) -> dict[str, Fields]:
    """Return the messages of one contract: `mldev` is AI Studio, every other table is Vertex."""
    return _STUDIO if table == "mldev" else _VERTEX


#: A part has exactly one of these. Google's parser enforces it; discovery documents do not say so.
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

#: AI Studio accepts these spellings too; no published table has them.
_EXTRA_SPELLINGS = {
    "_responseJsonSchema": "responseJsonSchema",
    "_response_json_schema": "responseJsonSchema",
}

#: Kinds whose values are accepted without conversion if they have this Python type.
_PYTHON_TYPES = {"string": str, "bool": bool, "struct": dict}

#: Enums that are nested in discovery documents, but not in the protos and in error texts.
_ENUM_TYPE_NAMES = {"Schema.Type": "Type"}


class FieldDescriptor:
    """One field: its canonical and snake_case names, its type, and whether it is a list or a map.

    Values of the type `python_type` are accepted without conversion.
    """

    __slots__ = (
        "enum",
        "is_list",
        "is_map",
        "kind",
        "message",
        "name",
        "oneof",
        "python_type",
        "snake_name",
        "type_name",
    )

    def __init__(self, name: str, entry: dict[str, Any], oneof: str) -> None:
        self.name = name
        self.snake_name = to_snake(name)
        self.is_list: bool = entry.get("rep", False)
        self.oneof = oneof
        kind: str = entry["kind"]
        self.is_map = kind.startswith("map:")
        self.kind, _, self.type_name = kind.removeprefix("map:").partition(":")
        self.python_type = None if self.is_list or self.is_map else _PYTHON_TYPES.get(self.kind)
        self.message: MessageDescriptor | None = None
        self.enum: dict[str, str] = {}


class MessageDescriptor:
    """One message type: its fields by every accepted spelling."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: dict[str, FieldDescriptor] = {}


def to_snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda match: "_" + match.group().lower(), name)


def load_messages(backend: Backend) -> dict[str, MessageDescriptor]:
    """Return all message types of the contract of a backend."""
    return _compile(backend.table)


@cache
def _read_tables() -> dict[str, Any]:
    text = resources.files("dragoman.emulator").joinpath("fields.json").read_bytes()
    tables: dict[str, Any] = msgspec.json.decode(text)
    return tables


@cache
def _compile(table: str) -> dict[str, MessageDescriptor]:
    source = _read_tables()[table]
    entries = {**source["messages"], **unpublished_messages(table)}
    enums = {**source["enums"], **ENUMS}
    messages = {name: MessageDescriptor(name) for name in entries}
    for name, fields in entries.items():
        for field_name, entry in fields.items():
            data = "data" if name == "Part" and field_name in PART_DATA else ""
            field = FieldDescriptor(field_name, entry, entry.get("oneof", data) or data)
            _resolve_type(field, messages, enums)
            messages[name].fields[field.name] = field
            messages[name].fields[field.snake_name] = field
    config = messages["GenerationConfig"].fields
    config.update({spelling: config[name] for spelling, name in _EXTRA_SPELLINGS.items() if table == "mldev"})
    return messages


def _resolve_type(
    field: FieldDescriptor, messages: dict[str, MessageDescriptor], enums: dict[str, list[str]]
) -> None:
    if field.kind == "msg":
        field.message = messages[field.type_name]
    elif field.kind == "enum":
        values = enums[field.type_name]
        field.enum = {value.upper(): value for value in values}
        field.enum.update({str(number): value for number, value in enumerate(values)})
        plain = field.type_name.removeprefix("mldev.")
        field.type_name = _ENUM_TYPE_NAMES.get(plain, plain)
