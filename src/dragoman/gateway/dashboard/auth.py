"""Authentication of the dashboard: an admin key, or the session cookie that it was exchanged for.

The cookie is signed with a secret derived from the key. So every worker and replica can verify it, and it becomes
invalid when the key is removed. With the emulator backend on a loopback address no credentials are needed.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from hashlib import sha256

import msgspec

from dragoman.errors import DragomanError, NotAllowed
from dragoman.gateway.auth.authenticator import Authenticator, Caller, presented_keys, scope_of
from dragoman.gateway.store_errors import require_store
from dragoman.ids import new_id
from dragoman.store import Charge, Store

LIFETIME_S = 12 * 3600
_COOKIE_NAME = "dragoman"
_SIGNATURE_LABEL = b"dragoman dashboard cookie 1"
_MAX_TIME_DIGITS = 12
_MAX_ID_CHARACTERS = 64


class DashboardCookie(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a cookie: its own id, its expiry, and the secret of the key that signs it."""

    id: str
    expires_s: int
    secret: str


def encode_cookie(cookie: DashboardCookie) -> str:
    """Return the cookie's value."""
    return f"{cookie.id}.{cookie.expires_s}.{_signature(cookie.secret, cookie.id, cookie.expires_s)}"


def verify_cookie(value: str, key_hashes: Iterable[str], now_s: float) -> DashboardCookie | None:
    """Verify a cookie's value; None if it is malformed, expired, or signed with none of the keys.

    All keys are compared, so that the time leaks nothing.
    """
    parts = value.split(".")
    if len(parts) != 3 or not parts[0].isalnum() or len(parts[0]) > _MAX_ID_CHARACTERS:
        return None
    cookie_id, expires, signature = parts
    if (
        not (expires.isascii() and expires.isdecimal())
        or len(expires) > _MAX_TIME_DIGITS
        or not signature.isascii()
    ):
        return None
    candidates = [DashboardCookie(id=cookie_id, expires_s=int(expires), secret=one) for one in key_hashes]
    matches = [
        hmac.compare_digest(_signature(one.secret, one.id, one.expires_s), signature) for one in candidates
    ]
    found = next((one for one, fit in zip(candidates, matches, strict=True) if fit), None)
    return found if found is not None and now_s < found.expires_s else None


def cookie_name(headers: Mapping[str, str]) -> str:
    """Return the cookie's name, which contains the port.

    Cookies are not isolated by port (RFC 6265, section 8.5): two gateways on one host would overwrite each
    other's.
    """
    port = headers.get("host", "").rpartition(":")[2]
    return f"{_COOKIE_NAME}_{port}" if port.isascii() and port.isdecimal() else _COOKIE_NAME


def cookie_value(headers: Mapping[str, str]) -> str:
    """Return the value of the dashboard's cookie, or ""."""
    from http.cookies import CookieError, SimpleCookie  # only dashboard requests need it

    try:
        found = SimpleCookie(headers.get("cookie", "")).get(cookie_name(headers))
    except CookieError:
        return ""
    return found.value if found is not None else ""


def set_cookie(headers: Mapping[str, str], value: str, lifetime_s: int) -> tuple[str, str]:
    """Return the Set-Cookie header; a lifetime of 0 seconds deletes the cookie.

    The cookie is `Secure` if the page was loaded over TLS. That is taken from the Origin header, because a
    proxy in front of the gateway may terminate TLS.
    """
    secure = "; Secure" if headers.get("origin", "").startswith("https://") else ""
    attributes = f"Path=/dashboard; Max-Age={lifetime_s}; HttpOnly; SameSite=Strict{secure}"
    return "set-cookie", f"{cookie_name(headers)}={value}; {attributes}"


def is_same_origin(headers: Mapping[str, str]) -> bool:
    """Return whether the request comes from a page of this host and port (protection against CSRF)."""
    origin = headers.get("origin", "").partition("://")[2]
    return bool(origin) and origin == headers.get("host", "")


def _signature(key_hash: str, cookie_id: str, expires_s: int) -> str:
    root = hmac.digest(key_hash.encode(), _SIGNATURE_LABEL, sha256)
    return hmac.new(root, f"{cookie_id}.{expires_s}".encode(), sha256).hexdigest()


_MAX_FAILURES = 10  # failed logins per client address and minute
_MINUTE_S = 60
_SAFE_METHODS = frozenset({"GET", "HEAD"})


class DashboardAuth:
    """Authenticate dashboard requests. With `is_open` no key is needed.

    Failed logins and ended sessions are recorded in the store, so that all workers and replicas share them.
    """

    def __init__(self, authenticator: Authenticator, store: Store, *, is_open: bool) -> None:
        self._authenticator = authenticator
        self._store = store
        self.is_open = is_open

    async def authenticate(
        self, method: str, headers: Mapping[str, str], query: Mapping[str, str], now_s: float
    ) -> Caller:
        """Return the admin who sent the request; raise NotAllowed. A key takes precedence over a cookie."""
        if not presented_keys(headers):
            caller = await self._authenticate_cookie(method, headers, now_s)
            if caller is not None:
                return caller
            if self.is_open and not query.get("key"):
                return Caller(scope=scope_of(""), admin=True)
        identity = self._authenticator.authenticate(headers, query, now_s)
        if not isinstance(identity, Caller):
            raise NotAllowed("signed requests are not for the dashboard: show the gateway key itself")
        self._authenticator.check_admin(identity)
        return identity

    async def log_in(
        self, headers: Mapping[str, str], query: Mapping[str, str], now_s: float, address: str
    ) -> Caller:
        """Like `authenticate`, but raise DragomanError (`rate_limit`) after too many failures from `address`."""
        meter = f"dashboard|tries|{address}|{int(now_s) // _MINUTE_S}"
        failures = (await require_store(self._store.meters.read([meter]))).get(meter, 0)
        if failures >= _MAX_FAILURES:
            wait_s = _MINUTE_S - now_s % _MINUTE_S
            why = "too many logins from there have failed; wait a minute"
            raise DragomanError(why, kind="rate_limit", retry_after_s=wait_s)
        try:
            return await self.authenticate("POST", headers, query, now_s)
        except NotAllowed:
            ends_s = int(now_s) + 2 * _MINUTE_S
            await require_store(self._store.meters.charge([Charge(name=meter, amount=1, ends_s=ends_s)]))
            raise

    def new_cookie(self, caller: Caller, now_s: float) -> DashboardCookie:
        """Return the content of a new session cookie."""
        return DashboardCookie(
            id=new_id(),
            expires_s=int(now_s) + LIFETIME_S,
            secret=self._authenticator.cookie_secret_of(caller),
        )

    async def log_out(self, headers: Mapping[str, str], now_s: float) -> None:
        """Revoke the session at all replicas, so that a copied cookie is invalid too."""
        cookie = self._read_cookie(headers, now_s)
        if cookie is not None:
            charge = Charge(name=_revocation_meter(cookie), amount=1, ends_s=cookie.expires_s + 1)
            await require_store(self._store.meters.charge([charge]))

    async def _authenticate_cookie(
        self, method: str, headers: Mapping[str, str], now_s: float
    ) -> Caller | None:
        cookie = self._read_cookie(headers, now_s)
        if cookie is None:
            return None
        if method not in _SAFE_METHODS and not is_same_origin(headers):
            raise NotAllowed("only the dashboard's own page may do that with its cookie", kind="permission")
        ended = await require_store(self._store.meters.read([_revocation_meter(cookie)]))
        if ended.get(_revocation_meter(cookie), 0):
            return None
        return self._authenticator.admin_by_cookie_secret(cookie.secret)

    def _read_cookie(self, headers: Mapping[str, str], now_s: float) -> DashboardCookie | None:
        return verify_cookie(cookie_value(headers), self._authenticator.admin_cookie_secrets, now_s)


def _revocation_meter(cookie: DashboardCookie) -> str:
    return f"dashboard|ended|{cookie.id}"
