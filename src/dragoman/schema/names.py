"""Tool names that Google accepts, each leading back to the client's own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

import msgspec

# Google takes 128 characters today, older back ends and Cloud Code 64 (gemini-api.md 2.2).
_LEGAL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_.:-]")
_MAX: Final = 64
_DIGITS: Final = 8
_PREFIXES: Final = ("default_api.", "default_api:", "functions.")  # made up by the model (P4)


class NameMap(msgspec.Struct, frozen=True):
    """The tool names of one request, both ways; build it with `of`."""

    _wires: dict[str, str]
    _originals: dict[str, str]

    @classmethod
    def of(cls, names: Iterable[str]) -> NameMap:
        """The map for these names; legal ones stay, so only illegal ones can ever move."""
        ordered = list(dict.fromkeys(names))
        originals = {name: name for name in ordered if _LEGAL.fullmatch(name)}
        for name in ordered:
            if name not in originals:
                wire, digits = _wire(name), _DIGITS
                while wire in originals:
                    digits += 1
                    wire = _wire(name, digits)
                originals[wire] = name
        wires = {name: wire for wire, name in originals.items()}
        return cls({name: wires[name] for name in ordered}, originals)

    def to_wire(self, name: str) -> str:
        """The name for Google; a name from the history that is no longer declared is mapped alike."""
        return self._wires.get(name) or _wire(name)

    def from_wire(self, name: str) -> str:
        """The client's name for Google's; an unknown one comes back as it is."""
        if name in self._originals:
            return self._originals[name]
        bare = next((name.removeprefix(prefix) for prefix in _PREFIXES if name.startswith(prefix)), name)
        return self._originals.get(bare) or (bare if bare in self._wires else name)

    @property
    def renamed(self) -> tuple[tuple[str, str], ...]:
        """The pairs (original, wire) that differ."""
        return tuple((name, wire) for name, wire in self._wires.items() if name != wire)


def _wire(name: str, digits: int = _DIGITS) -> str:
    """A pure function of the name: what it looked like, and a hash to tell it from its likes."""
    if _LEGAL.fullmatch(name):
        return name
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
    head = _ILLEGAL.sub("_", name)
    start = head if _LEGAL.match(head) else f"_{head}"
    return f"{start[: _MAX - digits - 1]}_{mark}"
