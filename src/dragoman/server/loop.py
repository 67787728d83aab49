"""The event loop: uvloop if it is installed, else asyncio's."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    try:
        import uvloop
    except ImportError:  # Windows
        asyncio.run(main)
    else:
        uvloop.run(main)
