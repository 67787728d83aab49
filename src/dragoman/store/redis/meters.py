"""Meters in Redis: one integer per meter, charged by one script.

Each charge has an id, so that it counts once even if the reply is lost and it is sent again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dragoman.ids import new_id
from dragoman.store.base import Charge
from dragoman.store.redis.connection import RedisConnection

_CHARGE = """
local once = ARGV[1] .. 'once|' .. ARGV[2]
if redis.call('EXISTS', once) == 1 then return '' end
for at = 3, #ARGV, 4 do
  local name, amount, limit = ARGV[1] .. ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  if limit > 0 and tonumber(redis.call('GET', name) or '0') + amount > limit then return ARGV[at] end
end
redis.call('SET', once, '', 'EX', 60)
for at = 3, #ARGV, 4 do
  local name = ARGV[1] .. ARGV[at]
  redis.call('INCRBY', name, ARGV[at + 1])
  redis.call('EXPIREAT', name, ARGV[at + 3])
end
return ''
"""


class RedisMeters:
    def __init__(self, connection: RedisConnection, prefix: str) -> None:
        self._connection = connection
        self._prefix = f"{prefix}n:"

    async def charge(self, charges: Sequence[Charge]) -> str:
        if not charges:
            return ""
        values = [value for one in charges for value in (one.name, one.amount, one.limit, one.ends_s)]
        key = self._prefix + charges[0].name
        refused: bytes = await self._connection.run_script(_CHARGE, key, self._prefix, new_id(), *values)
        return refused.decode()

    async def read(self, names: Collection[str]) -> dict[str, int]:
        meters = list(names)
        if not meters:
            return {}
        found: list[bytes | None] = await self._connection.call(
            lambda redis: redis.mget([self._prefix + name for name in meters])
        )
        return {name: int(value or 0) for name, value in zip(meters, found, strict=True)}
