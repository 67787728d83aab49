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


def add_override(loan: OverriddenKey, current: Any, by: str, value: Any) -> OverriddenKey:
    """Add a claim; the current value becomes the one to restore unless a launcher has set it."""
    return OverriddenKey(
        before=loan.before if current in loan.put else current,
        put=loan.put if value in loan.put else (*loan.put, value),
        claims=(*loan.claims, LauncherOverride(by=by, value=value)),
    )


def remove_overrides(loan: OverriddenKey, gone: Callable[[str], bool]) -> OverriddenKey:
    """Remove the claims of launchers that have ended."""
    claims = tuple(claim for claim in loan.claims if not gone(claim.by))
    return msgspec.structs.replace(loan, claims=claims)


def effective_value(loan: OverriddenKey, current: Any) -> Any:
    """Return the value that the key must have."""
    if current not in loan.put:
        return current
    return loan.claims[-1].value if loan.claims else loan.before


def changed_values(loans: Mapping[str, OverriddenKey], found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that must be written, by key."""
    wanted = {key: effective_value(loan, found.get(key, ABSENT)) for key, loan in loans.items()}
    return {key: value for key, value in wanted.items() if value != found.get(key, ABSENT)}


def apply_changes(document: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with the changes, in its original order."""
    merged = {**document, **changed}
    return {key: value for key, value in merged.items() if value is not ABSENT}
