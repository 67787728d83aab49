"""The pool of Google API keys: which key a request uses, and cooldowns that replicas share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from dragoman.errors import DragomanError, UpstreamError
from dragoman.store import Charge, Store, StoreUnavailable
from dragoman.upstream.keys import (
    ALL_MODELS,
    NO_KEY,
    ApiKey,
    Cooldown,
    choose_key,
    cooldown_for,
    name_keys,
    remaining_cooldown_s,
    shortest_cooldown_s,
)

_PROBE_S = 5.0  # after a cooldown, other requests avoid the key this long while one probes it
_MAX_COOLDOWNS = 4096
_REPORTED_COOLDOWN_S = 1.0  # a cooldown reported by another replica is read again after this


class KeyState(msgspec.Struct, frozen=True):
    """The state of a key for the dashboard: its name, and the seconds of cooldown left per model."""

    name: str
    cooldowns_s: dict[str, float]


class KeyPool:
    """A pool of API keys. With a single key, `only`, there is no choice and the store is never read.

    The store is a best-effort channel between replicas: if it is unavailable, each replica learns by itself.
    """

    def __init__(self, secrets: Sequence[str], store: Store, now: Callable[[], float] = time.time) -> None:
        self._keys = name_keys(secrets)
        self.single_key = None if len(self._keys) > 1 else next(iter(self._keys), NO_KEY)
        self._store = store
        self._now = now
        self._cooldowns: dict[tuple[str, str], float] = {}
        self._reported: set[tuple[str, str]] = set()  # entries of `_rests` that another replica reported

    async def pick(self, session: str, model: str) -> ApiKey:
        """Return the key for a request of this session; raise UpstreamError if all keys are cooling down."""
        if self.single_key is not None:
            return self.single_key
        await self._read_reported(model)
        now_s = self._now()
        key = choose_key(self._keys, session, model, self._cooldowns, now_s)
        if key is None:
            wait_s = shortest_cooldown_s(self._keys, model, self._cooldowns, now_s)
            why = f"all {len(self._keys)} keys rest for {model}"
            raise UpstreamError(why, kind="rate_limit", retry_after_s=wait_s)
        for place in ((key.name, model), (key.name, ALL_MODELS)):
            if place in self._cooldowns:  # its cooldown is over: this request probes it, others avoid it
                self._cooldowns[place] = now_s + _PROBE_S
        return key

    def has_other(self, model: str, but: ApiKey) -> bool:
        """Return whether another key than `but` is not cooling down."""
        now_s = self._now()
        others = (key for key in self._keys if key != but)
        return any(remaining_cooldown_s(key, model, self._cooldowns, now_s) == 0 for key in others)

    async def report(self, key: ApiKey, model: str, error: DragomanError | None) -> None:
        """Record the outcome of a request made with `key`: start a cooldown, or end it after a success."""
        if self.single_key is not None:
            return
        rest = cooldown_for(error, key.name, model, self._now()) if error is not None else None
        if rest is None:
            for place in ((key.name, model), (key.name, ALL_MODELS)):
                self._cooldowns.pop(place, None)
                self._reported.discard(place)
            return
        self._start_cooldown(rest)
        charge = Charge(name=_meter_name(rest.key, rest.model), amount=1, ends_s=int(rest.until_s) + 1)
        try:
            await self._store.meters.charge([charge])
        except StoreUnavailable:
            return  # other replicas learn it from their own requests

    async def _read_reported(self, model: str) -> None:
        """Read the cooldowns that other replicas have reported."""
        now_s = self._now()
        places = [(key.name, which) for key in self._keys for which in (model, ALL_MODELS)]
        asked = {_meter_name(*place): place for place in places if self._should_read(place, now_s)}
        if not asked:
            return
        try:
            shown = await self._store.meters.read(asked)
        except StoreUnavailable:
            return
        resting = {asked[name] for name, times in shown.items() if times}
        self._drop_oldest(now_s)
        self._cooldowns |= dict.fromkeys(resting, now_s + _REPORTED_COOLDOWN_S)
        self._reported = (self._reported - set(asked.values())) | resting

    def _should_read(self, place: tuple[str, str], now_s: float) -> bool:
        until_s = self._cooldowns.get(place)
        return until_s is None or (place in self._reported and until_s <= now_s)

    def _start_cooldown(self, rest: Cooldown) -> None:
        self._drop_oldest(self._now())
        self._cooldowns[rest.key, rest.model] = rest.until_s
        self._reported.discard((rest.key, rest.model))

    def _drop_oldest(self, now_s: float) -> None:
        """Drop expired cooldowns first, then those that expire soonest, once the table is full.

        Model names come from clients, so the table would grow without a bound.
        """
        if len(self._cooldowns) >= _MAX_COOLDOWNS:
            lasting = sorted(
                (until_s, place) for place, until_s in self._cooldowns.items() if until_s > now_s
            )
            self._cooldowns = {place: until_s for until_s, place in lasting[-(_MAX_COOLDOWNS // 2) :]}
            self._reported &= self._cooldowns.keys()

    async def reported_cooldowns(self, models: Iterable[str]) -> set[tuple[str, str]]:
        """Return the pairs of key and model for which any replica has reported a cooldown."""
        places = {
            _meter_name(key.name, model): (key.name, model)
            for key in self._keys
            for model in (*models, ALL_MODELS)
        }
        shown = await self._store.meters.read(places)
        return {places[name] for name, times in shown.items() if times}

    def states(self) -> list[KeyState]:
        """Return the cooldowns that this process knows of."""
        now_s = self._now()
        return [
            KeyState(
                key.name,
                {
                    model: until - now_s
                    for (name, model), until in self._cooldowns.items()
                    if name == key.name and until > now_s
                },
            )
            for key in self._keys
        ]


def _meter_name(key: str, model: str) -> str:
    return f"rest|{key}|{model}"
