"""Who may see the dashboard: an admin's gateway key, the cookie it was exchanged for, or, on an emulator that nobody
else can reach, everybody."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.errors import DragomanError, NotAllowed
from dragoman.server.auth import Caller, Gate, presented_keys, scope_of
from dragoman.server.cookies import LIFETIME_S, Pass, cookie_value, is_own_page, read_pass
from dragoman.server.reach import reach
from dragoman.store import Charge, Store
from dragoman.tokens import new_token

_TRIES = 10  # that fail, of one address in one minute
_MINUTE_S = 60
_READING = frozenset({"GET", "HEAD"})


class Door:
    """`is_open`: no key is asked for. State lies in the store, so that all workers and replicas share it."""

    def __init__(self, gate: Gate, store: Store, *, is_open: bool) -> None:
        self._gate = gate
        self._store = store
        self.is_open = is_open

    async def admit(
        self, method: str, headers: Mapping[str, str], query: Mapping[str, str], now_s: float
    ) -> Caller:
        """A key counts before a cookie: whoever shows one means it."""
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
        """As `admit`, but whoever tries again and again must wait."""
        meter = f"dashboard|tries|{address}|{int(now_s) // _MINUTE_S}"
        tried = (await reach(self._store.meters.read([meter]))).get(meter, 0)
        if tried >= _TRIES:
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
        return Pass(id=new_token(), ends_s=int(now_s) + LIFETIME_S, key_hash=self._gate.seal_of(caller))

    async def log_out(self, headers: Mapping[str, str], now_s: float) -> None:
        """The pass ends here and everywhere, also where somebody has copied it."""
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
