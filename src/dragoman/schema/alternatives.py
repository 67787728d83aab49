"""Split a node into alternatives of one type each, and combine alternatives into one node again.

`Flattener` resolves references, `allOf` and unions; `unite` writes the alternatives as `anyOf`, `nullable`, or a single
object at the root.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from dragoman.notes import Note, NoteKind
from dragoman.schema.describe import add_sentence, describe_keywords, groups, join_names, show
from dragoman.schema.normalize import ANNOTATIONS, distinct, fits, merge, normalize, overlay
from dragoman.schema.single_type import DESCRIBED_FOR_ANY_TYPE, name_types, narrow
from dragoman.schema.walk import Path, Refs, Schema, Target, rebuild, step

MAX_DEPTH: Final = 60  # schema levels plus reference hops; each takes up to six frames of Python's stack
MAX_NODES: Final = 5_000  # limits references that grow exponentially ("a: [b, b], b: [c, c]…")

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")


class SchemaPosition(NamedTuple):
    """A position in the schema, with the state of the traversal there."""

    where: str
    depth: int
    inside: frozenset[Target]  # the enclosing targets that are recursive
    needed: bool  # there is no optional property between here and the root of the document or definition
    chain: frozenset[Target] = frozenset()  # the references followed to reach this node

    def below(self, path: Path, inside: frozenset[Target], *, needed: bool) -> SchemaPosition:
        """Return the position of a subschema."""
        return SchemaPosition(step(self.where, path), self.depth + 1, inside, needed)

    def beside(self, path: Path) -> SchemaPosition:
        """Return the position of a schema that applies to the same value, such as a member of `allOf`."""
        return self._replace(where=step(self.where, path), depth=self.depth + 1)


class FlatNode(NamedTuple):
    """A normalized node without `allOf`; it has a `$ref` only if the reference is recursive."""

    schema: Schema
    inside: frozenset[Target]
    rest: tuple[Schema, ...] = ()  # schemas that could not be merged into it
    possible: bool = True


class Flattener:
    """Resolves the nodes of one document; `wanted` are the definitions that its recursive references need."""

    def __init__(self, document: Schema, notes: list[Note]) -> None:
        self.refs = Refs(document)
        self.wanted: list[tuple[str, Target]] = []
        self._names: dict[Target, str] = {}
        self._taken: dict[str, int] = {}
        self._notes = notes
        self._nodes = 0

    def options(self, raw: Any, spot: SchemaPosition) -> tuple[list[FlatNode], Schema]:
        """Return the alternatives of a node, each of one type, and the annotations that apply to all of them."""
        return self._expand(self._flatten(raw, spot), spot)

    def _flatten(self, raw: Any, spot: SchemaPosition) -> FlatNode:
        self._nodes += 1
        if spot.depth > MAX_DEPTH or self._nodes > MAX_NODES:
            self._note("dropped", spot, f"too large: over {MAX_DEPTH} levels or {MAX_NODES} nodes")
            return FlatNode({}, spot.inside)
        if not isinstance(raw, dict):
            if raw is not True:
                self._note("dropped", spot, "nothing is allowed here")
            return FlatNode({}, spot.inside, possible=raw is True)
        schema = normalize(raw, spot.where, self._notes)
        members = schema.pop("allOf", [])
        ref = schema.pop("$ref", None)
        flat = FlatNode(schema, spot.inside)
        if ref is not None:
            flat = self._join(flat, self._follow(ref, spot), spot)
        for i, member in enumerate(members):
            flat = self._join(flat, self._flatten(member, spot.beside(("allOf", i))), spot)
        return flat

    def _follow(self, ref: str, spot: SchemaPosition) -> FlatNode:
        """Return the target of a reference; a recursive one stays a `$ref` within itself and in optional properties."""
        target = self.refs.find(ref)
        if target is None or target in spot.chain:
            why = "points nowhere in this schema" if target is None else "leads only back to itself"
            self._note("dropped", spot, f"the reference {ref!r} {why}: anything is allowed here")
            return FlatNode({}, spot.inside)
        inside = spot.inside
        if self.refs.is_recursive(target):
            if target in inside or not spot.needed:
                return FlatNode({"$ref": f"#/$defs/{self._name(target)}"}, inside)
            inside |= {target}
        return self._flatten(
            self.refs.value(target),
            spot._replace(depth=spot.depth + 1, inside=inside, chain=spot.chain | {target}),
        )

    def _name(self, target: Target) -> str:
        """Return the name of a definition in the new `$defs`."""
        if target not in self._names:
            name = _UNSAFE.sub("_", target[-1] if target else "root") or "_"
            while name in self._taken:
                self._taken[name] += 1
                name = f"{name}_{self._taken[name]}"
            self._taken[name] = 1
            self._names[target] = name
            self.wanted.append((name, target))
        return self._names[target]

    def _join(self, a: FlatNode, b: FlatNode, spot: SchemaPosition) -> FlatNode:
        """Return a node for values that satisfy both."""
        inside, rest, possible = a.inside | b.inside, a.rest + b.rest, a.possible and b.possible
        if "$ref" in a.schema or "$ref" in b.schema:
            kept, other = (a.schema, b.schema) if "$ref" in a.schema else (b.schema, a.schema)
            left = {key: value for key, value in other.items() if key not in ANNOTATIONS}
            return FlatNode(overlay(other, kept), inside, rest + ((left,) if left else ()), possible)
        both = merge(a.schema, b.schema)
        if both is None:
            self._note("dropped", spot, "no value can satisfy all of its parts")
            return FlatNode(a.schema, inside, (*rest, b.schema), possible=False)
        return FlatNode(both[0], inside, rest + ((both[1],) if both[1] else ()), possible)

    def _expand(self, flat: FlatNode, spot: SchemaPosition) -> tuple[list[FlatNode], Schema]:
        """Split a node by its union and its types; describe the parts that cannot be merged."""
        schema, unions = flat.schema, [key for key in ("anyOf", "oneOf") if key in flat.schema]
        rest = flat.rest
        if len(unions) == 2:
            rest = (*rest, {"oneOf": schema["oneOf"]})
            schema = {key: value for key, value in schema.items() if key != "oneOf"}
        for left in rest:
            schema = add_sentence(schema, f"Must also match {show(left)}.")
            self._note("moved", spot, "parts that do not merge, into the description")
        schema = describe_keywords(schema, DESCRIBED_FOR_ANY_TYPE, spot.where, self._notes)
        flat = FlatNode(schema, flat.inside)
        if "$ref" in schema:
            return [flat], {}
        return self._branches(flat, unions[0], spot) if unions else _split(flat)

    def _branches(self, flat: FlatNode, union: str, spot: SchemaPosition) -> tuple[list[FlatNode], Schema]:
        branches = flat.schema[union]
        base = {key: value for key, value in flat.schema.items() if key != union}
        if "properties" in base and all(
            isinstance(sub, dict) and sub.keys() == {"required"} for sub in branches
        ):
            wanted = [
                [str(name) for name in sub["required"]]
                for sub in branches
                if isinstance(sub["required"], list)
            ]
            self._note("moved", spot, f"{union} of required properties, into the description")
            return _split(flat._replace(schema=add_sentence(base, groups(union, wanted))))
        outer = {key: base.pop(key) for key in ANNOTATIONS if key in base}
        found: list[FlatNode] = []
        for i, branch in enumerate(branches):
            below = spot.beside((union, i))
            joined = self._join(FlatNode(base, flat.inside), self._flatten(branch, below), below)
            if joined.possible:
                inner, over = self._expand(joined, below)
                found += [one._replace(schema=overlay(over, one.schema)) for one in inner]
        if found:
            return found, outer
        self._note("dropped", spot, f"no branch of {union} can hold")
        return _split(flat._replace(schema={**base, **outer}))

    def _note(self, kind: NoteKind, spot: SchemaPosition, why: str) -> None:
        self._notes.append(Note(kind, spot.where, why))


def _split(flat: FlatNode) -> tuple[list[FlatNode], Schema]:
    """Split a node without a union into one alternative per type."""
    types = name_types(flat.schema)
    if "enum" in flat.schema:
        types = [kind for kind in types if any(fits(value, kind) for value in flat.schema["enum"])] or types
    if len(types) < 2:
        return [flat._replace(schema={**flat.schema, "type": types[0]}) if types else flat], {}
    outer = {key: flat.schema[key] for key in ANNOTATIONS if key in flat.schema}
    base = {key: value for key, value in flat.schema.items() if key not in ANNOTATIONS}
    return [flat._replace(schema=narrow(base, kind)) for kind in types], outer


def annotate(node: Schema, notes: Schema) -> Schema:
    """Return the node with the annotations of `notes`; a reference is wrapped in `anyOf`, since it allows none."""
    over = {key: notes[key] for key in ANNOTATIONS if key in notes}
    if "$ref" in node:
        return {**over, "anyOf": [node]} if over else node
    return overlay(over, node)


def unite(nodes: list[Schema], outer: Schema) -> Schema:
    """Return one node that allows what any of the nodes allows, with the annotations `outer`.

    One type and null become `nullable`, without `anyOf` (https://ai.google.dev/api/caching#Schema).
    """
    nulls = [node for node in nodes if node.get("type") == "null"]
    nullable = bool(nulls) or any("nullable" in node for node in nodes)
    bare = [_without(node, "nullable") for node in nodes if node.get("type") != "null"]
    rest = _one_enum(distinct(bare))
    if not rest:
        return annotate(nulls[0], outer)
    if len(rest) == 1:
        outer = _under(outer, [node["description"] for node in nulls if "description" in node])
        return _with_null(rest[0], outer) if nullable else annotate(rest[0], outer)
    return {**outer, "anyOf": [*rest, *(nulls[:1] or ([{"type": "null"}] if nullable else []))]}


def unite_roots(nodes: list[Schema], outer: Schema, where: str, notes: list[Note]) -> Schema:
    """Combine the alternatives of the root, which must be an object, into one object."""
    objects = [node for node in nodes if node.get("type", "object") == "object" and "anyOf" not in node]
    if not objects:
        notes.append(
            Note("dropped", where, "arguments are always an object: the schema is for something else")
        )
        return add_sentence(
            annotate({"type": "object", "properties": {}}, outer), f"Meant as {show(unite(nodes, {}))}."
        )
    if len(objects) == 1:
        return {"type": "object", "properties": {}, **annotate(_without(objects[0], "nullable"), outer)}
    notes.append(Note("moved", where, "alternatives of the root are one object: the description lists them"))
    properties: dict[str, list[Schema]] = {}
    for node in objects:
        for name, sub in node.get("properties", {}).items():
            properties.setdefault(name, []).append(sub)
    out: Schema = {
        "type": "object",
        "properties": {name: unite(subs, {}) for name, subs in properties.items()},
    }
    required = [name for name in properties if all(name in node.get("required", ()) for node in objects)]
    if required:
        out["required"] = required
    if all(node.get("additionalProperties") is False for node in objects):
        out["additionalProperties"] = False
    return add_sentence(
        annotate(out, outer), "Give one of these sets of properties: " + "; ".join(map(_form, objects)) + "."
    )


def simplify_union(schema: Schema, where: str, notes: list[Note]) -> Schema:
    """Return the schema without keywords beside `anyOf`: annotations move to the first branch that is no reference."""

    def visit(sub: Any, path: Path) -> Any:
        return simplify_union(sub, step(where, path), notes) if isinstance(sub, dict) else sub

    out = rebuild(schema, visit)
    if "anyOf" not in out or len(out) == 1:
        return out
    branches = list(out["anyOf"])
    first = next((i for i, sub in enumerate(branches) if "$ref" not in sub), None)
    if first is not None:
        branches[first] = simplify_union(annotate(branches[first], out), step(where, ("anyOf", first)), notes)
        return {"anyOf": branches}
    notes.append(Note("dropped", where, "title, description or default beside a recursive reference"))
    return {"anyOf": branches} if len(branches) > 1 else dict(branches[0])


def _with_null(node: Schema, outer: Schema) -> Schema:
    if "$ref" in node:
        return {**outer, "anyOf": [node, {"type": "null"}]}
    out = annotate(node, outer)
    if "anyOf" in out:
        return {**out, "anyOf": [*out["anyOf"], {"type": "null"}]}
    return {**out, "nullable": True} if "type" in out else out


def _under(outer: Schema, texts: list[str]) -> Schema:
    for text in texts:
        outer = add_sentence(outer, text)
    return outer


def _one_enum(nodes: list[Schema]) -> list[Schema]:
    """Combine literals of one type into one `enum`; zod and TypeScript write such unions."""
    if any(node.keys() != {"type", "enum"} or node["type"] != nodes[0]["type"] for node in nodes):
        return nodes
    values = [value for node in nodes for value in node["enum"]]
    return [{"type": nodes[0]["type"], "enum": distinct(values)}] if values else nodes


def _form(node: Schema) -> str:
    required = node.get("required", [])
    optional = [name for name in node.get("properties", {}) if name not in required]
    return (join_names(required) or "nothing") + (f" (optional {join_names(optional)})" if optional else "")


def _without(node: Schema, key: str) -> Schema:
    return {name: value for name, value in node.items() if name != key} if key in node else node
