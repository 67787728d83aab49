"""The arguments of a model's call against the tool's own schema, before they are passed on."""

from __future__ import annotations

from dragoman.errors import UpstreamError
from dragoman.ir import Tool
from dragoman.notes import Note
from dragoman.schema import PLACEHOLDER, check_args, check_args_strictly, mend_args


class InvalidArguments(UpstreamError):
    """The model's arguments do not fit the tool's schema, and strict mode forbids to pass them on."""


def find_tool(tools: tuple[Tool, ...], name: str) -> Tool | None:
    """The first of that name: it is the one that was declared."""
    for tool in tools:
        if tool.name == name:
            return tool
    return None


def mend_call(tool: Tool | None, args: bytes, *, strict: bool) -> tuple[bytes, tuple[Note, ...]]:
    """Mended where that is safe; refused in strict mode. A tool that nobody declared has no schema to fit."""
    if tool is None:
        return args, ()
    if not strict:
        return mend_args(args, tool.schema, where=tool.name)
    if PLACEHOLDER.encode() in args:  # our own placeholder is no argument of the model's
        args, _ = mend_args(args, tool.schema, where=tool.name)
    problems, notes = check_args_strictly(args, tool.schema, where=tool.name)
    if problems:
        why = f"the arguments of {tool.name} do not fit its schema: {'; '.join(problems[:5])}"
        raise InvalidArguments(why, kind="overloaded")
    return args, notes


def fits(tool: Tool, args: bytes) -> bool:
    """Whether the arguments are right, or can safely be mended."""
    mended, _ = mend_args(args, tool.schema, where=tool.name)
    return not check_args(mended, tool.schema)
