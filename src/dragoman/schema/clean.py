"""Convert any JSON Schema to the forms that Google accepts.

`clean_schema` returns the subset of JSON Schema that is accepted as `parametersJsonSchema`. `relax_schema` simplifies
it further for a back end that refuses it as too complex for constrained decoding (known problem B12). `compile_schema`
returns Google's OpenAPI-like `Schema` message, with an allow-list of fields
(https://ai.google.dev/api/caching#Schema), for back ends that do not accept `parametersJsonSchema`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from dragoman.notes import Note
from dragoman.schema.alternatives import (
    FlatNode,
    Flattener,
    SchemaPosition,
    annotate,
    simplify_union,
    unite,
    unite_roots,
)
from dragoman.schema.args import PLACEHOLDER
from dragoman.schema.describe import add_sentence, allowed_values, join_names, show
from dragoman.schema.normalize import distinct
from dragoman.schema.single_type import finish
from dragoman.schema.walk import Path, Schema, Target, children, cut, rebuild, step, too_deep

_MAX_JSON_DEPTH: Final = 120
_MAX_PASSES: Final = 5
_ROOT: Target = ()


def clean_schema(schema: object, *, where: str, vertex: bool = False) -> tuple[Schema, tuple[Note, ...]]:
    """Return the schema in Google's subset, always with an object as root, and a note for everything lost.

    With `vertex` no node has keywords beside `anyOf`, which Vertex has been seen to refuse.
    """
    notes: list[Note] = []

    def clean(document: Schema) -> Schema:
        out = _Pass(document, notes).run(where)
        return simplify_union(out, where, notes) if vertex else out

    before, out = Schema(), clean(_document(schema, where, notes))
    passes = 1
    while (vertex or "$defs" in out) and out != before and passes < _MAX_PASSES:
        # Another pass unites branches that folding made equal, and inlines definitions that are no longer recursive.
        before, out = out, clean(out)
        passes += 1
    return out, tuple(dict.fromkeys(notes))


def _document(schema: object, where: str, notes: list[Note]) -> Schema:
    if not isinstance(schema, dict):
        if schema is not True:
            notes.append(Note("repaired", where, "not a schema: taken as an object without properties"))
        return {}
    if too_deep(schema, _MAX_JSON_DEPTH):
        notes.append(Note("dropped", where, f"everything below {_MAX_JSON_DEPTH} levels of nesting"))
        return dict(cut(schema, _MAX_JSON_DEPTH))
    return schema


class _Pass:
    """One conversion of one document."""

    def __init__(self, document: Schema, notes: list[Note]) -> None:
        self._document = document
        self._flattener = Flattener(document, notes)
        self._notes = notes

    def run(self, where: str) -> Schema:
        top = frozenset({_ROOT})
        spot = SchemaPosition(where, 0, top, needed=True, chain=top)
        flats, outer = self._flattener.options(self._document, spot)
        out = unite_roots([self._plain(flat, spot) for flat in flats], outer, where, self._notes)
        defs: Schema = {}
        for name, target in self._flattener.wanted:  # grows during the loop
            top = frozenset({target})
            start = SchemaPosition(step(where, ("$defs", name)), 0, top, needed=True, chain=top)
            defs[name] = self._node(self._flattener.refs.value(target), start)
        return {**out, "$defs": defs} if defs else out

    def _node(self, raw: Any, spot: SchemaPosition) -> Schema:
        flats, outer = self._flattener.options(raw, spot)
        return unite([self._plain(flat, spot) for flat in flats], outer)

    def _plain(self, flat: FlatNode, spot: SchemaPosition) -> Schema:
        if "$ref" in flat.schema:
            return annotate({"$ref": flat.schema["$ref"]}, flat.schema)
        ready = finish(flat.schema, spot.where, self._notes)
        required = frozenset(ready.get("required", ()))

        def visit(sub: Any, path: Path) -> Any:
            if path == ("additionalProperties",) and isinstance(sub, bool):
                return sub
            # Directly below the root of a document or definition (only roots have a chain), a cycle through items
            # is not inside any property, so it does not count as needed.
            same = spot.needed and not spot.chain
            needed = path[1] in required if path[0] == "properties" else same
            return self._node(sub, spot.below(path, flat.inside, needed=needed))

        return self._release(rebuild(ready, visit), spot)

    def _release(self, schema: Schema, spot: SchemaPosition) -> Schema:
        """Make recursive properties optional and require them in the description instead.

        Google unrolls a recursive reference only in properties that are not required.
        """
        required = schema.get("required", [])
        stuck = [name for name in required if _circles(schema["properties"][name])]
        if not stuck:
            return schema
        for name in stuck:
            self._notes.append(
                Note(
                    "moved",
                    step(spot.where, ("required",)),
                    f"{name!r} is recursive: only the description asks for it",
                )
            )
        out = {key: value for key, value in schema.items() if key != "required"}
        left = [name for name in required if name not in stuck]
        return add_sentence({**out, "required": left} if left else out, f"Required: {join_names(stuck)}.")


def _circles(node: Schema) -> bool:
    """Whether the node contains a reference that is not inside one of its own properties."""
    below = (sub for path, sub in children(node) if path[0] != "properties" and isinstance(sub, dict))
    return "$ref" in node or any(map(_circles, below))


#: Keywords that multiply the states of the decoding automaton, and the sentences that replace them.
_SENTENCES: Final[dict[str, str]] = {
    "minimum": "At least {}.",
    "maximum": "At most {}.",
    "minLength": "At least {} characters.",
    "maxLength": "At most {} characters.",
    "pattern": "Must match the pattern {}.",
    "format": "Format: {}.",
    "minItems": "At least {} items.",
    "maxItems": "At most {} items.",
    "minProperties": "At least {} properties.",
    "maxProperties": "At most {} properties.",
}
_MAX_ENUM_VALUES = 8  # a longer `enum` moves into the description


def relax_schema(schema: Any, *, where: str) -> tuple[Any, tuple[Note, ...]]:
    """Return the schema with bounds, patterns and long enums moved into the descriptions, and a note for each."""
    notes: list[Note] = []

    def relax(node: Any, place: str) -> Any:
        if not isinstance(node, dict):
            return node

        def visit(sub: Any, path: Path) -> Any:
            return relax(sub, step(place, path))

        return _relaxed(rebuild(node, visit), place, notes)

    return relax(schema, where), tuple(notes)


def _relaxed(node: Schema, where: str, notes: list[Note]) -> Schema:
    said = [(key, text.format(show(node[key]))) for key, text in _SENTENCES.items() if key in node]
    values = node.get("enum")
    if isinstance(values, list) and len(values) > _MAX_ENUM_VALUES:
        said.append(("enum", allowed_values(values)))
    for key, text in said:
        node = add_sentence({name: value for name, value in node.items() if name != key}, text)
        why = "into the description: with all of its rules Google found the tools too complex"
        notes.append(Note("moved", step(where, (key,)), why))
    return node


# Google requires non-empty `properties` in every OBJECT, at any depth. A nested object without known properties
# therefore gets one optional property, PLACEHOLDER, of type NULL. Omitting the type of the object is no alternative:
# the model could send a string, and Vertex refuses nodes without a type. A string with JSON would change the tool's
# contract. `mend_args` removes the property from the model's arguments, so the client's tool never sees it (known
# problem B7).
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
    """Return the schema as a `Schema` message, or None for a function without arguments (known problem B7)."""
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
