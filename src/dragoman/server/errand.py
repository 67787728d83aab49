"""What the head of a request says and who is behind it; kept while a connection sends the same head again."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dragoman.dialects.base import ClientDialect
from dragoman.server.auth import CREDENTIAL_HEADERS, Caller, Gate
from dragoman.server.http import Scope, address_of, headers_of
from dragoman.server.routes import Found, dialect_of
from dragoman.server.sigv4 import Claim
from dragoman.server.trail import Noted
from dragoman.server.watch import Watch
from dragoman.server.wire.turn import Turn

_NOT_PASSED_ON = frozenset({*CREDENTIAL_HEADERS, "content-length"})


class Errand(msgspec.Struct, frozen=True):
    """What a head says; nobody has looked yet whether it may. Of the length only, another request may say otherwise."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    dialect: ClientDialect  # in which a refusal is told
    noted: Noted

    @property
    def has_body(self) -> bool:
        return self.method in ("POST", "PUT")


class Entry(msgspec.Struct, frozen=True):
    """An errand whose head has passed the gate: what it wants, and who wants it, or claims to.

    `headers` and `query` are for the handlers: without what opened the door, which nobody behind it needs.
    """

    errand: Errand
    gate: Gate
    route: Found
    admitted: Caller | Claim
    headers: Mapping[str, str]
    query: Mapping[str, str]
    lasting: bool

    @classmethod
    def of(cls, errand: Errand, gate: Gate, route: Found, admitted: Caller | Claim) -> Entry:
        """`lasting` if the same head would be let in again, at any time and with a body of any length."""
        headers = {name: value for name, value in errand.headers.items() if name not in _NOT_PASSED_ON}
        query = {name: value for name, value in errand.query.items() if name != "key"}
        lasting = (
            route.lasting
            and route.door == "key"
            and gate.says_the_same_again(admitted, errand.headers)
            and gate.is_json(errand.headers)
        )
        return cls(errand, gate, route, admitted, headers, query, lasting)


def read_errand(scope: Scope, watch: Watch) -> Errand:
    headers, (path, query) = headers_of(scope), address_of(scope)
    method: str = scope["method"]
    return Errand(method, path, query, headers, dialect_of(path, headers), watch.note(method, path, headers))


def known_entry(turn: Turn | None, gate: Gate) -> Entry | None:
    """What this connection's last request came to, if it had the same head, and this gate let it in."""
    kept = turn.kept if turn is not None else None
    known = kept.meaning if kept is not None else None
    return known if isinstance(known, Entry) and known.gate is gate else None


def keep_entry(entry: Entry, turn: Turn | None) -> None:
    if entry.lasting and turn is not None and turn.kept is not None:
        turn.kept.meaning = entry
