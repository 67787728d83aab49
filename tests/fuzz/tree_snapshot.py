"""What a tree is, so that two looks at it can be compared."""

from __future__ import annotations

import os
import stat
from pathlib import Path

Entry = tuple[str, bytes, int]


def snapshot(top: Path) -> dict[str, Entry]:
    """Every entry below: kind, content or target, permission bits; links are not followed."""
    found: dict[str, Entry] = {}
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = Path(folder, name)
            status = path.lstat()
            kind = stat.filemode(status.st_mode)[0]
            data = b""
            if kind == "-":
                data = path.read_bytes()
            elif kind == "l":
                data = os.fsencode(os.readlink(path))
            found[str(path.relative_to(top))] = (kind, data, status.st_mode & 0o7777)
    return found
