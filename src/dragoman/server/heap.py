"""Settings of glibc's malloc that keep freed memory in the process for the next request.

By default glibc returns large blocks to the kernel after every request and gets them back, zeroed page by
page, for the next one. That took a tenth of the time of a turn (docs/performance.md). See mallopt(3).
"""

from __future__ import annotations

import ctypes
import sys

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
