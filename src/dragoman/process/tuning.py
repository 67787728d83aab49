"""Process-wide settings: the limit on file descriptors, glibc's malloc, and the event loop.

By default glibc returns large blocks to the kernel after every request and gets them back, zeroed page by page, for
the next one. That took a tenth of the time of a turn (docs/performance.md). See mallopt(3).
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import resource
import sys
from collections.abc import Coroutine
from typing import Any

import msgspec

from dragoman.config import Config

_RESERVED_DESCRIPTORS = 100  # descriptors for files, the store and the event loop
_DESCRIPTORS_PER_REQUEST = 2  # the client's connection and the one to Google
_log = logging.getLogger("dragoman")


def fit_limits_to_descriptors(config: Config) -> Config:
    """Return the settings with `max_connections` and `max_requests` reduced to the available descriptors."""
    server = config.server
    wanted = _RESERVED_DESCRIPTORS + server.max_connections + server.max_requests
    room = max(1, (raise_descriptor_limit(wanted) - _RESERVED_DESCRIPTORS) // _DESCRIPTORS_PER_REQUEST)
    if wanted <= _RESERVED_DESCRIPTORS + _DESCRIPTORS_PER_REQUEST * room:
        return config
    connections, requests = min(server.max_connections, room), min(server.max_requests, room)
    _log.warning(
        "descriptors are short (ulimit -n): %d connections, %d requests at once", connections, requests
    )
    fitting = msgspec.structs.replace(server, max_connections=connections, max_requests=requests)
    return msgspec.structs.replace(config, server=fitting)


def raise_descriptor_limit(wanted: int) -> int:
    """Raise the soft limit to `wanted`, or as far as the hard limit allows, and return the result."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft == unlimited or soft >= wanted:
        return wanted if soft == unlimited else soft
    soft = wanted if hard == unlimited else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
_TRIM_THRESHOLD_BYTES = 16 * 1024 * 1024  # free memory beyond this at the top of the heap is returned
_MMAP_THRESHOLD_BYTES = 4 * 1024 * 1024  # larger blocks are mapped separately and returned when freed


def tune_malloc() -> bool:
    """Apply the settings to the whole process; return False if the C library does not have them."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    return bool(
        mallopt(_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES) and mallopt(_TRIM_THRESHOLD, _TRIM_THRESHOLD_BYTES)
    )


def run_loop(main: Coroutine[Any, Any, None]) -> None:
    try:
        import uvloop
    except ImportError:  # Windows
        asyncio.run(main)
    else:
        uvloop.run(main)
