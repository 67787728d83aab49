"""A strict offline emulator of the Gemini API.

It rejects the requests that Google rejects, with Google's error texts, and its model calls the declared
tools. The public names are imported on first use, because pytest imports this package through the plugin
entry point in every test run of an environment in which dragoman is installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.emulator.app import create_emulator
    from dragoman.emulator.testing import running

_HOME = {"create_emulator": "dragoman.emulator.app", "running": "dragoman.emulator.testing"}

__all__ = ["create_emulator", "running"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dragoman.emulator' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
