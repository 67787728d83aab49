"""`python -m tests.soak MINUTES`: run mixed traffic and print the report."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.soak.mixed_traffic import soak

#: Faster growth after the warm-up is a leak: it is some hundred bytes per request.
MAX_SLOPE_KIB_PER_MIN = 256.0


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(soak(Path(folder), minutes * 60))
    print(report)
    before, after = report.descriptors
    slope = report.slope_kib_per_min
    leaks = after > before or report.left_at_google or slope is None or slope > MAX_SLOPE_KIB_PER_MIN
    raise SystemExit(1 if report.violations or leaks else 0)


if __name__ == "__main__":
    main()
