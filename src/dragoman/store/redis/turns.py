"""Conversations in Redis: all turns with the same first turn are in one hash, which expires as a whole.

    t:<tree>   hash    turn id -> parent, newline, data; "" -> when the keys below were last renewed
    i:<id>     string  the tree of a turn; lives half as long again as the tree, so it never expires first
    a:<id>     string  the answer of a turn
    c:<name>   hash    a conversation: head, data, created
    l:<name>   string  the holder of a lease

All keys of one scope share a hash tag. Every operation is one Lua script: atomic, and one round trip.
"""

from __future__ import annotations

from typing import Any

from dragoman.store.base import Conversation, ConversationTurn, HeadMoved
from dragoman.store.redis.connection import RedisConnection

_SAVE = """
local p, id, parent, data, answer, name, ttl = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7])
local tree = parent ~= '' and redis.call('GET', p .. 'i:' .. parent) or id
local line, keep = p .. 't:' .. tree, math.floor(ttl * 3 / 2) + 1
if name ~= '' then
  local head = redis.call('HGET', p .. 'c:' .. name, 'head')
  if head == id then return 1 end -- already saved: the reply to the first attempt was lost
  if head ~= parent then return 0 end
  redis.call('HSET', p .. 'c:' .. name, 'head', id)
  redis.call('EXPIRE', p .. 'c:' .. name, ttl)
end
local now = tonumber(redis.call('TIME')[1])
if now - tonumber(redis.call('HGET', line, '') or '0') > ttl / 2 then
  for _, own in ipairs(redis.call('HKEYS', line)) do
    redis.call('EXPIRE', p .. 'i:' .. own, keep)
    redis.call('EXPIRE', p .. 'a:' .. own, keep)
  end
  redis.call('HSET', line, '', now)
end
redis.call('HSET', line, id, parent .. '\\n' .. data)
redis.call('EXPIRE', line, ttl)
redis.call('SET', p .. 'i:' .. id, tree, 'EX', keep)
if answer ~= '' then redis.call('SET', p .. 'a:' .. id, answer, 'EX', keep) end
return 1
"""

_CHAIN = """
local p, id = ARGV[1], ARGV[2]
local tree = redis.call('GET', p .. 'i:' .. id)
local found = {}
while tree and id ~= '' do
  local entry = redis.call('HGET', p .. 't:' .. tree, id)
  if not entry then return {} end
  found[#found + 1] = id
  found[#found + 1] = entry
  id = string.sub(entry, 1, string.find(entry, '\\n', 1, true) - 1)
end
return found
"""

_TURN = """
local p, id = ARGV[1], ARGV[2]
local tree = redis.call('GET', p .. 'i:' .. id)
local entry = tree and redis.call('HGET', p .. 't:' .. tree, id)
if not entry then return {} end
return {entry, redis.call('GET', p .. 'a:' .. id) or ''}
"""

_DELETE = """
local p, id, keep_turn = ARGV[1], ARGV[2], ARGV[3] == '1'
local gone = redis.call('DEL', p .. 'a:' .. id)
if not keep_turn then
  local tree = redis.call('GET', p .. 'i:' .. id)
  if tree then gone = gone + redis.call('HDEL', p .. 't:' .. tree, id) end
  redis.call('DEL', p .. 'i:' .. id)
end
return gone
"""

# Delete a conversation whose turns have expired: it cannot be continued.
_CONVERSATION = """
local p, key = ARGV[1], KEYS[1]
local found = redis.call('HMGET', key, 'head', 'data', 'created')
if not found[1] then return {} end
if found[1] ~= '' then
  local tree = redis.call('GET', p .. 'i:' .. found[1])
  if not tree or redis.call('EXISTS', p .. 't:' .. tree) == 0 then
    redis.call('DEL', key)
    return {}
  end
end
return found
"""

_PUT_CONVERSATION = """
local p, key, ttl = ARGV[1], KEYS[1], ARGV[5]
redis.call('HSETNX', key, 'head', ARGV[2])
redis.call('HSETNX', key, 'created', ARGV[4])
redis.call('HSET', key, 'data', ARGV[3])
redis.call('EXPIRE', key, ttl)
local tree = redis.call('GET', p .. 'i:' .. redis.call('HGET', key, 'head'))
if tree then redis.call('EXPIRE', p .. 't:' .. tree, ttl) end
return 1
"""

_LEASE = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""

_RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class RedisTurns:
    def __init__(self, connection: RedisConnection, prefix: str, max_age_s: int) -> None:
        self._connection = connection
        self._prefix = prefix
        self._max_age_s = max_age_s

    async def save(self, turn: ConversationTurn, conversation: str = "") -> None:
        saved = await self._run(
            _SAVE, turn.scope, turn.id, turn.parent, turn.data, turn.answer, conversation, self._max_age_s
        )
        if not saved:
            raise HeadMoved

    async def chain(self, scope: str, turn_id: str) -> list[ConversationTurn]:
        flat: list[bytes] = await self._run(_CHAIN, scope, turn_id)
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return [_decode_turn(scope, turn_id.decode(), entry) for turn_id, entry in pairs][::-1]

    async def turn(self, scope: str, turn_id: str) -> ConversationTurn | None:
        found: list[bytes] = await self._run(_TURN, scope, turn_id)
        return _decode_turn(scope, turn_id, *found) if found else None

    async def delete(self, scope: str, turn_id: str, *, keep_turn: bool = False) -> bool:
        return bool(await self._run(_DELETE, scope, turn_id, int(keep_turn)))

    async def conversation(self, scope: str, name: str) -> Conversation | None:
        found: list[bytes] = await self._run(_CONVERSATION, scope, key=f"c:{name}")
        if not found:
            return None
        head, data, created = found
        return Conversation(name=name, scope=scope, head=head.decode(), data=data, created_s=int(created))

    async def put_conversation(self, conversation: Conversation) -> None:
        values = (conversation.head, conversation.data, conversation.created_s, self._max_age_s)
        await self._run(_PUT_CONVERSATION, conversation.scope, *values, key=f"c:{conversation.name}")

    async def delete_conversation(self, scope: str, name: str) -> bool:
        key = f"{self._scope_prefix(scope)}c:{name}"
        return bool(await self._connection.call(lambda redis: redis.delete(key)))

    async def acquire_lease(self, name: str, holder: str, seconds: float) -> bool:
        return bool(
            await self._connection.run_script(_LEASE, self._lease_key(name), holder, int(seconds * 1000))
        )

    async def release_lease(self, name: str, holder: str) -> None:
        await self._connection.run_script(_RELEASE, self._lease_key(name), holder)

    def _lease_key(self, name: str) -> str:
        return f"{self._prefix}l:{name}"

    def _scope_prefix(self, scope: str) -> str:
        return f"{self._prefix}{{{scope}}}:"

    async def _run(self, script: str, scope: str, *args: str | bytes | int, key: str = "") -> Any:
        prefix = self._scope_prefix(scope)
        return await self._connection.run_script(script, prefix + key, prefix, *args)


def _decode_turn(scope: str, turn_id: str, entry: bytes, answer: bytes = b"") -> ConversationTurn:
    parent, _, data = entry.partition(b"\n")
    return ConversationTurn(id=turn_id, scope=scope, parent=parent.decode(), data=data, answer=answer)
