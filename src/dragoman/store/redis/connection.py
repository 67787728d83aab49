"""The connection to Redis (or Valkey), to one server or through sentinels.

Every failure becomes `StoreUnavailable`, and soon, because requests wait for it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from dragoman.errors import ConfigError
from dragoman.store.base import StoreUnavailable

T = TypeVar("T")

_SENTINEL = "+sentinel"
_SENTINEL_PORT = 26379
_CONNECT_S = 0.5
_RESPONSE_S = 1.0
_PAUSE_S = 0.5  # after a failure, refuse calls for this long instead of letting each one time out
_MAX_TRIES = 3  # attempts when a connection breaks: another one of the pool may work
_MAX_TRIES_AFTER_TIMEOUT = 2  # attempts when the server does not respond in time
_RETRY_DELAY_S = 0.02
_MAX_CONNECTIONS = 32


class RedisConnection:
    """A Redis client that connects on the first call, in the event loop that makes it."""

    def __init__(self, url: str, *, now: Callable[[], float] = time.monotonic) -> None:
        if find_spec("redis") is None:
            raise ConfigError(
                "state in Redis needs the extra\npip install 'dragoman[redis]'", where="store.url"
            )
        self._url = url
        self._now = now
        self._client: Any = None
        self._opened: list[Any] = []
        self._scripts: dict[str, Any] = {}
        self._paused_until = 0.0
        # redis-py raises when its pool is exhausted; wait instead
        self._slots = asyncio.Semaphore(_MAX_CONNECTIONS)
        self._closing = asyncio.Lock()

    async def call(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Return the result of `work(client)`; raise `StoreUnavailable` if Redis fails."""
        import redis.exceptions

        tries = 0
        while True:
            tries += 1
            try:
                async with self._slots:
                    if self._now() < self._paused_until:
                        raise StoreUnavailable("Redis cannot be reached")
                    if self._client is None:
                        self._client, *_ = self._opened = _open_clients(self._url)
                    return await work(self._client)
            except (
                redis.exceptions.ResponseError
            ) as error:  # the server responds, but is read-only or out of memory
                raise StoreUnavailable(f"Redis refuses: {error}") from error
            except (redis.exceptions.RedisError, OSError, TimeoutError) as error:
                slow = isinstance(error, (redis.exceptions.TimeoutError, TimeoutError))
                if tries < (_MAX_TRIES_AFTER_TIMEOUT if slow else _MAX_TRIES):
                    await asyncio.sleep(tries * _RETRY_DELAY_S)
                    continue
                self._paused_until = self._now() + _PAUSE_S
                raise StoreUnavailable(f"Redis cannot be reached: {type(error).__name__}") from error

    async def run_script(self, script: str, key: str, *args: str | bytes | float) -> Any:
        """Run a Lua script, which Redis executes atomically; `key` is the key that it works on."""

        async def work(client: Any) -> Any:
            registered = self._scripts.get(script)
            if registered is None:
                registered = self._scripts[script] = client.register_script(script)
            return await registered(keys=[key], args=args)

        return await self.call(work)

    async def close(self) -> None:
        """Close all clients once no call is running, as connections in use would stay open.

        The next call connects again.
        """
        async with self._closing, AsyncExitStack() as held:
            for _ in range(_MAX_CONNECTIONS):
                await held.enter_async_context(self._slots)
            for client in self._opened:
                await client.aclose()
            self._client, self._opened, self._scripts = None, [], {}


def check_url(url: str) -> None:
    """Raise `ConfigError` if the URL is invalid; the message does not contain its password."""
    place = urlsplit(url)
    kind = place.scheme.removesuffix(_SENTINEL)
    if kind not in ("redis", "rediss", "unix") or not (place.netloc or place.path):
        raise ConfigError(
            "the address of Redis begins with redis://, rediss://, unix:// or redis+sentinel://",
            where="store.url",
        )
    if place.scheme.endswith(_SENTINEL):
        _parse_sentinel_url(url)


def _open_clients(url: str) -> list[Any]:
    """Return the client, followed by the sentinel clients that must be closed with it."""
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    options: dict[str, Any] = {
        "socket_timeout": _RESPONSE_S,
        "socket_connect_timeout": _CONNECT_S,
        # redis-py retries connect and command separately: a hang would last seven seconds
        "retry": Retry(NoBackoff(), 0),
    }
    if not urlsplit(url).scheme.endswith(_SENTINEL):
        return [Redis.from_url(url, **options)]
    from redis.asyncio import sentinel

    hosts, service, login = _parse_sentinel_url(url)
    factory: Any = sentinel.Sentinel  # redis-py has no types here
    sentinels = factory(hosts, sentinel_kwargs={"socket_timeout": _CONNECT_S}, **options, **login)
    return [sentinels.master_for(service), *sentinels.sentinels]


def _parse_sentinel_url(url: str) -> tuple[list[tuple[str, int]], str, dict[str, Any]]:
    """Parse `redis+sentinel://user:password@one:26379,two:26379/service/0`."""
    place = urlsplit(url)
    account, _, hosts = place.netloc.rpartition("@")
    service, _, db = place.path.strip("/").partition("/")
    if not service or not hosts or not (db or "0").isdigit():
        why = "sentinels are named as redis+sentinel://host:port,host:port/service/0"
        raise ConfigError(why, where="store.url")
    user, _, password = account.partition(":")
    login: dict[str, Any] = {"db": int(db or "0"), "ssl": place.scheme.startswith("rediss")}
    if account:
        login |= {"username": unquote(user) or None, "password": unquote(password)}
    try:
        return [_parse_host(host) for host in hosts.split(",")], service, login
    except ValueError:
        raise ConfigError("the port of a sentinel is not a number", where="store.url") from None


def _parse_host(text: str) -> tuple[str, int]:
    name, _, port = text.rpartition(":") if ":" in text else (text, "", "")
    return name.strip("[]"), int(port or _SENTINEL_PORT)
