"""The emulator's directives: words in a prompt that steer its model exactly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def use(name: str, args: Mapping[str, Any]) -> str:
    """Call one tool with exactly these arguments."""
    return f"use {name} with {json.dumps(args)}"


def together(*uses: str) -> str:
    """Calls of one step."""
    return " and ".join(uses)


def plan(*steps: str, say: str = "") -> str:
    """Steps one after the other; without `say` the model ends with a report of all results."""
    return " then ".join((*steps, f"say {say}") if say else steps)
