"""Decode a `GenerateContentRequest` into a neutral request.

Every function declaration also keeps its original JSON in `Tool.native`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from dragoman import jsontext
from dragoman.dialects.base import Decoded
from dragoman.dialects.gemini.client.contents import (
    decode_content,
    decode_text_contents,
    elements_of,
    link_contents,
)
from dragoman.dialects.gemini.client.protojson import (
    Object,
    camel,
    read_enum,
    read_list,
    read_number,
    read_object,
    read_text,
    read_whole,
)
from dragoman.errors import InvalidRequest
from dragoman.incremental.decode import BodySpec, ToolsField, decode_incrementally
from dragoman.incremental.items import DecodedHistory
from dragoman.incremental.lru import LruCache
from dragoman.ir import Message, Request, Sampling, Text, Thinking, Tool, ToolChoice

Places = tuple[tuple[str, bytes], ...]
Mode = Literal["auto", "any", "none", "validated"]

_MODES: dict[str, Mode] = {
    "MODE_UNSPECIFIED": "auto",
    "AUTO": "auto",
    "ANY": "any",
    "NONE": "none",
    "VALIDATED": "validated",
    "0": "auto",
    "1": "auto",
    "2": "any",
    "3": "none",
    "4": "validated",
}
_WHOLE = re.compile("[0-9]{1,18}")  # ProtoJSON writes 64-bit integers as strings
_TOOLS: LruCache[bytes, tuple[tuple[Tool, ...], Places]] = LruCache(32 * 1024 * 1024, "gemini tool sets")


def decode_tools(raw: bytes) -> tuple[tuple[Tool, ...], Places]:
    """Return the functions, and the built-in tools as native fields; decoded sets are cached."""
    return _TOOLS.get(raw, 3 * len(raw), lambda: _decode_tools(jsontext.validate_text(raw, "tools")))


def _decode_tools(raw: bytes) -> tuple[tuple[Tool, ...], Places]:
    functions: list[Tool] = []
    built_in: list[tuple[str, bytes]] = []
    for index, wire in enumerate(read_list(raw, "tools")):
        tool = read_object(wire, f"tools[{index}]")
        declarations = tool.pop("functionDeclarations", None)
        if declarations is not None:
            where = f"tools[{index}].functionDeclarations"
            entries = enumerate(read_list(declarations, where))
            functions += [_function(entry, f"{where}[{place}]") for place, entry in entries]
        if tool:
            built_in.append(("tools", msgspec.json.encode(tool)))
    return tuple(functions), tuple(built_in)


def _function(raw: msgspec.Raw, where: str) -> Tool:
    declaration = read_object(raw, where)
    name = read_text(declaration["name"], f"{where}.name") if "name" in declaration else ""
    if not name:
        raise InvalidRequest("a function needs a name", where=f"{where}.name")
    schema = b"{}"
    if "parametersJsonSchema" in declaration:
        schema = bytes(declaration["parametersJsonSchema"])
    elif "parameters" in declaration:
        schema = jsontext.decode(_json_schema, declaration["parameters"], f"{where}.parameters")
    described = declaration.get("description")
    description = read_text(described, f"{where}.description") if described is not None else ""
    return Tool(name=name, description=description, schema=schema, where=where, native=bytes(raw))


def _json_schema(message: bytes | msgspec.Raw) -> bytes:
    return msgspec.json.encode(json_schema(msgspec.json.decode(message)))


def json_schema(node: Any) -> Any:
    """Convert Google's `Schema` message to JSON Schema: types in lower case, `nullable` as the type `null`."""
    if not isinstance(node, dict):
        return node
    schema = {camel(key): _member(camel(key), value) for key, value in node.items()}
    if schema.pop("nullable", False) and isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
    return schema


def _member(key: str, value: Any) -> Any:
    match key, value:
        case "type", str():
            return value.lower()
        case "properties" | "defs", dict():
            return {name: json_schema(node) for name, node in value.items()}
        case "items" | "additionalProperties", dict():
            return json_schema(value)
        case "anyOf", list():
            return [json_schema(node) for node in value]
        case "minItems" | "maxItems" | "minLength" | "maxLength", str() if _WHOLE.fullmatch(value):
            return int(value)
    return value


def decode_tool_config(raw: bytes) -> tuple[ToolChoice, Places]:
    """Return the tool choice, and all other members as native fields."""
    where = "toolConfig"
    config = read_object(jsontext.validate_text(raw, where), where)
    calling = config.pop("functionCallingConfig", None)
    rest = [(f"{where}.{name}", bytes(value)) for name, value in config.items()]
    if calling is None:
        return ToolChoice(), tuple(rest)
    where = f"{where}.functionCallingConfig"
    fields = read_object(calling, where)
    word = read_enum(fields.pop("mode"), f"{where}.mode") if "mode" in fields else "AUTO"
    mode = _MODES.get(word)
    if mode is None:
        raise InvalidRequest(f"{word!r} is not one of AUTO, ANY, NONE, VALIDATED", where=f"{where}.mode")
    wanted = fields.pop("allowedFunctionNames", None)
    names = [read_text(name, where) for name in read_list(wanted, where)] if wanted is not None else []
    rest += [(f"{where}.{name}", bytes(value)) for name, value in fields.items()]
    return ToolChoice(mode=mode, names=tuple(names)), tuple(rest)


#: Field of `generationConfig` -> field of `Sampling`, and its decoder; all others are passed on unchanged.
_SAMPLING: dict[str, tuple[str, Callable[[msgspec.Raw, str], Any]]] = {
    "maxOutputTokens": ("max_tokens", read_whole),
    "temperature": ("temperature", read_number),
    "topP": ("top_p", read_number),
    "topK": ("top_k", read_whole),
    "seed": ("seed", read_whole),
    "presencePenalty": ("presence_penalty", read_number),
    "frequencyPenalty": ("frequency_penalty", read_number),
    "stopSequences": (
        "stop",
        lambda raw, where: tuple(read_text(item, where) for item in read_list(raw, where)),
    ),
}
_NO_TOOLS = msgspec.Raw(b"[]")
_READ = frozenset({"model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig"})


def decode_request(body: bytes, model: str, *, stream: bool) -> Decoded:
    """Decode a request; `model` and `stream` come from the URL."""
    return decode_incrementally(_SPEC, body, (model, stream))


def decode_count_request(body: bytes, model: str) -> Decoded:
    """Decode the body of `countTokens`: `contents`, or a `generateContentRequest`."""
    fields = read_object(jsontext.replace_lone_surrogates(body), "")
    wrapped = fields.get("generateContentRequest")
    if wrapped:
        read_object(wrapped, "generateContentRequest")  # errors in the wrapper name its place
        body = bytes(wrapped)
    return decode_request(body, model, stream=False)


def _assemble(envelope: Request, history: DecodedHistory[Message]) -> Decoded:
    return Decoded(msgspec.structs.replace(envelope, messages=link_contents(history.items)))


def _decode_envelope(fields: Object, _tools: object, _changes: object, url: tuple[str, bool]) -> Request:
    """Decode everything except the contents; the URL names the model and whether the answer is a stream."""
    model, stream = url
    request = _decode_settings(fields)
    system = _system(fields.get("systemInstruction"))
    return msgspec.structs.replace(request, model=model or request.model, system=system, stream=stream)


def _decode_settings(fields: Object) -> Request:
    """Decode what precedes the contents, in this order, because the first error is the one that is reported."""
    if "contents" not in fields:
        raise InvalidRequest("contents is not specified", where="contents")
    named = read_text(fields["model"], "model").removeprefix("models/") if "model" in fields else ""
    declared, built_in = decode_tools(bytes(fields.get("tools", _NO_TOOLS)))
    choice, tool_config = decode_tool_config(bytes(fields.get("toolConfig", b"{}")))
    sampling, config = _generation_config(fields.get("generationConfig"))
    rest = [
        (name, jsontext.validate_text(bytes(raw), name)) for name, raw in fields.items() if name not in _READ
    ]
    return Request(
        model=named,
        messages=(),
        tools=declared,
        tool_choice=choice,
        thinking=Thinking(mode="own"),
        sampling=sampling,
        native=(*built_in, *tool_config, *config, *rest),
    )


def _system(raw: msgspec.Raw | None) -> tuple[Text, ...]:
    if raw is None:
        return ()
    where = "systemInstruction"
    if bytes(raw).startswith(b'"'):
        return (Text(text=read_text(raw, where)),)
    parts = read_object(raw, where).get("parts", msgspec.Raw(b"[]"))
    return tuple(
        Text(text=_system_text(part, f"{where}.parts[{index}]"))
        for index, part in enumerate(read_list(parts, f"{where}.parts"))
    )


def _system_text(raw: msgspec.Raw, where: str) -> str:
    part = read_object(raw, where)
    if "text" not in part:
        raise InvalidRequest("a system instruction is made of text parts", where=where)
    return read_text(part["text"], f"{where}.text")


def _generation_config(raw: msgspec.Raw | None) -> tuple[Sampling, list[tuple[str, bytes]]]:
    if raw is None:
        return Sampling(), []
    where = "generationConfig"
    known: dict[str, Any] = {}
    rest: list[tuple[str, bytes]] = []
    for name, value in read_object(raw, where).items():
        place = f"{where}.{name}"
        if name in _SAMPLING:
            field, read = _SAMPLING[name]
            known[field] = read(value, place)
        elif name == "candidateCount" and read_whole(value, place) != 1:
            raise InvalidRequest("only one candidate is given here", where=place)
        else:
            rest.append((place, jsontext.validate_text(bytes(value), place)))
    return Sampling(**known), rest


_SPEC: BodySpec[Object, Message, Request, Decoded] = BodySpec(
    name="gemini",
    item_name="contents",
    key="contents",
    tools=ToolsField(
        lambda fields: fields.get("tools", _NO_TOOLS), lambda fields, tools: fields.update(tools=tools)
    ),
    parse=lambda body: read_object(jsontext.replace_lone_surrogates(body), ""),
    check=_decode_settings,
    elements=lambda fields: elements_of(fields.get("contents", b"[]")),
    decode_item=decode_content,
    decode_other=lambda fields: decode_text_contents(fields["contents"]),
    decode_envelope=_decode_envelope,
    assemble=_assemble,
)
