"""Stage 2: the allowed values of each field. All violations are reported in one message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.emulator.backend import Backend
from dragoman.emulator.contents import calling_config_of, declarations_of
from dragoman.emulator.models import GeminiModel
from dragoman.emulator.validate.schemas import json_schema_problem, schema_problems
from dragoman.emulator.validate.tables import PART_DATA

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


def field_problems(request: Mapping[str, Any], model: GeminiModel, backend: Backend) -> list[str]:
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


def _config_problems(config: Mapping[str, Any], model: GeminiModel, backend: Backend) -> Iterator[str]:
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
    for index, setting in enumerate(request.get("safetySettings", ())):
        if setting.get("category") not in _HARM_CATEGORIES and not backend.is_vertex:
            names = ", ".join(f"HarmCategory.{name}" for name in sorted(_HARM_CATEGORIES))
            yield f"safety_settings[{index}]: element predicate failed: $.category in ({names})"
