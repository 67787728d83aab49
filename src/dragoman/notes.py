"""Loss is a value: what a translation drops, renames, clamps or repairs is returned as a note."""

from __future__ import annotations

from typing import Literal

import msgspec

NoteKind = Literal["dropped", "renamed", "clamped", "repaired", "moved", "withheld", "sentinel", "mended"]


class Note(msgspec.Struct, frozen=True):
    """One thing that is not as the caller wrote it.

    `where` is a path in the caller's own document (`tools[2].input_schema.properties.x`).
    """

    kind: NoteKind
    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.kind} {self.where}: {self.why}"
