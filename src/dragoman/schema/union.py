"""Combine alternatives into one node: `anyOf`, `nullable`, or a single object at the root."""

from __future__ import annotations

from typing import Any

from dragoman.notes import Note
from dragoman.schema.describe import add_sentence, join_names, show
from dragoman.schema.merge import ANNOTATIONS, overlay
from dragoman.schema.spell import distinct
from dragoman.schema.walk import Path, Schema, rebuild, step


def annotate(node: Schema, notes: Schema) -> Schema:
    """Return the node with the annotations of `notes`; a reference is wrapped in `anyOf`, since it allows none."""
    over = {key: notes[key] for key in ANNOTATIONS if key in notes}
    if "$ref" in node:
        return {**over, "anyOf": [node]} if over else node
    return overlay(over, node)


def unite(nodes: list[Schema], outer: Schema) -> Schema:
    """Return one node that allows what any of the nodes allows, with the annotations `outer`.

    One type and null become `nullable`, without `anyOf` (gemini-api.md 3.2).
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
