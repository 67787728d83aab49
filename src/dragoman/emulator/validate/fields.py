"""Stage 2: the allowed values of each field. All violations are reported in one message.

Includes the rules for the `Schema` message (`parameters`, `response`, `responseSchema`) and for JSON Schema roots.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.emulator.errors import ApiError
from dragoman.emulator.model.json_schema import follow_reference
from dragoman.emulator.models import EmulatedModel
from dragoman.emulator.parsed_request import calling_config_of, declarations_of
from dragoman.emulator.routes import Backend
from dragoman.emulator.validate.descriptors import PART_DATA

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


_FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
_NAME_RULE = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), "
    "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128."
)
_MIME_TYPES = ("text/plain", "application/json", "application/xml", "application/yaml", "text/x.enum")
_MIME_RULE = (
    "allowed mimetypes are `text/plain`, `application/json`, `application/xml`, `application/yaml` and "
    "`text/x.enum`."
)
_HARM_CATEGORIES = frozenset(
    f"HARM_CATEGORY_{name}"
    for name in ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT", "CIVIC_INTEGRITY")
)
STOP_LIMIT = 5
_DECLARATION_LIMIT = 512
_LOGPROBS_RULE = {
    "studio": "logprobs can only be set when response_logprobs is true",
    "vertex": "logprobs is only allowed together with setting response_logprobs to be true",
}
_BUDGET_LIMIT = 65_535


def field_problems(request: Mapping[str, Any], model: EmulatedModel, backend: Backend) -> list[str]:
    """Return all bullets, without the root name, in the order of the request's fields."""
    return [
        *content_problems(request, in_pieces=backend.is_vertex),
        *_tool_problems(request, backend),
        *_tool_config_problems(request),
        *_config_problems(request.get("generationConfig", {}), model, backend),
        *_safety_problems(request, backend),
    ]


def content_problems(request: Mapping[str, Any], *, in_pieces: bool = False) -> Iterator[str]:
    """Yield the problems of the contents and the system instruction.

    Both must not be empty, and each part needs data. `in_pieces` allows function calls without a name: Vertex
    streams the arguments of a call in such parts and accepts them in the history.
    """
    contents = request.get("contents", ())
    if not contents:
        yield "contents: contents is not specified"
    for index, content in enumerate(contents):
        yield from _parts_problems(content, f"contents[{index}]", in_pieces=in_pieces)
    system = request.get("systemInstruction")
    if system is not None:
        yield from _parts_problems(system, "system_instruction")


def _parts_problems(content: Mapping[str, Any], path: str, *, in_pieces: bool = False) -> Iterator[str]:
    parts = content.get("parts", ())
    if not parts:
        yield f"{path}.parts: contents.parts must not be empty."
    for index, part in enumerate(parts):
        place = f"{path}.parts[{index}]"
        if not any(name in part for name in PART_DATA):
            if not part.get("thought"):
                yield f"{place}.data: required oneof field 'data' must have one initialized field"
        elif "functionCall" in part and not part["functionCall"].get("name"):
            if not in_pieces or "args" in part["functionCall"]:
                yield f"{place}.function_call.name: Name cannot be empty."
        elif "functionResponse" in part and not part["functionResponse"].get("name"):
            yield f"{place}.function_response.name: Name cannot be empty."


def _tool_problems(request: Mapping[str, Any], backend: Backend) -> Iterator[str]:
    for index, tool in enumerate(request.get("tools", ())):
        path = f"tools[{index}]"
        declarations = tool.get("functionDeclarations")
        if not declarations and not tool.keys() - {"functionDeclarations"}:
            yield f"{path}.tool_type: required one_of 'tool_type' must have one initialized field"
        if backend.is_vertex and len(tool) > 1:
            yield f"{path}.tool_type: one_of 'tool_type' must have only one initialized field"
        if len(declarations or ()) > _DECLARATION_LIMIT:
            yield f"{path}.function_declarations: at most {_DECLARATION_LIMIT} declarations are allowed"
        for number, declaration in enumerate(declarations or ()):
            yield from _declaration_problems(declaration, f"{path}.function_declarations[{number}]", backend)


def _declaration_problems(declaration: Mapping[str, Any], path: str, backend: Backend) -> Iterator[str]:
    if not _FUNCTION_NAME.fullmatch(declaration.get("name", "")):
        yield f"{path}.name: {_NAME_RULE}"
    for field in ("parameters", "response"):
        if field in declaration and f"{field}JsonSchema" in declaration:
            yield f"{path}.{field}_json_schema: only one of {field} and {field}_json_schema can be set"
        if field in declaration:
            yield from schema_problems(declaration[field], f"{path}.{field}", backend)
    if "parametersJsonSchema" in declaration:
        yield from json_schema_problem(declaration["parametersJsonSchema"], f"{path}.parameters_json_schema")
    if declaration.get("parameters", {}).get("type", "OBJECT") not in ("OBJECT", "TYPE_UNSPECIFIED"):
        yield f"{path}.parameters.type: should be OBJECT type"


def _tool_config_problems(request: Mapping[str, Any]) -> Iterator[str]:
    config = calling_config_of(request)
    allowed = config.get("allowedFunctionNames")
    if not allowed:
        return
    path = "tool_config.function_calling_config.allowed_function_names"
    if config.get("mode") not in ("ANY", "VALIDATED"):
        yield f"{path}: allowed_function_names can only be set when the mode is ANY or VALIDATED"
    declared = {declaration.get("name") for declaration in declarations_of(request)}
    if not declared.issuperset(allowed):
        yield f"{path}: allowed_function_names should be a subset of the provided function_declarations"


def _config_problems(config: Mapping[str, Any], model: EmulatedModel, backend: Backend) -> Iterator[str]:
    path = "generation_config"
    if not 0 <= config.get("temperature", 0) <= 2:
        yield f"{path}.temperature: temperature must be in the range [0.0, 2.0]."
    if not 0 <= config.get("topP", 0) <= 1:
        yield f"{path}.top_p: top_p must be in the range [0.0, 1.0]."
    if config.get("topK", 1) <= 0:
        yield f"{path}.top_k: top_k must be positive."
    if config.get("maxOutputTokens", 1) <= 0:
        yield f"{path}.max_output_tokens: max_output_tokens must be positive."
    if len(config.get("stopSequences", ())) > STOP_LIMIT and not backend.is_vertex:
        yield f"{path}.stop_sequences: the number of stop_sequences must not exceed {STOP_LIMIT}"
    lowest = 0 if backend.is_vertex else 1
    if not lowest <= config.get("candidateCount", 1) <= 8:
        yield f"{path}.candidate_count: candidate_count must be in the range [1, 8]."
    if "logprobs" in config and not config.get("responseLogprobs"):
        yield f"{path}.logprobs: {_LOGPROBS_RULE[backend.surface]}"
    budget = config.get("thinkingConfig", {}).get("thinkingBudget", 0)
    if model.is_gemini3_or_later and not -1 <= budget <= _BUDGET_LIMIT:
        yield f"{path}.thinking_config.thinking_budget: thinking_budget must be in the range [-1, 65535]"
    yield from _output_problems(config, path, backend)


def _output_problems(config: Mapping[str, Any], path: str, backend: Backend) -> Iterator[str]:
    """Yield the problems of the response mime type, the response schema and the speech config."""
    if config.get("responseMimeType") not in (None, "", *_MIME_TYPES):
        yield f"{path}.response_mime_type: {_MIME_RULE}"
    if "responseSchema" in config:
        yield from schema_problems(config["responseSchema"], f"{path}.response_schema", backend)
        if "responseJsonSchema" in config:
            yield f"{path}.response_json_schema: only one of response_schema and response_json_schema can be set"
    speech = config.get("speechConfig", {})
    if "voiceConfig" in speech and "multiSpeakerVoiceConfig" in speech:
        yield f"{path}.speech_config: voice_config and multi_speaker_voice_config are mutually exclusive"


def _safety_problems(request: Mapping[str, Any], backend: Backend) -> Iterator[str]:
    for index, context in enumerate(request.get("safetySettings", ())):
        if context.get("category") not in _HARM_CATEGORIES and not backend.is_vertex:
            names = ", ".join(f"HarmCategory.{name}" for name in sorted(_HARM_CATEGORIES))
            yield f"safety_settings[{index}]: element predicate failed: $.category in ({names})"
