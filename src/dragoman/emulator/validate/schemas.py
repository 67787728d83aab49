"""Rules for the `Schema` message (`parameters`, `response`, `responseSchema`) and JSON Schema roots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.emulator.arguments.nodes import follow_reference
from dragoman.emulator.backend import Backend
from dragoman.emulator.refusal import ApiError

_STRING_FORMATS = ("enum", "date-time")
_LEARN_MORE = "Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling"
_MAX_REFERENCES = 16


def schema_problems(schema: Mapping[str, Any], path: str, backend: Backend) -> Iterator[str]:
    """Yield the bullets of a schema node and all nodes below it.

    The path of a property is `properties[name]`.
    """
    kind = schema.get("type", "")
    properties = schema.get("properties") or {}
    yield from _object_problems(schema, kind, path)
    if kind == "ARRAY" and "items" not in schema:
        yield f"{path}.items: missing field."
    if "items" in schema and kind != "ARRAY":
        yield f"{path}.items: field predicate failed: $type == Type.ARRAY"
    if schema.get("enum") and kind != "STRING":
        yield f"{path}.enum: only allowed for STRING type"
    form = schema.get("format")
    if form and kind == "STRING" and form not in _STRING_FORMATS and not backend.is_vertex:
        yield f"{path}.format: only 'enum' and 'date-time' are supported for STRING type"
    for name, node in properties.items():
        yield from schema_problems(node, f"{path}.properties[{name}]", backend)
    if "items" in schema:
        yield from schema_problems(schema["items"], f"{path}.items", backend)
    for index, branch in enumerate(schema.get("anyOf", ())):
        yield from schema_problems(branch, f"{path}.any_of[{index}]", backend)


def json_schema_problem(schema: Any, path: str) -> Iterator[str]:
    """Check that the root of parametersJsonSchema describes an object.

    Google is not known to reject anything below the root.
    """
    node = schema
    for _ in range(_MAX_REFERENCES):
        if not isinstance(node, Mapping) or not isinstance(node.get("$ref"), str):
            break
        node = follow_reference(schema, node["$ref"])
    if not isinstance(node, Mapping) or str(node.get("type", "")).lower() != "object":
        yield f"{path}: schema must describe an object at its root"


def check_vertex_schema(function: str, schema: Mapping[str, Any], path: str = "parameters") -> None:
    """Raise unless every node has a type and no node has other fields next to `any_of` (Vertex)."""
    if schema.get("anyOf"):
        if len(schema) > 1:
            raise _vertex_schema_error(
                function,
                path,
                "schema specified other fields alongside any_of. When using any_of, it must be "
                "the only field set.",
            )
    elif schema.get("type", "TYPE_UNSPECIFIED") == "TYPE_UNSPECIFIED" and "ref" not in schema:
        raise _vertex_schema_error(
            function,
            path,
            "schema didn't specify the schema type field. For schema, type field must be specified.",
        )
    for name, node in (schema.get("properties") or {}).items():
        check_vertex_schema(function, node, f"{path}.{name}")
    if "items" in schema:
        check_vertex_schema(function, schema["items"], f"{path}.items")
    for branch in schema.get("anyOf", ()):
        check_vertex_schema(function, branch, path)


def _object_problems(schema: Mapping[str, Any], kind: str, path: str) -> Iterator[str]:
    properties = schema.get("properties") or {}
    if kind == "OBJECT":
        # Only Vertex has `additionalProperties`, and accepts a map of anything as an object (recorded).
        if not properties and "additionalProperties" not in schema:
            yield f"{path}.properties: should be non-empty for OBJECT type"
        if "" in properties:
            yield f"{path}.properties[]: key cannot be empty"
        for index, name in enumerate(schema.get("required", ())):
            if name not in properties:
                yield f"{path}.required[{index}]: property is not defined"
        return
    if properties:
        yield f"{path}.properties: only allowed for OBJECT type"
    if schema.get("required"):
        yield f"{path}.required: only allowed for OBJECT type"


def _vertex_schema_error(function: str, path: str, words: str) -> ApiError:
    return ApiError(
        f"Unable to submit request because `{function}` functionDeclaration `{path}` {words} {_LEARN_MORE}"
    )
