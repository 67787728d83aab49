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


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """The value that one launcher wants."""

    by: str
    value: Any


class Loan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One key: its original value, all values that launchers have set, and the active claims, latest last."""

    before: Any = ABSENT
    put: tuple[Any, ...] = ()
    claims: tuple[Claim, ...] = ()


def claim(loan: Loan, current: Any, by: str, value: Any) -> Loan:
    """Add a claim; the current value becomes the one to restore unless a launcher has set it."""
    return Loan(
        before=loan.before if current in loan.put else current,
        put=loan.put if value in loan.put else (*loan.put, value),
        claims=(*loan.claims, Claim(by=by, value=value)),
    )


def release(loan: Loan, gone: Callable[[str], bool]) -> Loan:
    """Remove the claims of launchers that have ended."""
    claims = tuple(claim for claim in loan.claims if not gone(claim.by))
    return msgspec.structs.replace(loan, claims=claims)


def due(loan: Loan, current: Any) -> Any:
    """Return the value that the key must have."""
    if current not in loan.put:
        return current
    return loan.claims[-1].value if loan.claims else loan.before


def changes(loans: Mapping[str, Loan], found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that must be written, by key."""
    wanted = {key: due(loan, found.get(key, ABSENT)) for key, loan in loans.items()}
    return {key: value for key, value in wanted.items() if value != found.get(key, ABSENT)}


def apply(document: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with the changes, in its original order."""
    merged = {**document, **changed}
    return {key: value for key, value in merged.items() if value is not ABSENT}
