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
    """A pool of API keys. With a single key, `single_key`, there is no choice and the store is never read.

    The store is a best-effort channel between replicas: if it is unavailable, each replica learns by itself.
    """

    def __init__(self, secrets: Sequence[str], store: Store, now: Callable[[], float] = time.time) -> None:
        self._keys = name_keys(secrets)
        self.single_key = None if len(self._keys) > 1 else next(iter(self._keys), NO_KEY)
        self._store = store
        self._now = now
        self._cooldowns: dict[tuple[str, str], float] = {}  # by key and model: when it ends
        self._reported: set[tuple[str, str]] = set()  # entries of `_cooldowns` that another replica reported

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
        for entry in ((key.name, model), (key.name, ALL_MODELS)):
            if entry in self._cooldowns:  # its cooldown is over: this request probes it, others avoid it
                self._cooldowns[entry] = now_s + _PROBE_S
        return key

    def has_other(self, model: str, current: ApiKey) -> bool:
        """Return whether another key than `current` is not cooling down."""
        now_s = self._now()
        others = (key for key in self._keys if key != current)
        return any(remaining_cooldown_s(key, model, self._cooldowns, now_s) == 0 for key in others)

    async def report(self, key: ApiKey, model: str, error: DragomanError | None) -> None:
        """Record the outcome of a request made with `key`: start a cooldown, or end it after a success."""
        if self.single_key is not None:
            return
        cooldown = cooldown_for(error, key.name, model, self._now()) if error is not None else None
        if cooldown is None:
            for entry in ((key.name, model), (key.name, ALL_MODELS)):
                self._cooldowns.pop(entry, None)
                self._reported.discard(entry)
            return
        self._start_cooldown(cooldown)
        meter = _meter_name(cooldown.key, cooldown.model)
        charge = Charge(name=meter, amount=1, ends_s=int(cooldown.until_s) + 1)
        try:
            await self._store.meters.charge([charge])
        except StoreUnavailable:
            return  # other replicas learn it from their own requests

    async def _read_reported(self, model: str) -> None:
        """Read the cooldowns that other replicas have reported."""
        now_s = self._now()
        entries = [(key.name, name) for key in self._keys for name in (model, ALL_MODELS)]
        meters = {_meter_name(*entry): entry for entry in entries if self._should_read(entry, now_s)}
        if not meters:
            return
        try:
            counts = await self._store.meters.read(meters)
        except StoreUnavailable:
            return
        reported = {meters[meter] for meter, count in counts.items() if count}
        self._drop_oldest(now_s)
        self._cooldowns |= dict.fromkeys(reported, now_s + _REPORTED_COOLDOWN_S)
        self._reported = (self._reported - set(meters.values())) | reported

    def _should_read(self, entry: tuple[str, str], now_s: float) -> bool:
        until_s = self._cooldowns.get(entry)
        return until_s is None or (entry in self._reported and until_s <= now_s)

    def _start_cooldown(self, cooldown: Cooldown) -> None:
        self._drop_oldest(self._now())
        self._cooldowns[cooldown.key, cooldown.model] = cooldown.until_s
        self._reported.discard((cooldown.key, cooldown.model))

    def _drop_oldest(self, now_s: float) -> None:
        """Drop expired cooldowns first, then those that expire soonest, once the table is full.

        Model names come from clients, so the table would grow without a bound.
        """
        if len(self._cooldowns) >= _MAX_COOLDOWNS:
            active = sorted((until_s, entry) for entry, until_s in self._cooldowns.items() if until_s > now_s)
            self._cooldowns = {entry: until_s for until_s, entry in active[-(_MAX_COOLDOWNS // 2) :]}
            self._reported &= self._cooldowns.keys()

    async def reported_cooldowns(self, models: Iterable[str]) -> set[tuple[str, str]]:
        """Return the pairs of key and model for which any replica has reported a cooldown."""
        meters = {
            _meter_name(key.name, model): (key.name, model)
            for key in self._keys
            for model in (*models, ALL_MODELS)
        }
        counts = await self._store.meters.read(meters)
        return {meters[meter] for meter, count in counts.items() if count}

    def states(self) -> list[KeyState]:
        """Return the cooldowns that this process knows of."""
        now_s = self._now()
        return [
            KeyState(
                key.name,
                {
                    model: until_s - now_s
                    for (name, model), until_s in self._cooldowns.items()
                    if name == key.name and until_s > now_s
                },
            )
            for key in self._keys
        ]


def _meter_name(key: str, model: str) -> str:
    return f"rest|{key}|{model}"
