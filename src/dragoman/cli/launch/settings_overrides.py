"""Overrides of keys in a client's settings: which value each key must have. No I/O.

Several launchers may override the same key at once: the latest one wins, and the last one to end restores the
original value. A value that another program has set meanwhile is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

#: The value of a key that does not exist.
ABSENT = msgspec.UNSET


class LauncherOverride(msgspec.Struct, frozen=True, kw_only=True):
    """The value that one launcher wants."""

    by: str
    value: Any


class OverriddenKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One key: its original value, all values that launchers have set, and the active claims, latest last."""

    before: Any = ABSENT
    put: tuple[Any, ...] = ()
    claims: tuple[LauncherOverride, ...] = ()


def add_override(overridden: OverriddenKey, current: Any, by: str, value: Any) -> OverriddenKey:
    """Add a claim; the current value becomes the one to restore unless a launcher has set it."""
    return OverriddenKey(
        before=overridden.before if current in overridden.put else current,
        put=overridden.put if value in overridden.put else (*overridden.put, value),
        claims=(*overridden.claims, LauncherOverride(by=by, value=value)),
    )


def remove_overrides(overridden: OverriddenKey, gone: Callable[[str], bool]) -> OverriddenKey:
    """Remove the claims of launchers that have ended."""
    claims = tuple(claim for claim in overridden.claims if not gone(claim.by))
    return msgspec.structs.replace(overridden, claims=claims)


def effective_value(overridden: OverriddenKey, current: Any) -> Any:
    """Return the value that the key must have."""
    if current not in overridden.put:
        return current
    return overridden.claims[-1].value if overridden.claims else overridden.before


def changed_values(overrides: Mapping[str, OverriddenKey], current: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that must be written, by key."""
    wanted = {
        key: effective_value(overridden, current.get(key, ABSENT)) for key, overridden in overrides.items()
    }
    return {key: value for key, value in wanted.items() if value != current.get(key, ABSENT)}


def apply_changes(document: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with the changes, in its original order."""
    merged = {**document, **changed}
    return {key: value for key, value in merged.items() if value is not ABSENT}
