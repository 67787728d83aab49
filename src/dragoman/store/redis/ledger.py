"""The ledger in Redis; one Lua script writes all entries and tallies of a call atomically.

l:order          sorted set  `<time>:<id>` with equal scores, so that it is sorted and paged by text
l:data           hash        entry id -> time, session and data
ls:<session>     sorted set  like l:order, for one session
t:<day>:<kind>   hash        `<labels> <name>` -> sum; `#<labels>` marks known labels, `#` counts them
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from dragoman.store.base import (
    LEDGER_DAYS,
    LEDGER_ENTRY_MAX_AGE_S,
    MAX_LEDGER_ENTRIES,
    MAX_LEDGER_LABELS,
    LedgerEntry,
    Tally,
    other_labels,
)
from dragoman.store.redis.connection import RedisConnection

_ADD = """
local p, most, oldest, ttl, labels_most = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[5])
local order, data = p .. 'l:order', p .. 'l:data'
local at = 7
for _ = 1, tonumber(ARGV[6]) do
  local id, member, session = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if redis.call('HSETNX', data, id, ARGV[at + 3]) == 1 then
    redis.call('ZADD', order, 0, member)
    if session ~= '' then
      redis.call('ZADD', p .. 'ls:' .. session, 0, member)
      redis.call('EXPIRE', p .. 'ls:' .. session, ttl)
    end
  end
  at = at + 4
end
local gone = redis.call('ZRANGEBYLEX', order, '-', '(' .. oldest)
local excess = redis.call('ZCARD', order) - #gone - most
if excess > 0 then gone = redis.call('ZRANGE', order, 0, #gone + excess - 1) end
for _, member in ipairs(gone) do
  local id = string.sub(member, string.find(member, ':', 1, true) + 1)
  local packed = redis.call('HGET', data, id)
  if packed then
    local from, to = string.find(packed, '^%d+ %d+ ')
    local length = tonumber(string.match(packed, '^%d+ (%d+) '))
    if length > 0 then redis.call('ZREM', p .. 'ls:' .. string.sub(packed, to + 1, to + length), member) end
    redis.call('HDEL', data, id)
  end
  redis.call('ZREM', order, member)
end
redis.call('EXPIRE', order, ttl)
redis.call('EXPIRE', data, ttl)
while at <= #ARGV do
  local key, labels, ends, count = p .. 't:' .. ARGV[at], ARGV[at + 1], ARGV[at + 3], tonumber(ARGV[at + 4])
  local known = redis.call('HEXISTS', key, '#' .. labels) == 1
  if not known and tonumber(redis.call('HGET', key, '#') or '0') >= labels_most then
    labels = ARGV[at + 2]
    known = redis.call('HEXISTS', key, '#' .. labels) == 1
  end
  if not known then
    redis.call('HSET', key, '#' .. labels, '1')
    redis.call('HINCRBY', key, '#', 1)
  end
  at = at + 5
  for _ = 1, count do
    redis.call('HINCRBY', key, labels .. ' ' .. ARGV[at], ARGV[at + 1])
    at = at + 2
  end
  redis.call('EXPIREAT', key, ends)
end
return 1
"""
_ENTRIES = """
local found = redis.call('ZREVRANGEBYLEX', ARGV[1] .. ARGV[2], ARGV[3], '-', 'LIMIT', 0, ARGV[4])
local lines = {}
for _, member in ipairs(found) do
  local id = string.sub(member, string.find(member, ':', 1, true) + 1)
  local packed = redis.call('HGET', ARGV[1] .. 'l:data', id)
  if packed then
    lines[#lines + 1] = id
    lines[#lines + 1] = packed
  end
end
return lines
"""
_DAYS_PER_QUERY = 50
_decode_labels = msgspec.json.Decoder(tuple[str, ...]).decode


class RedisLedger:
    def __init__(
        self, connection: RedisConnection, prefix: str, now: Callable[[], float] = time.time
    ) -> None:
        self._connection = connection
        self._prefix = prefix
        self._now = now

    async def add(self, entries: Sequence[LedgerEntry], tallies: Sequence[Tally]) -> None:
        oldest = _sort_key(int((self._now() - LEDGER_ENTRY_MAX_AGE_S) * 1000), "")
        values: list[str | bytes | int] = [
            MAX_LEDGER_ENTRIES,
            oldest,
            LEDGER_ENTRY_MAX_AGE_S,
            MAX_LEDGER_LABELS,
            len(entries),
        ]
        for entry in entries:
            values += (entry.id, _sort_key(entry.at_ms, entry.id), entry.session, _pack(entry))
        for tally in tallies:
            names = (msgspec.json.encode(labels) for labels in (tally.labels, other_labels(tally.labels)))
            values += (f"{tally.day}:{tally.kind}", *names, _expires_at_s(tally.day), len(tally.sums))
            values += (value for pair in tally.sums.items() for value in pair)
        await self._connection.run_script(_ADD, f"{self._prefix}l:order", self._prefix, *values)

    async def entries(
        self, *, limit: int, before: tuple[int, str] | None = None, session: str = ""
    ) -> list[LedgerEntry]:
        which = f"ls:{session}" if session else "l:order"
        start = "+" if before is None else f"({_sort_key(*before)}"
        found: list[bytes] = await self._connection.run_script(
            _ENTRIES, self._prefix + which, self._prefix, which, start, limit
        )
        return [
            _unpack(entry_id.decode(), packed)
            for entry_id, packed in zip(found[::2], found[1::2], strict=True)
        ]

    async def entry(self, entry_id: str) -> LedgerEntry | None:
        packed = await self._connection.call(lambda redis: redis.hget(f"{self._prefix}l:data", entry_id))
        return None if packed is None else _unpack(entry_id, packed)

    async def tallies(self, kind: str, first_day: str, last_day: str) -> list[Tally]:
        days = list(_days_between(first_day, last_day))
        found: list[Tally] = []
        for start in range(0, len(days), _DAYS_PER_QUERY):
            group = days[start : start + _DAYS_PER_QUERY]
            hashes = await self._connection.call(partial(self._read, kind=kind, days=group))
            for day, fields in zip(group, hashes, strict=True):
                found += _decode_tallies(day, kind, fields)
        return found

    async def _read(self, redis: Any, kind: str, days: list[str]) -> list[dict[bytes, bytes]]:
        pipeline = redis.pipeline(transaction=False)
        for day in days:
            pipeline.hgetall(f"{self._prefix}t:{day}:{kind}")
        found: list[dict[bytes, bytes]] = await pipeline.execute()
        return found


def _sort_key(at_ms: int, entry_id: str) -> str:
    """Return text that sorts by time, then by id."""
    return f"{max(0, at_ms):015d}:{entry_id}"


def _pack(entry: LedgerEntry) -> bytes:
    session = entry.session.encode()
    return b"%d %d %b%b" % (entry.at_ms, len(session), session, entry.data)


def _unpack(entry_id: str, packed: bytes) -> LedgerEntry:
    at_ms, length, rest = packed.split(b" ", 2)
    session, data = rest[: int(length)], rest[int(length) :]
    return LedgerEntry(id=entry_id, at_ms=int(at_ms), session=session.decode(), data=data)


def _expires_at_s(day: str) -> int:
    """Return when the tallies of a day expire, in seconds since the epoch."""
    start = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)
    return int((start + timedelta(days=LEDGER_DAYS + 1)).timestamp())


def _days_between(first: str, last: str) -> Iterator[str]:
    day, end = date.fromisoformat(first), date.fromisoformat(last)
    while day <= end:
        yield day.isoformat()
        day += timedelta(days=1)


def _decode_tallies(day: str, kind: str, fields: dict[bytes, bytes]) -> list[Tally]:
    sums: dict[bytes, dict[str, int]] = {}
    for field, amount in fields.items():
        if not field.startswith(b"#"):
            labels, _, name = field.rpartition(b" ")
            sums.setdefault(labels, {})[name.decode()] = int(amount)
    found = [
        Tally(day=day, kind=kind, labels=_decode_labels(labels), sums=added) for labels, added in sums.items()
    ]
    return sorted(found, key=lambda tally: tally.labels)
