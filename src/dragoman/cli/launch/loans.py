"""Keys of a client's own settings that launchers set for a while: what belongs there now, and in the end.

Pure. Several launchers may want the same key at once; the latest of them gets it, and the last one out leaves
what was there before. What somebody else has put there since is theirs and stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

#: The value of a key that is not there.
ABSENT = msgspec.UNSET


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One launcher's wish."""

    by: str
    value: Any


class Loan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One key: what was there, everything we have put there since, and who still wants what; the latest last."""

    before: Any = ABSENT
    put: tuple[Any, ...] = ()
    claims: tuple[Claim, ...] = ()


def claim(loan: Loan, current: Any, by: str, value: Any) -> Loan:
    """A launcher wants `value` there; what it finds there and nobody of us has put is what comes back."""
    return Loan(
        before=loan.before if current in loan.put else current,
        put=loan.put if value in loan.put else (*loan.put, value),
        claims=(*loan.claims, Claim(by=by, value=value)),
    )


def release(loan: Loan, gone: Callable[[str], bool]) -> Loan:
    """Without the claims of launchers that are gone, however they went."""
    claims = tuple(claim for claim in loan.claims if not gone(claim.by))
    return msgspec.structs.replace(loan, claims=claims)


def due(loan: Loan, current: Any) -> Any:
    """What belongs there now."""
    if current not in loan.put:
        return current
    return loan.claims[-1].value if loan.claims else loan.before


def changes(loans: Mapping[str, Loan], found: Mapping[str, Any]) -> dict[str, Any]:
    """What has to be written so that everything is as it is due."""
    wanted = {key: due(loan, found.get(key, ABSENT)) for key, loan in loans.items()}
    return {key: value for key, value in wanted.items() if value != found.get(key, ABSENT)}


def apply(document: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the changes, in its own order."""
    merged = {**document, **changed}
    return {key: value for key, value in merged.items() if value is not ABSENT}
