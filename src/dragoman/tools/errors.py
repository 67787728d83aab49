"""Exceptions of the tool runtime.

DragomanError
├── InvalidTool      a tool definition is invalid; the message is for the tool's author
└── ToolError        raised by an executor; the message is returned to the model
    ├── ToolRefused  not allowed by the sandbox or a policy (exit code 3 of `dragoman tools call`)
    └── ToolFailed   tried without success, such as a missing file (exit code 4)
"""

from __future__ import annotations

from dragoman.errors import DragomanError, ErrorKind


class InvalidTool(DragomanError):
    """A tool definition is invalid; `where` names the function, the parameter, or the file and line."""

    kind: ErrorKind = "invalid_request"


class ToolError(DragomanError):
    """A tool has no result; the message is for the model."""


class ToolRefused(ToolError):
    """The call was not allowed."""

    kind: ErrorKind = "permission"


class ToolFailed(ToolError):
    """The call was tried and failed."""

    kind: ErrorKind = "invalid_request"
