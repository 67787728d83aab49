"""The store for several replicas: everything is in Redis, and every key has a time to live.

It supports a single server or a primary with sentinels, but not Redis Cluster. Redis itself bounds the size
(`maxmemory` with `volatile-ttl` or `volatile-lru`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from dragoman.store.recent import RECENT_BYTES, Recent
from dragoman.store.redis_ledger import RedisLedger
from dragoman.store.redis_link import RedisLink
from dragoman.store.redis_meters import RedisMeters
from dragoman.store.redis_sessions import RedisSessionTools
from dragoman.store.redis_turns import RedisTurns

PREFIX = "dragoman:"
_KEYS_PER_QUERY = 1000


class RedisStore:
    def __init__(self, url: str, *, max_age_s: float, recent_bytes: int = RECENT_BYTES) -> None:
        self._max_age_s = math.ceil(max_age_s)
        self._link = RedisLink(url)
        self._recent = Recent(recent_bytes)
        self.turns = RedisTurns(self._link, PREFIX, self._max_age_s)
        self.meters = RedisMeters(self._link, PREFIX)
        self.session_tools = RedisSessionTools(self._link, PREFIX, self._max_age_s)
        self.ledger = RedisLedger(self._link, PREFIX)

    async def recall(self, keys: Collection[str]) -> dict[str, str]:
        found, unknown = self._recent.find(keys)
        for start in range(0, len(unknown), _KEYS_PER_QUERY):
            group = unknown[start : start + _KEYS_PER_QUERY]
            values = await self._link.call(partial(_read, names=[_name(key) for key in group]))
            texts = [None if value is None else value.decode() for value in values]
            asked = {key: (text, 0) for key, text in zip(group, texts, strict=True)}
            self._recent.keep(asked)
            found |= asked
        return {key: value for key, (value, _) in found.items() if value is not None}

    async def remember(self, items: Sequence[tuple[str, str]]) -> None:
        async def write(redis: Any) -> None:
            pipeline = redis.pipeline(transaction=len(items) > 1)
            for key, value in items:
                pipeline.set(_name(key), value, ex=self._max_age_s)
            await pipeline.execute()

        # Cache before writing: if the write fails, this process still knows the value.
        self._recent.keep({key: (value, 0) for key, value in items})
        await self._link.call(write)

    async def close(self) -> None:
        await self._link.close()


async def _read(redis: Any, names: list[str]) -> list[bytes | None]:
    found: list[bytes | None] = await redis.mget(names)
    return found


def _name(key: str) -> str:
    return f"{PREFIX}m:{key}"
