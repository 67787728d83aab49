"""Derive a tool from a Python function or model: name, description, JSON Schema and executor.

The signature and annotations give the schema, the docstring (Google, NumPy or reST style) the descriptions. msgspec
generates the schema and converts a model's arguments; pydantic, if installed, handles what msgspec cannot: pydantic
models and fields, unions of two models, paths. Imported lazily by `definition`, because only functions need it.
"""

from __future__ import annotations

import importlib
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.tools.definition import NO_PARAMETERS, Context, Executor, is_async
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


class ParsedDocstring(msgspec.Struct, frozen=True):
    """The description of a tool and of its parameters by name."""

    description: str = ""
    parameters: dict[str, str] = {}


def parse_docstring(text: str | None) -> ParsedDocstring:
    """Return the text before the sections, and the description of each parameter as one line."""
    from docstring_parser import ParseError, parse  # imported here: only tools from functions need it

    if not text or not text.strip():
        return ParsedDocstring()
    try:
        found = parse(text)
    except ParseError:  # a malformed section: use the whole text
        return ParsedDocstring(inspect.cleandoc(text))
    words = [found.short_description or "", found.long_description or ""]
    parameters = {one.arg_name: " ".join((one.description or "").split()) for one in found.params}
    return ParsedDocstring("\n\n".join(filter(None, words)), parameters)


_VARIADIC = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class FunctionSchema(msgspec.Struct, frozen=True, kw_only=True):
    """What was derived from a function or model: the fields of a `ToolDefinition`."""

    name: str
    description: str
    schema: bytes
    execute: Executor | None


def function_schema(function: Callable[..., Any]) -> FunctionSchema:
    """Read the tool from a function's signature, annotations and docstring.

    Parameters annotated with `Context` receive the context and are not part of the schema. Raises `InvalidTool`.
    """
    name = _name_of(function)
    signature = _signature(function, name)
    documented = parse_docstring(inspect.getdoc(function))
    declared: list[Parameter] = []
    context_names: list[str] = []
    for parameter in signature.parameters.values():
        if _is_context(parameter.annotation):
            context_names.append(parameter.name)
        else:
            declared.append(_read_parameter(parameter, documented.parameters, name))
    described = describe_parameters(declared, name)
    positional = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY
    ]

    def prepare(args: dict[str, Any], context: Context) -> Callable[[], Any]:
        given = {**described.decode(args), **dict.fromkeys(context_names, context)}
        first = [given.pop(parameter.name, parameter.default) for parameter in positional]
        return lambda: function(*first, **given)

    return FunctionSchema(
        name=name,
        description=documented.description,
        schema=msgspec.json.encode(described.schema) if declared else NO_PARAMETERS,
        execute=_executor(function, prepare),
    )


def model_schema(model: type, execute: Callable[..., Any] | None) -> FunctionSchema:
    """Read the tool from a model; its docstring, or else that of `execute`, is the description.

    Dataclasses without a docstring get a generated one, `Name(field: type, …)`, which is ignored.
    """
    described = describe_model(model, model.__name__)
    schema = {key: value for key, value in described.schema.items() if key not in ("title", "description")}
    words = "" if (model.__doc__ or "").startswith(f"{model.__name__}(") else inspect.getdoc(model)
    if execute is None:
        return FunctionSchema(
            name=model.__name__, description=words or "", schema=msgspec.json.encode(schema), execute=None
        )
    wants_context = len(inspect.signature(execute).parameters) > 1

    def prepare(args: dict[str, Any], context: Context) -> Callable[[], Any]:
        made = described.decode(args)
        return lambda: execute(made, context) if wants_context else execute(made)

    return FunctionSchema(
        name=_name_of(execute) or model.__name__,
        description=words or parse_docstring(inspect.getdoc(execute)).description,
        schema=msgspec.json.encode(schema),
        execute=_executor(execute, prepare),
    )


def _executor(
    function: Callable[..., Any], prepare: Callable[[dict[str, Any], Context], Callable[[], Any]]
) -> Executor:
    """Return an executor that is async exactly when `function` is: the handler runs sync ones in a thread."""

    async def call_async(args: dict[str, Any], context: Context) -> Any:
        return await prepare(args, context)()

    def call(args: dict[str, Any], context: Context) -> Any:
        return prepare(args, context)()

    return call_async if is_async(function) else call


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "")
    return "" if name == "<lambda>" else name


def _signature(function: Callable[..., Any], name: str) -> inspect.Signature:
    try:
        return inspect.signature(function, eval_str=True)
    except NameError as error:
        why = f"an annotation cannot be read, types must be defined in the module itself: {error}"
        raise InvalidTool(why, where=name) from None
    except (TypeError, ValueError) as error:
        raise InvalidTool(f"this has no signature to read: {error}", where=name) from None


def _read_parameter(parameter: inspect.Parameter, documented: dict[str, str], where: str) -> Parameter:
    place = f"{where}.{parameter.name}"
    if parameter.kind in _VARIADIC:
        stars = _VARIADIC[parameter.kind]
        raise InvalidTool(
            f"a model cannot fill {stars}{parameter.name}: name every parameter, or take a list or a dict",
            where=place,
        )
    if parameter.annotation is inspect.Parameter.empty:
        raise InvalidTool("needs an annotation: a model must know what to send", where=place)
    words = _annotated_description(parameter.annotation) or documented.get(parameter.name, "")
    default = msgspec.UNSET if parameter.default is inspect.Parameter.empty else parameter.default
    return Parameter(name=parameter.name, type=parameter.annotation, description=words, default=default)


def _is_context(annotation: Any) -> bool:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return any(_is_context(one) for one in typing.get_args(annotation))
    return annotation is Context


def _annotated_description(annotation: Any) -> str:
    """Return the description in `Annotated[str, "description"]`, or that of a `Meta`, `Doc` or `Field`."""
    for word in getattr(annotation, "__metadata__", ()):
        text = word if isinstance(word, str) else None
        text = text or getattr(word, "description", None) or getattr(word, "documentation", None)
        if isinstance(text, str):
            return text
    return ""
