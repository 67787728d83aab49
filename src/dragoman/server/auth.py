"""Who may call: gateway keys, a client's own Google key, and no web page at all (pains Q5, Q7, Q8, Q10)."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from hashlib import sha256

import msgspec

from dragoman.config import LOOPBACK_NAMES
from dragoman.errors import InvalidRequest, NotAllowed

_GOOGLE_KEY_PREFIXES = ("AIza", "AQ.")


class Caller(msgspec.Struct, frozen=True):
    """Who calls; `google_key` is theirs, to be passed on and never stored.

    `scope` tells callers apart without naming them: what one keeps here no other can see.
    """

    google_key: str = ""
    scope: str = ""


class Gate:
    """Decides before a body is read. Only hashes of the keys are kept."""

    def __init__(self, keys: tuple[str, ...], *, open_to_all: bool, allowed_hosts: tuple[str, ...]) -> None:
        self._hashes = tuple(_hash(key) for key in keys)
        self._open_to_all = open_to_all
        self._hosts = LOOPBACK_NAMES | frozenset(host.lower() for host in allowed_hosts)

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """A browser that was sent here by another page is turned away, whatever it knows."""
        host = _host_name(headers.get("host", ""))
        if host not in self._hosts:
            why = f"this gateway does not answer to the host name {host!r}; see server.allowed_hosts"
            raise NotAllowed(why, kind="permission")
        origin = headers.get("origin", "")
        if origin and _host_name(origin.partition("://")[2]) not in self._hosts:
            raise NotAllowed("requests from web pages are refused", kind="permission")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise NotAllowed("requests from web pages are refused", kind="permission")

    def check_content_type(self, headers: Mapping[str, str]) -> None:
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and not kind.endswith("+json"):
            raise InvalidRequest(f"the content type must be application/json, not {kind or 'missing'}")

    def admit(self, headers: Mapping[str, str], query_key: str = "") -> Caller:
        """Any credential that is known opens the door: clients send stale ones beside the right one (pain N1)."""
        keys = presented_keys(headers) + ([query_key] if query_key else [])
        known = next((key for key in keys if self._is_known(key)), "")
        if known:
            return Caller(scope=_scope(known))
        google_key = next((key for key in keys if key.startswith(_GOOGLE_KEY_PREFIXES)), "")
        if google_key or self._open_to_all:
            return Caller(google_key=google_key, scope=_scope(google_key))
        if not keys:
            raise NotAllowed("a gateway key is needed: as Authorization: Bearer, x-api-key or x-goog-api-key")
        raise NotAllowed("this gateway key is not known")

    def _is_known(self, key: str) -> bool:
        hashed = _hash(key)
        return any([hmac.compare_digest(hashed, known) for known in self._hashes])  # noqa: C419 (no early exit)


def presented_keys(headers: Mapping[str, str]) -> list[str]:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    return [key for key in (bearer, headers.get("x-api-key"), headers.get("x-goog-api-key")) if key]


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].partition("/")[0].lower()


def _scope(key: str) -> str:
    return sha256(b"scope:" + key.encode("utf-8", "replace")).hexdigest()[:32] if key else "everybody"


def _hash(key: str) -> bytes:
    return sha256(key.encode("utf-8", "replace")).digest()
