"""What a tool may raise, and what is raised about one.

DragomanError
├── InvalidTool      a definition that cannot be made: the tool's author reads this
└── ToolError        raised inside an executor, answered to the model
    ├── ToolRefused  it was not allowed: sandbox, policy (exit code 3 of `dragoman tools call`)
    └── ToolFailed   it was tried and did not work: no such file… (exit code 4)
"""

from __future__ import annotations

from dragoman.errors import DragomanError, ErrorKind


class InvalidTool(DragomanError):
    """A definition that cannot be made; `where` names the function, parameter or file and line."""

    kind: ErrorKind = "invalid_request"


class ToolError(DragomanError):
    """Why a tool has no result; the message is for the model."""


class ToolRefused(ToolError):
    """It was not allowed."""

    kind: ErrorKind = "permission"


class ToolFailed(ToolError):
    """It was tried and did not work."""

    kind: ErrorKind = "invalid_request"
