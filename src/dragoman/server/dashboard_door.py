"""Authentication of the dashboard: an admin key, or the cookie that it was exchanged for.

With the emulator backend on a loopback address no credentials are needed.
"""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.errors import DragomanError, NotAllowed
from dragoman.server.auth import Authenticator, Caller, presented_keys, scope_of
from dragoman.server.cookies import LIFETIME_S, DashboardCookie, cookie_value, is_same_origin, verify_cookie
from dragoman.server.reach import require_store
from dragoman.store import Charge, Store
from dragoman.tokens import new_id

_MAX_FAILURES = 10  # failed logins per client address and minute
_MINUTE_S = 60
_SAFE_METHODS = frozenset({"GET", "HEAD"})


class DashboardAuth:
    """Authenticate dashboard requests. With `is_open` no key is needed.

    Failed logins and ended sessions are recorded in the store, so that all workers and replicas share them.
    """

    def __init__(self, gate: Authenticator, store: Store, *, is_open: bool) -> None:
        self._authenticator = gate
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
        admitted = self._authenticator.authenticate(headers, query, now_s)
        if not isinstance(admitted, Caller):
            raise NotAllowed("signed requests are not for the dashboard: show the gateway key itself")
        self._authenticator.check_admin(admitted)
        return admitted

    async def log_in(
        self, headers: Mapping[str, str], query: Mapping[str, str], now_s: float, address: str
    ) -> Caller:
        """Like `admit`, but raise DragomanError (`rate_limit`) after too many failures from `address`."""
        meter = f"dashboard|tries|{address}|{int(now_s) // _MINUTE_S}"
        tried = (await require_store(self._store.meters.read([meter]))).get(meter, 0)
        if tried >= _MAX_FAILURES:
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
        known = self._read_cookie(headers, now_s)
        if known is not None:
            charge = Charge(name=_revocation_meter(known), amount=1, ends_s=known.expires_s + 1)
            await require_store(self._store.meters.charge([charge]))

    async def _authenticate_cookie(
        self, method: str, headers: Mapping[str, str], now_s: float
    ) -> Caller | None:
        known = self._read_cookie(headers, now_s)
        if known is None:
            return None
        if method not in _SAFE_METHODS and not is_same_origin(headers):
            raise NotAllowed("only the dashboard's own page may do that with its cookie", kind="permission")
        ended = await require_store(self._store.meters.read([_revocation_meter(known)]))
        if ended.get(_revocation_meter(known), 0):
            return None
        return self._authenticator.admin_by_cookie_secret(known.secret)

    def _read_cookie(self, headers: Mapping[str, str], now_s: float) -> DashboardCookie | None:
        return verify_cookie(cookie_value(headers), self._authenticator.admin_cookie_secrets, now_s)


def _revocation_meter(known: DashboardCookie) -> str:
    return f"dashboard|ended|{known.id}"
