"""Recover the readable part of a request that the parser rejects.

A script with `validate: false` answers such requests too, and matches them by their content.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.emulator.backend import Backend
from dragoman.emulator.validate.tables import load_messages
from dragoman.emulator.validate.walk import MessageParser


def parse_valid_fields(raw: bytes, backend: Backend, message: str) -> dict[str, Any]:
    """Return the canonical document without its invalid fields; empty if nothing is readable."""
    try:
        document = msgspec.json.decode(raw)
        if not isinstance(document, dict):
            return {}
        parsed = MessageParser(backend).read_message(document, load_messages(backend)[message], None, 0)
        valid = _without_nulls(parsed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return valid if isinstance(valid, dict) else {}


def _without_nulls(value: Any) -> Any:
    """Remove the None values that the walker puts in place of invalid values."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value
