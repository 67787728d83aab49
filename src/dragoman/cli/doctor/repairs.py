"""Repairs of a user's own files; a backup is kept beside each changed file."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any


def back_up(file: Path) -> Path:
    """Copy the file to a new name, readable only by its owner; return the copy."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1000):
        copy = file.with_name(f"{file.name}.{stamp}{f'-{number}' if number else ''}.bak")
        try:
            descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "wb") as out:
            out.write(file.read_bytes())
        return copy
    raise FileExistsError(f"too many copies of {file}")


def remove_keys(file: Path, paths: Collection[str]) -> str:
    """Remove dotted keys from a JSON file and keep everything else in order; return what was done."""
    file = file.resolve()  # keep a symbolic link, for example into a dotfiles repository
    document: Any = json.loads(file.read_text(encoding="utf-8"))
    for path in paths:
        *parents, last = path.split(".")
        table = document
        for name in parents:
            table = table.get(name, {})
        table.pop(last, None)
    copy = back_up(file)
    _replace_file(file, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    return f"took {', '.join(paths)} out of {file}; the old file is {copy.name}"


def _replace_file(file: Path, text: str) -> None:
    """Replace the file atomically and keep its mode."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(6)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(text)
    draft.chmod(file.stat().st_mode & 0o777)
    draft.replace(file)
