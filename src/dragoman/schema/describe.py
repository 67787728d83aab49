"""Express keywords that Gemini does not support as short English sentences in the description (known problem B3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from dragoman.notes import Note
from dragoman.schema.normalize import join_text
from dragoman.schema.walk import Schema, step

_MAX_JSON_CHARS = 400  # of a value in one sentence


def show(value: object) -> str:
    """Return the value as JSON, truncated if it is long."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _MAX_JSON_CHARS else text[:_MAX_JSON_CHARS] + "…"


def join_names(values: list[str]) -> str:
    """Return property names as a comma-separated list in backticks."""
    return ", ".join(f"`{value}`" for value in values)


def allowed_values(values: list[Any]) -> str:
    """Return the sentence for an `enum` that Gemini cannot express."""
    listed = ", ".join(show(value) for value in values)
    return f"Must be {listed}." if len(values) == 1 else f"Allowed values: {listed}."


def describe_keywords(schema: Schema, keys: Iterable[str], where: str, notes: list[Note]) -> Schema:
    """Return the schema with these keywords moved into the description."""
    said = [(key, SENTENCES[key](schema[key], schema)) for key in keys if key in schema]
    out = {key: value for key, value in schema.items() if key not in dict(said)}
    for key, text in said:
        if text:
            out = add_sentence(out, text)
            notes.append(
                Note("moved", step(where, (key,)), "into the description: Gemini has no such keyword")
            )
    return out


def add_sentence(schema: Schema, text: str) -> Schema:
    """Return the schema with a sentence added to its description."""
    return {**schema, "description": join_text(schema.get("description", ""), text)}


def groups(union: str, branches: list[list[str]]) -> str:
    """Return the sentence for a union whose branches only have `required`."""
    how = "Exactly one" if union == "oneOf" else "At least one"
    return f"{how} of these must be given: " + "; ".join(join_names(branch) for branch in branches) + "."


def _if(value: Any, schema: Schema) -> str:
    parts = [f"If it matches {show(value)}"]
    parts += [f"then it must match {show(schema['then'])}"] if "then" in schema else []
    parts += [f"otherwise it must match {show(schema['else'])}"] if "else" in schema else []
    return ", ".join(parts) + "." if len(parts) > 1 else ""


def _needs(value: Any, _schema: Schema) -> str:
    return " ".join(
        f"With {join_names([name])}, {join_names(list(map(str, need)))} must be given too."
        if isinstance(need, list)
        else f"With {join_names([name])}, it must match {show(need)}."
        for name, need in value.items()
    )


def _meanings(value: Any, schema: Schema) -> str:
    pairs = zip(schema.get("enum", ()), value, strict=False)
    return "; ".join(f"{show(key)}: {text if isinstance(text, str) else show(text)}" for key, text in pairs)


def _contains(value: Any, schema: Schema) -> str:
    least, most = schema.get("minContains", 1), schema.get("maxContains")
    limit = f"at least {least}" if most is None else f"{least} to {most}"
    return f"Must contain {limit} matching {show(value)}."


def _phrase(template: str) -> Callable[[Any, Schema], str]:
    def say(value: Any, _schema: Schema) -> str:
        return template.format(value if isinstance(value, str) else show(value))

    return say


def _rule(template: str, never: str) -> Callable[[Any, Schema], str]:
    """Return a formatter for a keyword whose value is a schema; it yields no sentence for a schema that allows all."""

    def say(value: Any, _schema: Schema) -> str:
        if value is False:
            return never
        return "" if value is True or value == {} else template.format(show(value))

    return say


def _if_set(text: str) -> Callable[[Any, Schema], str]:
    return lambda value, _schema: text if value else ""


#: keyword -> function of its value and its schema that returns the sentence, or nothing if none is needed
SENTENCES: Final[dict[str, Callable[[Any, Schema], str]]] = {
    "contains": _contains,
    "contentEncoding": _phrase("Encoded as {}."),
    "contentMediaType": _phrase("Holds {}."),
    "contentSchema": _rule("The decoded content must match {}.", ""),
    "dependencies": _needs,
    "dependentRequired": _needs,
    "dependentSchemas": _needs,
    "deprecated": _if_set("Deprecated."),
    "enumDescriptions": _meanings,
    "examples": _phrase("Examples: {}"),
    "exclusiveMaximum": _phrase("Must be less than {}."),
    "exclusiveMinimum": _phrase("Must be greater than {}."),
    "if": _if,
    "multipleOf": _phrase("Must be a multiple of {}."),
    "not": _phrase("Must not match {}."),
    "patternProperties": _rule("Properties whose names match a pattern: {}", ""),
    "propertyNames": _rule("Property names must match {}.", "Must be empty."),
    "readOnly": _if_set("Read-only."),
    "unevaluatedItems": _rule("Other items must match {}.", "No other items are allowed."),
    "unevaluatedProperties": _rule("Other properties must match {}.", "No other properties are allowed."),
    "writeOnly": _if_set("Write-only."),
}
