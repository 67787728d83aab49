"""Convert a JSON Schema to Google's OpenAPI-like `Schema` message, with an allow-list of fields (gemini-api.md 3.1).

This is the fallback for back ends that do not accept `parametersJsonSchema`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from dragoman.notes import Note
from dragoman.schema.args import PLACEHOLDER
from dragoman.schema.clean import clean_schema
from dragoman.schema.describe import add_sentence, allowed_values, show
from dragoman.schema.spell import distinct
from dragoman.schema.union import annotate, simplify_union
from dragoman.schema.walk import Path, Schema, step

# Google requires non-empty `properties` in every OBJECT, at any depth. A nested object without known properties
# therefore gets one optional property, PLACEHOLDER, of type NULL. Omitting the type of the object is no alternative:
# the model could send a string, and Vertex refuses nodes without a type. A string with JSON would change the tool's
# contract. `mend_args` removes the property from the model's arguments, so the client's tool never sees it (B7).
_MAX_DEPTH: Final = 28  # Google's limit is 30; an untyped leaf for Vertex takes two more levels
_MAX_NODES: Final = 2_000
_MAX_RECURSION: Final = 2

_ANY_TYPE: Final = ("title", "description", "default", "nullable")
_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "string": ("format", "enum", "pattern", "minLength", "maxLength"),
    "number": ("format", "minimum", "maximum"),
    "integer": ("format", "minimum", "maximum"),
    "boolean": (),
    "array": ("items", "minItems", "maxItems"),
    "object": ("properties", "required", "minProperties", "maxProperties", "propertyOrdering"),
    "null": (),
}
_FORMATS: Final = {
    "string": ("enum", "date-time"),
    "number": ("float", "double"),
    "integer": ("int32", "int64"),
}


def compile_schema(
    schema: object, *, where: str, vertex: bool = False
) -> tuple[dict[str, Any] | None, tuple[Note, ...]]:
    """Return the schema as a `Schema` message, or None for a function without arguments (B7)."""
    clean, notes = clean_schema(schema, where=where)
    if not clean["properties"] and not clean.get("additionalProperties"):
        return None, notes
    run = _Compiler(clean.get("$defs", {}), list(notes), vertex=vertex)
    out = run.node(clean, _Position(where, 1, ()))
    out = simplify_union(out, where, run.notes) if vertex else out
    return out, tuple(dict.fromkeys(run.notes))


class _Position(NamedTuple):
    where: str
    depth: int
    inside: tuple[str, ...]  # names of the enclosing definitions, to limit recursion

    def below(self, path: Path) -> _Position:
        return _Position(step(self.where, path), self.depth + 1, self.inside)


class _Compiler:
    """Converts one schema that `clean_schema` returned."""

    def __init__(self, defs: dict[str, Schema], notes: list[Note], *, vertex: bool) -> None:
        self.notes = notes
        self._defs = defs
        self._vertex = vertex
        self._nodes = 0

    def node(self, schema: Schema, spot: _Position) -> Schema:
        self._nodes += 1
        if spot.depth >= _MAX_DEPTH or self._nodes > _MAX_NODES:
            self.notes.append(
                Note("dropped", spot.where, "nested too deep or too large for Gemini: left open")
            )
            return self._open({})
        if "$ref" in schema:
            return self._unroll(schema["$ref"].removeprefix("#/$defs/"), spot)
        if "anyOf" in schema:
            return self._union(schema, spot)
        return self._typed(schema, spot) if "type" in schema else self._open(schema)

    def _unroll(self, name: str, spot: _Position) -> Schema:
        if spot.inside.count(name) >= _MAX_RECURSION:
            self.notes.append(
                Note("dropped", spot.where, f"{name!r} is recursive: left open after {_MAX_RECURSION} rounds")
            )
            return self._open({})
        return self.node(self._defs[name], spot._replace(inside=(*spot.inside, name)))

    def _union(self, schema: Schema, spot: _Position) -> Schema:
        branches = [self.node(sub, spot.below(("anyOf", i))) for i, sub in enumerate(schema["anyOf"])]
        rest = [sub for sub in branches if sub.get("type") != "NULL"]
        if len(rest) == 1 and "type" in rest[0]:
            out = annotate(rest[0], schema)
            return {**out, "nullable": True} if len(rest) < len(branches) else out
        return {**annotate({}, schema), "anyOf": branches}

    def _open(self, schema: Schema) -> Schema:
        """Return a node that allows any value: AI Studio accepts no type at all, Vertex requires one on every node."""
        if not self._vertex:
            return annotate({}, schema)
        kinds: list[Schema] = [{"type": kind} for kind in ("STRING", "NUMBER", "BOOLEAN")]
        return annotate({"anyOf": [*kinds, {"type": "ARRAY", "items": {"type": "STRING"}}, _EMPTY]}, schema)

    def _typed(self, schema: Schema, spot: _Position) -> Schema:
        kind = schema["type"]
        out = {key: schema[key] for key in (*_ANY_TYPE, *_FIELDS[kind]) if key in schema}
        out = {"type": kind.upper(), **self._describe(out, schema, spot)}
        if kind == "object":
            subs = schema.get("properties") or {}
            made = {name: self.node(sub, spot.below(("properties", name))) for name, sub in subs.items()}
            return {**out, "properties": made} if made else {**out, "properties": _EMPTY["properties"]}
        if kind == "array":
            out["items"] = self._items(schema, spot)
        return out

    def _items(self, schema: Schema, spot: _Position) -> Schema:
        """Return the `items` of an array; a tuple becomes an array whose items match any of its members."""
        tuples = [(("prefixItems", i), sub) for i, sub in enumerate(schema.get("prefixItems", ()))]
        items = [(("items",), schema["items"])] if "items" in schema else []
        made = distinct([self.node(sub, spot.below(path)) for path, sub in [*tuples, *items]])
        closed = "items" not in schema and schema.get("maxItems", len(tuples) + 1) <= len(tuples)
        if len(made) == 1 and (items or closed):
            return dict(made[0])
        return {"anyOf": made} if items or closed else self._open({})

    def _describe(self, out: Schema, schema: Schema, spot: _Position) -> Schema:
        """Move keywords that the message has no field for into the description."""
        kind = schema["type"]
        for key, text in _inexpressible(kind, schema):
            out = add_sentence({name: value for name, value in out.items() if name != key}, text)
            self.notes.append(
                Note("moved", step(spot.where, (key,)), "into the description: no such field at Google")
            )
        if "enum" in out:
            out["enum"] = [value for value in out["enum"] if value]
            if len(out["enum"]) < len(schema["enum"]):
                self.notes.append(
                    Note("moved", step(spot.where, ("enum",)), "Google refuses an empty string here")
                )
                out = add_sentence(out, "May be empty.")
            if not out["enum"]:
                del out["enum"]
        return out


def _inexpressible(kind: str, schema: Schema) -> list[tuple[str, str]]:
    """Return the keywords that the message has no field for, each with a sentence for the description."""
    said = []
    if schema.get("format", "") not in ("", *_FORMATS.get(kind, ())):
        said.append(("format", f"Format: {schema['format']}."))
    if "enum" in schema and kind != "string":
        said.append(("enum", allowed_values(schema["enum"])))
    if schema.get("uniqueItems"):
        said.append(("uniqueItems", "Items must be unique."))
    if "prefixItems" in schema:
        said.append(("prefixItems", f"In this order: {show(schema['prefixItems'])}"))
    if isinstance(schema.get("additionalProperties"), dict) and schema["additionalProperties"]:
        said.append(("additionalProperties", f"Other properties: {show(schema['additionalProperties'])}"))
    return said


_EMPTY: Final[Schema] = {
    "type": "OBJECT",
    "properties": {PLACEHOLDER: {"type": "NULL", "description": "Never set."}},
}
