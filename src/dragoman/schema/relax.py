"""Simplify a schema for a back end that refuses it as too complex for constrained decoding (pain B12)."""

from __future__ import annotations

from typing import Any, Final

from dragoman.notes import Note
from dragoman.schema.describe import add_sentence, allowed_values, show
from dragoman.schema.walk import Path, Schema, rebuild, step

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
