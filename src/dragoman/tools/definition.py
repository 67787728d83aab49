"""A tool as a value: its name, what it takes, who runs it."""

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
_MARK = "__dragoman_tool__"
_NAME = re.compile(r"[^\s\x00-\x1f\x7f]{1,128}")


def _silent(_line: str) -> None:
    """Nobody watches."""


def _never() -> bool:
    return False


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """For whom a tool runs. `progress` shows a line while it runs; `stopped` says that nobody waits any more."""

    session: str = ""
    caller: str = ""  # for the audit log, as are the next two
    request: str = ""
    profile: str = ""
    progress: Callable[[str], None] = _silent
    stopped: Callable[[], bool] = _never


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A result with everything said: text and files, or a JSON object (`response`, JSON text)."""

    content: tuple[ir.Text | ir.Media, ...] = ()
    response: bytes = b""
    is_error: bool = False


#: What an executor may return: text, anything JSON can say, models, or a `ToolOutput` for exact control.
Output = Any
Executor = Callable[[dict[str, Any], Context], "Output | Awaitable[Output]"]


class ToolDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """`schema` is JSON Schema as JSON text; without `execute` somebody else runs the tool.

    `subject` is what permission patterns match (a path, a command), `preview` what is shown before asking.
    """

    name: str
    description: str = ""
    schema: bytes = NO_PARAMETERS
    execute: Executor | None = None
    timeout_s: float | None = None  # None: the handler's default
    risk: Risk = "run"
    deterministic: bool = False  # results may be cached
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
        """A typed function, sync or async: its docstring describes it and its parameters.

        `process` runs it in a process of its own, which a time-out really ends.
        """
        from dragoman.tools.introspect import read_function
        from dragoman.tools.isolate import isolated

        read = read_function(function)
        execute = isolated(function) if process else read.execute
        more.setdefault("description", read.description)
        return cls(name=name or read.name, schema=read.schema, execute=execute, **more)

    @classmethod
    def from_model(
        cls, model: type, execute: Callable[..., Any] | None = None, *, name: str | None = None, **more: Any
    ) -> ToolDefinition:
        """Arguments described by a pydantic or msgspec model (or dataclass, TypedDict); `execute` gets one of it.

        A second parameter of `execute` is given the `Context`.
        """
        from dragoman.tools.introspect import read_model

        read = read_model(model, execute)
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
        """A tool that already has a JSON Schema; `execute` gets the arguments as a dict, and the `Context`."""
        from dragoman.tools.isolate import isolated

        if isinstance(schema, str):
            text = schema.encode()
        else:
            text = schema if isinstance(schema, bytes) else msgspec.json.encode(schema)
        if process and execute is not None:
            execute = isolated(execute, plain=True)
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
    """`@tool` or `@tool(risk="read", …)`: the function stays what it is, and becomes a tool where tools are read."""
    if function is None:
        return functools.partial(_mark, settings=settings)
    return _mark(function, settings={})


def _mark(function: Any, *, settings: dict[str, Any]) -> Any:
    setattr(function, _MARK, ToolDefinition.from_function(function, **settings))
    return function


def marked(thing: object) -> ToolDefinition | None:
    """The definition that `@tool` left on a function."""
    found = thing if isinstance(thing, ToolDefinition) else getattr(thing, _MARK, None)
    return found if isinstance(found, ToolDefinition) else None


def definition_of(thing: ToolDefinition | Callable[..., Any]) -> ToolDefinition:
    """The tool that a definition, a decorated or a bare function means."""
    return marked(thing) or ToolDefinition.from_function(thing)  # type: ignore[arg-type]


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives an awaitable, seen through `partial` and objects that can be called."""
    while isinstance(function, functools.partial):
        function = function.func
    call = getattr(type(function), "__call__", None)  # noqa: B004 (the method itself is asked)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _check_schema(schema: bytes, name: str) -> None:
    try:
        document = msgspec.json.decode(schema)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidTool(f"the schema is no JSON: {error}", where=name) from None
    if not isinstance(document, dict) or document.get("type", "object") != "object":
        raise InvalidTool("the schema must describe an object: arguments have names", where=name)
