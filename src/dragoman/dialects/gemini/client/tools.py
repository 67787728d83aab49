"""Decode `tools` and `toolConfig`; every declaration also keeps its original JSON in `Tool.native`."""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from dragoman import jsontext
from dragoman.dialects.gemini.client.wire import camel, read_enum, read_list, read_object, read_text
from dragoman.errors import InvalidRequest
from dragoman.ir import Tool, ToolChoice
from dragoman.memo import LruCache

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
