"""Derive a tool's name, description, schema and executor from a Python function or model."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.tools.arguments import Parameter, describe_model, describe_parameters
from dragoman.tools.definition import NO_PARAMETERS, Context, Executor, is_async
from dragoman.tools.docstrings import parse_docstring
from dragoman.tools.errors import InvalidTool

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
