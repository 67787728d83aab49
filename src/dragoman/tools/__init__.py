"""The tool runtime: define tools, declare them to any API, and execute the model's calls.

`ToolDefinition` (or the `@tool` decorator) describes a tool, `Registry` holds definitions by name, and `Handler`
validates, authorises, executes and records calls. `tools.convert` translates tools, calls and results to and
from each API's format.
"""

from dragoman.tools.definition import (
    Context,
    Executor,
    Output,
    Risk,
    ToolDefinition,
    ToolOutput,
    definition_of,
    tool,
)
from dragoman.tools.errors import InvalidTool, ToolError, ToolFailed, ToolRefused
from dragoman.tools.handler import (
    Decision,
    ExecutionRecord,
    ExecutionResult,
    Guard,
    Handler,
    Journal,
    Outcome,
    ToolMetrics,
)
from dragoman.tools.registry import Registry
from dragoman.tools.results import result_text

__all__ = [
    "Context",
    "Decision",
    "ExecutionRecord",
    "ExecutionResult",
    "Executor",
    "Guard",
    "Handler",
    "InvalidTool",
    "Journal",
    "Outcome",
    "Output",
    "Registry",
    "Risk",
    "ToolDefinition",
    "ToolError",
    "ToolFailed",
    "ToolMetrics",
    "ToolOutput",
    "ToolRefused",
    "definition_of",
    "result_text",
    "tool",
]
