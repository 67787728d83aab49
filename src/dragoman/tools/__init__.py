"""The tool runtime: define a tool, declare it to any API, run its calls safely, give the results back."""

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
from dragoman.tools.handler import Executed, Handler
from dragoman.tools.hooks import Decision, Execution, Guard, Journal, Outcome
from dragoman.tools.metrics import ToolMetrics
from dragoman.tools.registry import Registry
from dragoman.tools.results import result_text

__all__ = [
    "Context",
    "Decision",
    "Executed",
    "Execution",
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
