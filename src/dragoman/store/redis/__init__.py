"""The store for several replicas: everything is in Redis, and every key has a time to live.

It supports a single server or a primary with sentinels, but not Redis Cluster. Redis itself bounds the size
(`maxmemory` with `volatile-ttl` or `volatile-lru`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from dragoman.store.read_cache import READ_CACHE_BYTES, ReadCache
from dragoman.store.redis.connection import RedisConnection
from dragoman.store.redis.ledger import RedisLedger
from dragoman.store.redis.meters import RedisMeters
from dragoman.store.redis.sessions import RedisSessionTools
from dragoman.store.redis.turns import RedisTurns

PREFIX = "dragoman:"
_KEYS_PER_QUERY = 1000


class RedisStore:
    def __init__(self, url: str, *, max_age_s: float, cache_bytes: int = READ_CACHE_BYTES) -> None:
        self._max_age_s = math.ceil(max_age_s)
        self._connection = RedisConnection(url)
        self._cache = ReadCache(cache_bytes)
        self.turns = RedisTurns(self._connection, PREFIX, self._max_age_s)
        self.meters = RedisMeters(self._connection, PREFIX)
        self.session_tools = RedisSessionTools(self._connection, PREFIX, self._max_age_s)
        self.ledger = RedisLedger(self._connection, PREFIX)

    async def get_values(self, keys: Collection[str]) -> dict[str, str]:
        found, missing = self._cache.find(keys)
        for start in range(0, len(missing), _KEYS_PER_QUERY):
            group = missing[start : start + _KEYS_PER_QUERY]
            values = await self._connection.call(
                partial(_read_values, names=[_redis_key(key) for key in group])
            )
            texts = [None if value is None else value.decode() for value in values]
            entries = {key: (text, 0) for key, text in zip(group, texts, strict=True)}
            self._cache.put(entries)
            found |= entries
        return {key: value for key, (value, _) in found.items() if value is not None}

    async def set_values(self, items: Sequence[tuple[str, str]]) -> None:
        async def write(redis: Any) -> None:
            pipeline = redis.pipeline(transaction=len(items) > 1)
            for key, value in items:
                pipeline.set(_redis_key(key), value, ex=self._max_age_s)
            await pipeline.execute()

        # Cache before writing: if the write fails, this process still knows the value.
        self._cache.put({key: (value, 0) for key, value in items})
        await self._connection.call(write)

    async def close(self) -> None:
        await self._connection.close()


async def _read_values(redis: Any, names: list[str]) -> list[bytes | None]:
    found: list[bytes | None] = await redis.mget(names)
    return found


def _redis_key(key: str) -> str:
    return f"{PREFIX}m:{key}"
