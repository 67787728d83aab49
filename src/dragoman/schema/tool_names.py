"""Map the client's tool names to names that Google accepts, and back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

import msgspec

# Google accepts 128 characters, older back ends and Cloud Code only 64 (https://ai.google.dev/api/caching#FunctionDeclaration).
_LEGAL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_.:-]")
_MAX_CHARS: Final = 64
_HASH_DIGITS: Final = 8
_PREFIXES: Final = ("default_api.", "default_api:", "functions.")  # invented by the model (known problem P4)


class NameMap(msgspec.Struct, frozen=True):
    """The mapping of one request's tool names, in both directions; create it with `of`."""

    _wires: dict[str, str]
    _originals: dict[str, str]

    @classmethod
    def of(cls, names: Iterable[str]) -> NameMap:
        """Return the mapping for these names. Legal names are unchanged and have precedence over mapped ones."""
        ordered = list(dict.fromkeys(names))
        originals = {name: name for name in ordered if _LEGAL.fullmatch(name)}
        for name in ordered:
            if name not in originals:
                wire, digits = _wire(name), _HASH_DIGITS
                while wire in originals:
                    digits += 1
                    wire = _wire(name, digits)
                originals[wire] = name
        wires = {name: wire for wire, name in originals.items()}
        return cls({name: wires[name] for name in ordered}, originals)

    def to_wire(self, name: str) -> str:
        """Return the name for Google; a name from the history that is no longer declared is mapped the same way."""
        return self._wires.get(name) or _wire(name)

    def from_wire(self, name: str) -> str:
        """Return the client's name for Google's; an unknown name is returned unchanged."""
        if name in self._originals:
            return self._originals[name]
        bare = next((name.removeprefix(prefix) for prefix in _PREFIXES if name.startswith(prefix)), name)
        return self._originals.get(bare) or (bare if bare in self._wires else name)

    @property
    def renamed(self) -> tuple[tuple[str, str], ...]:
        """The pairs of original name and wire name that differ."""
        return tuple((name, wire) for name, wire in self._wires.items() if name != wire)


def _wire(name: str, digits: int = _HASH_DIGITS) -> str:
    """Return a legal name that depends on this name only: illegal characters are replaced and a hash is added."""
    if _LEGAL.fullmatch(name):
        return name
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
    head = _ILLEGAL.sub("_", name)
    start = head if _LEGAL.match(head) else f"_{head}"
    return f"{start[: _MAX_CHARS - digits - 1]}_{mark}"
