"""Schemas: what each back end's `Schema` message knows, and what the answer's shape may be."""

from __future__ import annotations

import pytest

from tests.unit.emulator.builders import STUDIO, VERTEX, Json, ask, declare, error, hello, message

BETA = "/v1beta1/projects/p/locations/eu/publishers/google/models/{}:{}"
ENUM = {"type": "STRING", "enum": ["a", "b"]}
OBJECT = {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}


def leaf(node: Json) -> Json:
    return hello(tools=declare("f", parameters={"type": "object", "properties": {"x": node}}))


def shaped(**config: object) -> Json:
    return hello(generationConfig=config)


@pytest.mark.parametrize("word", ["additionalProperties", "ref", "defs"])
def test_vertex_alone_has_references_and_open_objects(word: str) -> None:
    value: object = {"defs": {}, "ref": "x", "additionalProperties": True}[word]
    body = leaf({"type": "object", "properties": {"a": {"type": "string"}}, word: value})
    assert f'Unknown name "{word}"' in message(body)
    for path in (VERTEX, BETA):
        ask(body, path=path)


@pytest.mark.parametrize("path", [STUDIO, VERTEX])
@pytest.mark.parametrize("word", ["$ref", "$defs", "$schema", "const", "oneOf", "exclusiveMinimum"])
def test_words_of_json_schema_are_unknown_everywhere(word: str, path: str) -> None:
    assert f'Unknown name "{word}"' in message(leaf({"type": "string", word: "x"}), path=path)


def test_a_map_of_anything_is_an_object_on_vertex() -> None:
    ask(leaf({"type": "object", "additionalProperties": {"type": "string"}}), path=VERTEX)
    assert "should be non-empty for OBJECT type" in message(leaf({"type": "object"}), path=VERTEX)


def test_strings_of_vertex_may_have_any_format() -> None:
    ask(leaf({"type": "string", "format": "uri"}), path=VERTEX)


@pytest.mark.parametrize("kind", ["string", "STRING", "String", "null", "NULL"])
def test_types_are_taken_in_any_case(kind: str) -> None:
    ask(leaf({"type": kind}))


def test_an_answer_has_one_schema() -> None:
    body = shaped(
        responseMimeType="application/json", responseSchema=OBJECT, responseJsonSchema={"type": "object"}
    )
    assert message(body) == (
        "* GenerateContentRequest.generation_config.response_json_schema: only one of response_schema and "
        "response_json_schema can be set\n"
    )


@pytest.mark.parametrize("schema", [OBJECT, {"type": "ARRAY", "items": ENUM}, {"type": "STRING"}])
def test_an_enum_answer_wants_an_enum(schema: Json) -> None:
    body = shaped(responseMimeType="text/x.enum", responseSchema=schema)
    assert error(body)["details"][0]["detail"].startswith("emulator: text/x.enum wants")
    ask(shaped(responseMimeType="text/x.enum", responseSchema=ENUM))
    ask(shaped(responseMimeType="text/x.enum"))


@pytest.mark.parametrize("mime", ["text/plain", "application/xml", "application/yaml"])
def test_a_schema_wants_json(mime: str) -> None:
    words = f"Response_schema with a response mime type '{mime}' is unsupported"
    assert message(shaped(responseMimeType=mime, responseSchema=OBJECT)) == words
    ask(shaped(responseMimeType=mime))


def test_a_response_format_names_its_mime_type_as_an_enum() -> None:
    def text(mime: str) -> Json:
        return shaped(responseFormat=[{"text": {"mimeType": mime}}])

    assert message(text("application/json")).endswith('TextResponseFormat.MimeType), "application/json"')
    ask(text("APPLICATION_JSON"))


def test_a_reference_at_the_root_is_read_as_a_json_pointer() -> None:
    schema = {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "object", "properties": {}}}}
    ask(hello(tools=declare("f", schema=schema)))
