"""Generate JSON Schema from Python types, and convert a model's arguments to those types.

msgspec does both. pydantic, if installed, handles what msgspec cannot: pydantic models and fields, unions of two
models, paths.
"""

from __future__ import annotations

import importlib
import typing
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.tools.errors import InvalidTool, ToolFailed
from dragoman.tools.results import plain_value

Json = dict[str, Any]


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter of a tool; it is required if it has no default."""

    name: str
    type: Any
    description: str = ""
    default: Any = UNSET

    @property
    def required(self) -> bool:
        return self.default is UNSET


class ArgumentSchema(msgspec.Struct, frozen=True):
    """A JSON Schema, and the function that converts arguments which match it; it raises `ToolFailed`."""

    schema: Json
    decode: Callable[[Json], Any]


def describe_parameters(parameters: Sequence[Parameter], where: str) -> ArgumentSchema:
    """Describe a function's parameters; `read` returns the arguments by name.

    Arguments that were not given are left out, so that the function's own defaults apply. Raises `InvalidTool` for
    a type that cannot be described.
    """
    described = _describe_parameters(parameters)
    if described is None:
        broken = [one.name for one in parameters if _describe_parameters([one]) is None]
        culprit = broken[0] if broken else "the parameters together"
        raise InvalidTool("this type cannot be described in JSON Schema", where=f"{where}.{culprit}")
    properties = described.schema["properties"]
    for one in parameters:
        if one.description:
            properties[one.name]["description"] = one.description
        default = _to_builtins(one.default)
        if default not in (None, UNSET):
            properties[one.name]["default"] = default
    return described


def describe_model(model: type, where: str) -> ArgumentSchema:
    """Describe a model; `read` returns an instance of it. Raise `InvalidTool` if it has no object schema."""
    if hasattr(model, "model_json_schema"):
        return ArgumentSchema(model.model_json_schema(), _pydantic_reader(model))
    try:
        schema = _inline_root_ref(msgspec.json.schema(model))
        if schema.get("type") != "object":
            raise InvalidTool("a tool's arguments are an object: give a model with fields", where=where)
        return ArgumentSchema(schema, _msgspec_reader(model))
    except TypeError as error:
        raise InvalidTool(f"this model cannot be described in JSON Schema: {error}", where=where) from None


def _describe_parameters(parameters: Sequence[Parameter]) -> ArgumentSchema | None:
    if not any(_needs_pydantic(one.type) for one in parameters):
        try:
            return _with_msgspec(parameters)
        except TypeError:
            pass
    try:
        return _with_pydantic(parameters)
    except (ImportError, TypeError, ValueError, RuntimeError):  # pydantic raises the last three
        return None


def _with_msgspec(parameters: Sequence[Parameter]) -> ArgumentSchema:
    """Build a struct for the parameters; its fields get generated names that cannot clash with struct attributes."""
    fields: list[Any] = []
    for index, one in enumerate(parameters):
        kind = one.type if one.required else typing.Union[one.type, UnsetType]  # noqa: UP007 (built at run time)
        fields.append((f"p{index}", kind) if one.required else (f"p{index}", kind, UNSET))
    names = {f"p{index}": one.name for index, one in enumerate(parameters)}
    struct = msgspec.defstruct("Arguments", fields, kw_only=True, rename=names)
    schema = _inline_root_ref(msgspec.json.schema(struct))
    build = _msgspec_reader(struct)

    def read(args: Json) -> Json:
        made = build(args)
        found = {name: getattr(made, field) for field, name in names.items()}
        return {name: value for name, value in found.items() if value is not UNSET}

    return ArgumentSchema(schema, read)


def _with_pydantic(parameters: Sequence[Parameter]) -> ArgumentSchema:
    pydantic = importlib.import_module("pydantic")
    fields: Json = {}
    for index, one in enumerate(parameters):
        default = ... if one.required else None
        fields[f"p{index}"] = (one.type, pydantic.Field(default, alias=one.name))
    model = pydantic.create_model("Arguments", **fields)
    names = {f"p{index}": one.name for index, one in enumerate(parameters)}
    schema = model.model_json_schema(by_alias=True)
    for name in names.values():
        schema["properties"][name].pop("default", None)
        schema["properties"][name].pop("title", None)
    build = _pydantic_reader(model)

    def read(args: Json) -> Json:
        made = build(args)
        return {name: getattr(made, field) for field, name in names.items() if name in args}

    schema.pop("title", None)
    return ArgumentSchema({"properties": {}, **schema}, read)


def _needs_pydantic(kind: Any) -> bool:
    """Return whether a type has pydantic or annotated_types constraints, which msgspec ignores."""
    words = getattr(kind, "__metadata__", ())
    if any(type(word).__module__.split(".")[0] in ("pydantic", "annotated_types") for word in words):
        return True
    return any(_needs_pydantic(inner) for inner in typing.get_args(kind))


def _msgspec_reader(kind: type) -> Callable[[Json], Any]:
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind, strict=False)

    def read(args: Json) -> Any:
        try:
            # The handler has validated the arguments; lenient decoding only accepts 5.0 as an integer.
            return decoder.decode(msgspec.json.encode(args))
        except msgspec.ValidationError as error:
            raise ToolFailed(f"The arguments do not fit: {error}") from None

    return read


def _pydantic_reader(model: Any) -> Callable[[Json], Any]:
    refused = importlib.import_module("pydantic").ValidationError

    def read(args: Json) -> Any:
        try:
            return model.model_validate_json(msgspec.json.encode(args))
        except refused as error:
            found = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
            raise ToolFailed(f"The arguments do not fit: {'; '.join(found)}") from None

    return read


def _inline_root_ref(schema: Json) -> Json:
    """Inline a root `$ref`; its definition stays in `$defs` only if another definition refers to it."""
    ref = schema.get("$ref", "")
    if not ref:
        return schema
    definitions = dict(schema["$defs"])
    name = ref.rpartition("/")[2]
    root = {key: value for key, value in definitions[name].items() if key != "title"}
    if msgspec.json.encode(ref) not in msgspec.json.encode(definitions):
        del definitions[name]
    return {**root, "$defs": definitions} if definitions else root


def _to_builtins(value: Any) -> Any:
    try:
        return msgspec.to_builtins(value, enc_hook=plain_value)
    except TypeError:
        return None
