"""Notes: what a translation dropped, renamed, clamped or repaired, returned as values instead of log lines."""

from __future__ import annotations

from typing import Literal

import msgspec

NoteKind = Literal["dropped", "renamed", "clamped", "repaired", "moved", "withheld", "sentinel", "mended"]


class Note(msgspec.Struct, frozen=True):
    """One difference between the request or answer and its translation.

    `where` is a path in the caller's document, such as `tools[2].input_schema.properties.x`.
    """

    kind: NoteKind
    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.kind} {self.where}: {self.why}"
