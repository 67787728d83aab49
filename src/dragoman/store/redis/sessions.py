"""Tools of sessions in Redis. Every operation is one Lua script: atomic, and one round trip.

    s:<session>    hash    tools, config, and the ids of the last calls in `last`
    sc:<session>   hash    call id -> data
    so:<session>   list    call ids, oldest first
    sr:<session>   hash    call id -> a result that was not taken yet

Writing, and reading the toolset, renews the time to live of all keys of the session.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from dragoman.store.base import MAX_SESSION_CALLS, CallData, Toolset
from dragoman.store.redis.connection import RedisConnection

#: The end of every script that reads the toolset or writes: renew the time to live.
_RENEW = """
for _, kind in ipairs({'s:', 'sc:', 'so:', 'sr:'}) do redis.call('EXPIRE', p .. kind .. session, ttl) end
"""
_HEAD = "local p, session, ttl = ARGV[1], ARGV[2], ARGV[3]\n"

_SET = _HEAD + "redis.call('HSET', p .. 's:' .. session, ARGV[4], ARGV[5])" + _RENEW + "return 1"
_TOOLSET = _HEAD + _RENEW + "return redis.call('HMGET', p .. 's:' .. session, 'tools', 'config')"
_CLEAR = (
    _HEAD
    + "return redis.call('DEL', p .. 's:' .. session, p .. 'sc:' .. session, p .. 'so:' .. session,"
    + " p .. 'sr:' .. session)"
)
_REGISTER = (
    _HEAD
    + """
if ARGV[5] ~= '' then redis.call('HSET', p .. 's:' .. session, 'last', ARGV[5]) end
for i = 6, #ARGV, 2 do
  if redis.call('HSET', p .. 'sc:' .. session, ARGV[i], ARGV[i + 1]) == 1 then
    redis.call('RPUSH', p .. 'so:' .. session, ARGV[i])
  end
end
while redis.call('LLEN', p .. 'so:' .. session) > tonumber(ARGV[4]) do
  redis.call('HDEL', p .. 'sc:' .. session, redis.call('LPOP', p .. 'so:' .. session))
end
"""
    + _RENEW
    + "return 1"
)
_CALLS = (
    _HEAD
    + """
local found = {}
for _, id in ipairs(redis.call('LRANGE', p .. 'so:' .. session, 0, -1)) do
  found[#found + 1] = id
  found[#found + 1] = redis.call('HGET', p .. 'sc:' .. session, id)
end
return found
"""
)
_LAST = (
    _HEAD
    + """
local found = {}
for _, id in ipairs(cjson.decode(redis.call('HGET', p .. 's:' .. session, 'last') or '[]')) do
  local data = redis.call('HGET', p .. 'sc:' .. session, id)
  if data then
    found[#found + 1] = id
    found[#found + 1] = data
  end
end
return found
"""
)
_ADD = (
    _HEAD
    + "for i = 4, #ARGV, 2 do redis.call('HSET', p .. 'sr:' .. session, ARGV[i], ARGV[i + 1]) end"
    + _RENEW
    + "return 1"
)
_RESULTS = _HEAD + "return redis.call('HGETALL', p .. 'sr:' .. session)"
_TAKE = (
    _HEAD
    + """
local key = p .. 'sr:' .. session
if ARGV[4] == 'all' then
  local found = redis.call('HGETALL', key)
  redis.call('DEL', key)
  return found
end
local found = {}
for i = 5, #ARGV do
  local data = redis.call('HGET', key, ARGV[i])
  if data then
    found[#found + 1] = ARGV[i]
    found[#found + 1] = data
    redis.call('HDEL', key, ARGV[i])
  end
end
return found
"""
)
_CALL = _HEAD + "return redis.call('HGET', p .. 'sc:' .. session, ARGV[4])"


class RedisSessionTools:
    def __init__(self, connection: RedisConnection, prefix: str, max_age_s: int) -> None:
        self._connection = connection
        self._prefix = prefix
        self._max_age_s = max_age_s

    async def set_tools(self, scope: str, session: str, tools: bytes) -> None:
        await self._run(_SET, scope, session, "tools", tools)

    async def set_config(self, scope: str, session: str, config: bytes) -> None:
        await self._run(_SET, scope, session, "config", config)

    async def toolset(self, scope: str, session: str) -> Toolset | None:
        tools, config = await self._run(_TOOLSET, scope, session)
        return None if tools is None and config is None else Toolset(tools=tools or b"", config=config or b"")

    async def clear(self, scope: str, session: str) -> bool:
        return bool(await self._run(_CLEAR, scope, session))

    async def register_calls(
        self, scope: str, session: str, calls: Sequence[CallData], *, last: bool = True
    ) -> None:
        ids = msgspec.json.encode([call_id for call_id, _ in calls]) if last else b""
        await self._run(_REGISTER, scope, session, MAX_SESSION_CALLS, ids, *_flatten(calls))

    async def call(self, scope: str, session: str, call_id: str) -> bytes | None:
        found: bytes | None = await self._run(_CALL, scope, session, call_id)
        return found

    async def calls(self, scope: str, session: str) -> list[CallData]:
        return _entries(await self._run(_CALLS, scope, session))

    async def last_calls(self, scope: str, session: str) -> list[CallData]:
        return _entries(await self._run(_LAST, scope, session))

    async def add_results(self, scope: str, session: str, results: Sequence[CallData]) -> None:
        await self._run(_ADD, scope, session, *_flatten(results))

    async def results(self, scope: str, session: str) -> dict[str, bytes]:
        return dict(_entries(await self._run(_RESULTS, scope, session)))

    async def take_results(
        self, scope: str, session: str, call_ids: Collection[str] | None = None
    ) -> dict[str, bytes]:
        which = ("all",) if call_ids is None else ("these", *call_ids)
        return dict(_entries(await self._run(_TAKE, scope, session, *which)))

    async def _run(self, script: str, scope: str, session: str, *args: str | bytes | int) -> Any:
        prefix = f"{self._prefix}{{{scope}}}:"
        key = f"{prefix}s:{session}"
        return await self._connection.run_script(script, key, prefix, session, self._max_age_s, *args)


def _entries(flat: list[bytes]) -> list[CallData]:
    return [(call_id.decode(), data) for call_id, data in zip(flat[::2], flat[1::2], strict=True)]


def _flatten(entries: Sequence[CallData]) -> list[str | bytes]:
    return [value for entry in entries for value in entry]
