"""What can be understood of a request that the parser refuses: for answers that were written beforehand."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.emulator.backend import Backend
from dragoman.emulator.validate.tables import load_messages
from dragoman.emulator.validate.walk import Walker


def salvage(raw: bytes, backend: Backend, message: str) -> dict[str, Any]:
    """The canonical document without all that is wrong in it."""
    try:
        document = msgspec.json.decode(raw)
        if not isinstance(document, dict):
            return {}
        parsed = Walker(backend).read_message(document, load_messages(backend)[message], None, 0)
        sound = _without_gaps(parsed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return sound if isinstance(sound, dict) else {}


def _without_gaps(value: Any) -> Any:
    """The walker leaves None where something did not fit."""
    if isinstance(value, dict):
        return {key: _without_gaps(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_gaps(item) for item in value if item is not None]
    return value
