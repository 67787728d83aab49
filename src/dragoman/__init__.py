"""Dragoman: any tool-calling client on Google Gemini, both ways, without losing a call.

    from dragoman import Exchange, Target, anthropic, new_token

The public names, and nothing else, live here; they are loaded when first used, so that the command
line starts at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.dialects import anthropic, gemini, openai_chat, openai_responses
    from dragoman.dialects.base import Reply, Target
    from dragoman.dialects.gemini.client import GeminiClient
    from dragoman.errors import ConfigError, DragomanError, InvalidRequest, NotAllowed, UpstreamError
    from dragoman.exchange import Exchange, Facts, Settings
    from dragoman.notes import Note
    from dragoman.tokens import new_token

__version__ = "0.1.0"

_HOME = {
    "ConfigError": "dragoman.errors",
    "DragomanError": "dragoman.errors",
    "Exchange": "dragoman.exchange",
    "Facts": "dragoman.exchange",
    "GeminiClient": "dragoman.dialects.gemini.client",
    "InvalidRequest": "dragoman.errors",
    "NotAllowed": "dragoman.errors",
    "Note": "dragoman.notes",
    "Reply": "dragoman.dialects.base",
    "Settings": "dragoman.exchange",
    "Target": "dragoman.dialects.base",
    "UpstreamError": "dragoman.errors",
    "anthropic": "dragoman.dialects",
    "gemini": "dragoman.dialects",
    "new_token": "dragoman.tokens",
    "openai_chat": "dragoman.dialects",
    "openai_responses": "dragoman.dialects",
}

__all__ = [
    "ConfigError",
    "DragomanError",
    "Exchange",
    "Facts",
    "GeminiClient",
    "InvalidRequest",
    "NotAllowed",
    "Note",
    "Reply",
    "Settings",
    "Target",
    "UpstreamError",
    "anthropic",
    "gemini",
    "new_token",
    "openai_chat",
    "openai_responses",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
