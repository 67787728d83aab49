"""Authentication of the dashboard: an admin key, or the cookie that it was exchanged for.

With the emulator backend on a loopback address no credentials are needed.
"""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.errors import DragomanError, NotAllowed
from dragoman.server.auth import Caller, Gate, presented_keys, scope_of
from dragoman.server.cookies import LIFETIME_S, Pass, cookie_value, is_own_page, read_pass
from dragoman.server.reach import reach
from dragoman.store import Charge, Store
from dragoman.tokens import new_token

_MAX_FAILURES = 10  # failed logins per client address and minute
_MINUTE_S = 60
_READING = frozenset({"GET", "HEAD"})


class Door:
    """Authenticate dashboard requests. With `is_open` no key is needed.

    Failed logins and ended sessions are recorded in the store, so that all workers and replicas share them.
    """

    def __init__(self, gate: Gate, store: Store, *, is_open: bool) -> None:
        self._gate = gate
        self._store = store
        self.is_open = is_open

    async def admit(
        self, method: str, headers: Mapping[str, str], query: Mapping[str, str], now_s: float
    ) -> Caller:
        """Return the admin who sent the request; raise NotAllowed. A key takes precedence over a cookie."""
        if not presented_keys(headers):
            caller = await self._by_cookie(method, headers, now_s)
            if caller is not None:
                return caller
            if self.is_open and not query.get("key"):
                return Caller(scope=scope_of(""), admin=True)
        admitted = self._gate.admit(headers, query, now_s)
        if not isinstance(admitted, Caller):
            raise NotAllowed("signed requests are not for the dashboard: show the gateway key itself")
        self._gate.check_admin(admitted)
        return admitted

    async def log_in(
        self, headers: Mapping[str, str], query: Mapping[str, str], now_s: float, address: str
    ) -> Caller:
        """Like `admit`, but raise DragomanError (`rate_limit`) after too many failures from `address`."""
        meter = f"dashboard|tries|{address}|{int(now_s) // _MINUTE_S}"
        tried = (await reach(self._store.meters.read([meter]))).get(meter, 0)
        if tried >= _MAX_FAILURES:
            wait_s = _MINUTE_S - now_s % _MINUTE_S
            why = "too many logins from there have failed; wait a minute"
            raise DragomanError(why, kind="rate_limit", retry_after_s=wait_s)
        try:
            return await self.admit("POST", headers, query, now_s)
        except NotAllowed:
            ends_s = int(now_s) + 2 * _MINUTE_S
            await reach(self._store.meters.charge([Charge(name=meter, amount=1, ends_s=ends_s)]))
            raise

    def issue(self, caller: Caller, now_s: float) -> Pass:
        """Return the content of a new session cookie."""
        return Pass(id=new_token(), ends_s=int(now_s) + LIFETIME_S, key_hash=self._gate.seal_of(caller))

    async def log_out(self, headers: Mapping[str, str], now_s: float) -> None:
        """Revoke the session at all replicas, so that a copied cookie is invalid too."""
        known = self._read(headers, now_s)
        if known is not None:
            charge = Charge(name=_ended(known), amount=1, ends_s=known.ends_s + 1)
            await reach(self._store.meters.charge([charge]))

    async def _by_cookie(self, method: str, headers: Mapping[str, str], now_s: float) -> Caller | None:
        known = self._read(headers, now_s)
        if known is None:
            return None
        if method not in _READING and not is_own_page(headers):
            raise NotAllowed("only the dashboard's own page may do that with its cookie", kind="permission")
        ended = await reach(self._store.meters.read([_ended(known)]))
        if ended.get(_ended(known), 0):
            return None
        return self._gate.admin_of(known.key_hash)

    def _read(self, headers: Mapping[str, str], now_s: float) -> Pass | None:
        return read_pass(cookie_value(headers), self._gate.admin_seals, now_s)


def _ended(known: Pass) -> str:
    return f"dashboard|ended|{known.id}"
