"""Writes files of a project without end, telling the number of each write: `file_writer.py ROOT STATE START`."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

from dragoman.tools.definition import Context
from dragoman.tools.fs import FileLimits, FileTools

FILES = 7
LIMITS: dict[str, Any] = {
    "writes_per_minute": 10**9,
    "written_bytes_per_session": 10**12,
    "backups_kept": 10**6,
}


def content(number: int) -> str:
    """What write number n puts into its file: a half of it, or a mixture of two, is recognised."""
    return f"{number}\n" + f"{number:08d}" * (1 + number * 37 % 3000) + "\nend\n"


def name(number: int) -> str:
    return f"d{number % 2}/f{number % FILES}"


def is_whole(text: str) -> bool:
    first = text.partition("\n")[0]
    return first.isdigit() and text == content(int(first))


def main(root: str, state: str, start: int) -> None:
    files = FileTools(Path(root), limits=FileLimits(state=Path(state), **LIMITS))
    for number in itertools.count(start):
        files.write_file({"path": name(number), "content": content(number)}, Context())
        print(number, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
