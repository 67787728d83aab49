"""Dragoman: run any tool-calling client on Google Gemini.

    from dragoman import Exchange, Target, anthropic, new_id

This module exports the public API. The names are imported on first use, so that the command line starts quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.dialects import anthropic, gemini, openai_chat, openai_responses
    from dragoman.dialects.amazonq import AmazonQ
    from dragoman.dialects.base import Reply, Target
    from dragoman.dialects.bedrock import ConverseClient
    from dragoman.dialects.gemini.client import GeminiClient
    from dragoman.errors import ConfigError, DragomanError, InvalidRequest, NotAllowed, UpstreamError
    from dragoman.ids import new_id
    from dragoman.ir import ToolCall, ToolChoice, ToolResult
    from dragoman.notes import Note
    from dragoman.tools import (
        Context,
        Handler,
        Registry,
        ToolDefinition,
        ToolFailed,
        ToolOutput,
        ToolRefused,
        result_text,
        tool,
    )
    from dragoman.translation.exchange import Exchange, ResponseSummary, TranslationOptions

__version__ = "0.1.0"

_HOME = {
    "AmazonQ": "dragoman.dialects.amazonq",
    "ConfigError": "dragoman.errors",
    "Context": "dragoman.tools",
    "ConverseClient": "dragoman.dialects.bedrock",
    "DragomanError": "dragoman.errors",
    "Exchange": "dragoman.translation.exchange",
    "ResponseSummary": "dragoman.translation.exchange",
    "GeminiClient": "dragoman.dialects.gemini.client",
    "Handler": "dragoman.tools",
    "InvalidRequest": "dragoman.errors",
    "NotAllowed": "dragoman.errors",
    "Note": "dragoman.notes",
    "Registry": "dragoman.tools",
    "Reply": "dragoman.dialects.base",
    "TranslationOptions": "dragoman.translation.exchange",
    "Target": "dragoman.dialects.base",
    "ToolCall": "dragoman.ir",
    "ToolChoice": "dragoman.ir",
    "ToolDefinition": "dragoman.tools",
    "ToolFailed": "dragoman.tools",
    "ToolOutput": "dragoman.tools",
    "ToolRefused": "dragoman.tools",
    "ToolResult": "dragoman.ir",
    "UpstreamError": "dragoman.errors",
    "anthropic": "dragoman.dialects",
    "gemini": "dragoman.dialects",
    "new_id": "dragoman.ids",
    "openai_chat": "dragoman.dialects",
    "openai_responses": "dragoman.dialects",
    "result_text": "dragoman.tools",
    "tool": "dragoman.tools",
}

__all__ = [
    "AmazonQ",
    "ConfigError",
    "Context",
    "ConverseClient",
    "DragomanError",
    "Exchange",
    "GeminiClient",
    "Handler",
    "InvalidRequest",
    "NotAllowed",
    "Note",
    "Registry",
    "Reply",
    "ResponseSummary",
    "Target",
    "ToolCall",
    "ToolChoice",
    "ToolDefinition",
    "ToolFailed",
    "ToolOutput",
    "ToolRefused",
    "ToolResult",
    "TranslationOptions",
    "UpstreamError",
    "anthropic",
    "gemini",
    "new_id",
    "openai_chat",
    "openai_responses",
    "result_text",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
