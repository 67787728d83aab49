"""What one request needed of memory is kept for the next one.

By itself glibc gives large blocks back to the kernel with every request and gets them again, every page of it filled
with zeros, with the next: a tenth of the time of a turn (docs/performance.md).
"""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
_KEPT_BYTES = 16 * 1024 * 1024  # at the end of the heap; more than that goes back
_BLOCK_BYTES = 4 * 1024 * 1024  # whoever wants more in one piece gets it from the kernel, and gives it back


def keep_memory() -> bool:
    """For the whole process; False where the C library has no such settings."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _BLOCK_BYTES) and mallopt(_TRIM_THRESHOLD, _KEPT_BYTES))
