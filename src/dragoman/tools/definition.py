"""`ToolDefinition`, the `@tool` decorator, and the values that executors receive and return."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeVar, overload

import msgspec

from dragoman import ir
from dragoman.tools.errors import InvalidTool

Risk = Literal["read", "write", "run"]
Fn = TypeVar("Fn", bound=Callable[..., Any])

NO_PARAMETERS = b'{"type":"object","properties":{}}'
_ATTRIBUTE = "__dragoman_tool__"
_NAME = re.compile(r"[^\s\x00-\x1f\x7f]{1,128}")


def _discard_line(_line: str) -> None:
    """Discard the line: the default for `Context.progress`."""


def _never() -> bool:
    return False


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Who a tool runs for, and its link to the caller while it runs.

    An executor calls `progress` to report a status line and polls `stopped`, which returns True once the caller
    no longer waits for the result (timeout or cancellation).
    """

    session: str = ""
    caller: str = ""  # `caller`, `request` and `profile` are recorded in the audit log
    request: str = ""
    profile: str = ""
    progress: Callable[[str], None] = _discard_line
    stopped: Callable[[], bool] = _never


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A complete tool result: text and files in `content`, or a JSON object as JSON text in `response`."""

    content: tuple[ir.Text | ir.Media, ...] = ()
    response: bytes = b""
    is_error: bool = False


#: What an executor may return: text, any JSON-serialisable value, a model, or a `ToolOutput` for full control.
Output = Any
Executor = Callable[[dict[str, Any], Context], "Output | Awaitable[Output]"]


class ToolDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A tool: its name, description, parameters, and optionally the function that executes it.

    `schema` is a JSON Schema object as JSON text. A definition without `execute` can only be declared to a model.
    `subject` returns the string that permission patterns match (a path, a command); `preview` returns the text
    that a person sees before approving a call.

    Raises `InvalidTool` for an unusable name, schema or timeout.
    """

    name: str
    description: str = ""
    schema: bytes = NO_PARAMETERS
    execute: Executor | None = None
    timeout_s: float | None = None  # None means the handler's default
    risk: Risk = "run"
    deterministic: bool = False  # allow the handler to cache results
    subject: Callable[[dict[str, Any]], str] | None = None
    preview: Callable[[dict[str, Any]], str] | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            why = "a tool's name has 1 to 128 visible characters and no spaces"
            raise InvalidTool(why, where=repr(self.name))
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise InvalidTool("timeout_s must be above 0", where=self.name)
        _check_schema(self.schema, self.name)

    @classmethod
    def from_function(
        cls, function: Callable[..., Any], *, name: str | None = None, process: bool = False, **more: Any
    ) -> ToolDefinition:
        """Build a definition from a typed function, sync or async.

        The annotations give the schema; the docstring gives the descriptions of the tool and its parameters.
        With `process=True` every call runs in a separate process that is killed on timeout. `more` are further
        fields of the definition. Raises `InvalidTool` for a parameter that cannot be described.
        """
        from dragoman.tools.function_schema import function_schema
        from dragoman.tools.subprocess_executor import subprocess_executor

        read = function_schema(function)
        execute = subprocess_executor(function) if process else read.execute
        more.setdefault("description", read.description)
        return cls(name=name or read.name, schema=read.schema, execute=execute, **more)

    @classmethod
    def from_model(
        cls, model: type, execute: Callable[..., Any] | None = None, *, name: str | None = None, **more: Any
    ) -> ToolDefinition:
        """Build a definition whose arguments are a pydantic or msgspec model, a dataclass or a TypedDict.

        `execute` receives an instance of the model, and the `Context` if it has a second parameter.
        """
        from dragoman.tools.function_schema import model_schema

        read = model_schema(model, execute)
        more.setdefault("description", read.description)
        return cls(name=name or read.name, schema=read.schema, execute=read.execute, **more)

    @classmethod
    def from_schema(
        cls,
        name: str,
        schema: bytes | str | Mapping[str, Any],
        execute: Executor | None = None,
        *,
        process: bool = False,
        **more: Any,
    ) -> ToolDefinition:
        """Build a definition from an existing JSON Schema.

        `execute` receives the arguments as a dict, and the `Context`. With `process=True` every call runs in a
        separate process that is killed on timeout.
        """
        from dragoman.tools.subprocess_executor import subprocess_executor

        if isinstance(schema, str):
            text = schema.encode()
        else:
            text = schema if isinstance(schema, bytes) else msgspec.json.encode(schema)
        if process and execute is not None:
            execute = subprocess_executor(execute, plain=True)
        return cls(name=name, schema=text, execute=execute, **more)

    def to_ir(self) -> ir.Tool:
        return ir.Tool(name=self.name, description=self.description, schema=self.schema, where=self.name)


@overload
def tool(function: Fn) -> Fn: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str = ...,
    timeout_s: float | None = None,
    risk: Risk = "run",
    deterministic: bool = False,
    process: bool = False,
    subject: Callable[[dict[str, Any]], str] | None = None,
    preview: Callable[[dict[str, Any]], str] | None = None,
) -> Callable[[Fn], Fn]: ...


def tool(function: Any = None, **settings: Any) -> Any:
    """Mark a function as a tool: `@tool` or `@tool(risk="read", …)`.

    The function is returned unchanged, with its `ToolDefinition` attached as an attribute; `Registry.register`
    and the loader of custom tools read it from there.
    """
    if function is None:
        return functools.partial(_mark, settings=settings)
    return _mark(function, settings={})


def _mark(function: Any, *, settings: dict[str, Any]) -> Any:
    setattr(function, _ATTRIBUTE, ToolDefinition.from_function(function, **settings))
    return function


def find_definition(thing: object) -> ToolDefinition | None:
    """Return the definition attached by `@tool`, `thing` itself if it is a definition, or None."""
    found = thing if isinstance(thing, ToolDefinition) else getattr(thing, _ATTRIBUTE, None)
    return found if isinstance(found, ToolDefinition) else None


def definition_of(thing: ToolDefinition | Callable[..., Any]) -> ToolDefinition:
    """Return the definition of a `ToolDefinition`, a function decorated with `@tool`, or a plain function."""
    return find_definition(thing) or ToolDefinition.from_function(thing)  # type: ignore[arg-type]


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether calling `function` returns a coroutine; looks through `partial` and callable objects."""
    while isinstance(function, functools.partial):
        function = function.func
    call = getattr(type(function), "__call__", None)  # noqa: B004 (the method itself is inspected)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _check_schema(schema: bytes, name: str) -> None:
    try:
        document = msgspec.json.decode(schema)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidTool(f"the schema is no JSON: {error}", where=name) from None
    if not isinstance(document, dict) or document.get("type", "object") != "object":
        raise InvalidTool("the schema must describe an object: arguments have names", where=name)
