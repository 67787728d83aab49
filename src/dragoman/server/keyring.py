"""The pool of Google API keys: which key a request uses, and cooldowns that replicas share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from dragoman.errors import DragomanError, UpstreamError
from dragoman.store import Charge, Store, StoreUnavailable
from dragoman.upstream.keys import (
    EVERY_MODEL,
    NO_KEY,
    Key,
    Rest,
    choose,
    name_keys,
    rest_after,
    rested_s,
    soonest_s,
)

_PROBE_S = 5.0  # after a cooldown, other requests avoid the key this long while one probes it
_MOST_RESTS = 4096
_HEARSAY_S = 1.0  # a cooldown reported by another replica is read again after this


class KeyState(msgspec.Struct, frozen=True):
    """The state of a key for the dashboard: its name, and the seconds of cooldown left per model."""

    name: str
    rests: dict[str, float]


class KeyRing:
    """A pool of API keys. With a single key, `only`, there is no choice and the store is never read.

    The store is a best-effort channel between replicas: if it is unavailable, each replica learns by itself.
    """

    def __init__(self, secrets: Sequence[str], store: Store, now: Callable[[], float] = time.time) -> None:
        self._keys = name_keys(secrets)
        self.only = None if len(self._keys) > 1 else next(iter(self._keys), NO_KEY)
        self._store = store
        self._now = now
        self._rests: dict[tuple[str, str], float] = {}
        self._hearsay: set[tuple[str, str]] = set()  # entries of `_rests` that another replica reported

    async def pick(self, session: str, model: str) -> Key:
        """Return the key for a request of this session; raise UpstreamError if all keys are cooling down."""
        if self.only is not None:
            return self.only
        await self._read_reported(model)
        now_s = self._now()
        key = choose(self._keys, session, model, self._rests, now_s)
        if key is None:
            wait_s = soonest_s(self._keys, model, self._rests, now_s)
            why = f"all {len(self._keys)} keys rest for {model}"
            raise UpstreamError(why, kind="rate_limit", retry_after_s=wait_s)
        for place in ((key.name, model), (key.name, EVERY_MODEL)):
            if place in self._rests:  # its cooldown is over: this request probes it, others avoid it
                self._rests[place] = now_s + _PROBE_S
        return key

    def has_other(self, model: str, but: Key) -> bool:
        """Return whether another key than `but` is not cooling down."""
        now_s = self._now()
        others = (key for key in self._keys if key != but)
        return any(rested_s(key, model, self._rests, now_s) == 0 for key in others)

    async def report(self, key: Key, model: str, error: DragomanError | None) -> None:
        """Record the outcome of a request made with `key`: start a cooldown, or end it after a success."""
        if self.only is not None:
            return
        rest = rest_after(error, key.name, model, self._now()) if error is not None else None
        if rest is None:
            for place in ((key.name, model), (key.name, EVERY_MODEL)):
                self._rests.pop(place, None)
                self._hearsay.discard(place)
            return
        self._note(rest)
        charge = Charge(name=_name(rest.key, rest.model), amount=1, ends_s=int(rest.until_s) + 1)
        try:
            await self._store.meters.charge([charge])
        except StoreUnavailable:
            return  # other replicas learn it from their own requests

    async def _read_reported(self, model: str) -> None:
        """Read the cooldowns that other replicas have reported."""
        now_s = self._now()
        places = [(key.name, which) for key in self._keys for which in (model, EVERY_MODEL)]
        asked = {_name(*place): place for place in places if self._should_read(place, now_s)}
        if not asked:
            return
        try:
            shown = await self._store.meters.read(asked)
        except StoreUnavailable:
            return
        resting = {asked[name] for name, times in shown.items() if times}
        self._drop_oldest(now_s)
        self._rests |= dict.fromkeys(resting, now_s + _HEARSAY_S)
        self._hearsay = (self._hearsay - set(asked.values())) | resting

    def _should_read(self, place: tuple[str, str], now_s: float) -> bool:
        until_s = self._rests.get(place)
        return until_s is None or (place in self._hearsay and until_s <= now_s)

    def _note(self, rest: Rest) -> None:
        self._drop_oldest(self._now())
        self._rests[rest.key, rest.model] = rest.until_s
        self._hearsay.discard((rest.key, rest.model))

    def _drop_oldest(self, now_s: float) -> None:
        """Drop expired cooldowns first, then those that expire soonest, once the table is full.

        Model names come from clients, so the table would grow without a bound.
        """
        if len(self._rests) >= _MOST_RESTS:
            lasting = sorted((until_s, place) for place, until_s in self._rests.items() if until_s > now_s)
            self._rests = {place: until_s for until_s, place in lasting[-(_MOST_RESTS // 2) :]}
            self._hearsay &= self._rests.keys()

    async def heard(self, models: Iterable[str]) -> set[tuple[str, str]]:
        """Return the pairs of key and model for which any replica has reported a cooldown."""
        places = {
            _name(key.name, model): (key.name, model)
            for key in self._keys
            for model in (*models, EVERY_MODEL)
        }
        shown = await self._store.meters.read(places)
        return {places[name] for name, times in shown.items() if times}

    def state(self) -> list[KeyState]:
        """Return the cooldowns that this process knows of."""
        now_s = self._now()
        return [
            KeyState(
                key.name,
                {
                    model: until - now_s
                    for (name, model), until in self._rests.items()
                    if name == key.name and until > now_s
                },
            )
            for key in self._keys
        ]


def _name(key: str, model: str) -> str:
    return f"rest|{key}|{model}"
