"""Repair or reject the arguments of a model's call before it is forwarded to the client (known problem C10).

The rules of the repair itself are in `dragoman.schema`; this module decides when they apply.
"""

from __future__ import annotations

from dragoman.errors import UpstreamError
from dragoman.ir import Tool
from dragoman.notes import Note
from dragoman.schema import PLACEHOLDER, check_args, check_args_strictly, repair_args


class InvalidArguments(UpstreamError):
    """The model's arguments do not match the tool's schema, and strict mode does not forward them.

    The kind "overloaded" makes the gateway try again, with this error's message as feedback to the model.
    """


def find_tool(tools: tuple[Tool, ...], name: str) -> Tool | None:
    """Return the first tool of this name: of tools with equal names only the first is declared."""
    for tool in tools:
        if tool.name == name:
            return tool
    return None


def repair_call(tool: Tool | None, args: bytes, *, strict: bool) -> tuple[bytes, tuple[Note, ...]]:
    """Return the arguments, repaired where that is safe, and notes about the repairs.

    In strict mode nothing is repaired: raise `InvalidArguments` if the arguments do not match the schema. A tool
    that is not declared (None) has no schema, so its arguments are returned unchanged.
    """
    if tool is None:
        return args, ()
    if not strict:
        return repair_args(args, tool.schema, where=tool.name)
    if (
        PLACEHOLDER.encode() in args
    ):  # our schema declared it (known problem B7), so it is no mistake of the model
        args, _ = repair_args(args, tool.schema, where=tool.name)
    problems, notes = check_args_strictly(args, tool.schema, where=tool.name)
    if problems:
        why = f"the arguments of {tool.name} do not fit its schema: {'; '.join(problems[:5])}"
        raise InvalidArguments(why, kind="overloaded")
    return args, notes


def arguments_fit(tool: Tool, args: bytes) -> bool:
    """Whether the arguments match the schema, after a safe repair if necessary."""
    repaired, _ = repair_args(args, tool.schema, where=tool.name)
    return not check_args(repaired, tool.schema)
