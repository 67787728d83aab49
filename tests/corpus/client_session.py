"""A client and our library in between, and the directions that every dialect's cases have."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

from dragoman.dialects.base import ClientDialect, Target
from dragoman.ir import unseal
from dragoman.store import MemoryStore
from dragoman.translation.exchange import Exchange

Json = dict[str, Any]


class Session:
    """As a server would drive it; `store` outlives a restart."""

    def __init__(self, dialect: ClientDialect) -> None:
        self._dialect = dialect
        self._tokens = (f"{number:016d}" for number in itertools.count(1))
        self._store = MemoryStore()

    def start(self, request: Json, model: str) -> tuple[Exchange, Json]:
        exchange = Exchange(self._dialect, new_id=lambda: next(self._tokens))
        exchange.decode(json.dumps(request).encode())
        found = asyncio.run(self._store.get_values(exchange.missing_keys))
        recalled = {key: sealed for key, word in found.items() if (sealed := unseal(word)) is not None}
        return exchange, json.loads(exchange.encode(Target(model=model), recalled))

    def end(self, exchange: Exchange, data: bytes) -> bytes:
        out = exchange.open() + exchange.receive(data) + exchange.finish()
        asyncio.run(self._store.set_values(exchange.store_entries))
        return out


def run_request(dialect: ClientDialect, given: Json) -> Any:
    return Session(dialect).start(given["request"], given["model"])[1]


def run_response(dialect: ClientDialect, given: Json) -> Any:
    session = Session(dialect)
    exchange, _ = session.start({**given["request"], "stream": False}, given["model"])
    return json.loads(session.end(exchange, json.dumps(given["response"]).encode()))


def run_stream(dialect: ClientDialect, given: Json) -> bytes:
    session = Session(dialect)
    exchange, _ = session.start({**given["request"], "stream": True}, given["model"])
    return session.end(exchange, sse(given["chunks"]))


def sse(chunks: list[Any]) -> bytes:
    return b"".join(b"data: %b\r\n\r\n" % json.dumps(chunk).encode() for chunk in chunks)
