"""The strict offline Gemini: it refuses what Google refuses, in Google's words, and really uses tools.

The names are loaded when first used: the pytest plugin is imported in every test run of whoever installs this.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.emulator.app import create_emulator
    from dragoman.emulator.script.handle import running

_HOME = {"create_emulator": "dragoman.emulator.app", "running": "dragoman.emulator.script.handle"}

__all__ = ["create_emulator", "running"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dragoman.emulator' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
