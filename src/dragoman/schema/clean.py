"""Convert any JSON Schema to the subset that Google accepts as `parametersJsonSchema`."""

from __future__ import annotations

from typing import Any, Final

from dragoman.notes import Note
from dragoman.schema.describe import add_sentence, join_names
from dragoman.schema.flatten import FlatNode, Flattener, SchemaPosition
from dragoman.schema.plain import finish
from dragoman.schema.refs import Target
from dragoman.schema.union import annotate, simplify_union, unite, unite_roots
from dragoman.schema.walk import Path, Schema, children, cut, rebuild, step, too_deep

_MAX_JSON_DEPTH: Final = 120
_MAX_PASSES: Final = 5
_ROOT: Target = ()


def clean_schema(schema: object, *, where: str, vertex: bool = False) -> tuple[Schema, tuple[Note, ...]]:
    """Return the schema in Google's subset, always with an object as root, and a note for everything lost.

    With `vertex` no node has keywords beside `anyOf`, which Vertex has been seen to refuse (gemini-api.md 3.1).
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
