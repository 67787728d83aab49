"""The way to Redis (or Valkey): one address or several sentinels; what fails is told as unavailable, quickly."""

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
_ANSWER_S = 1.0
_PAUSE_S = 0.5  # a server that is gone is not asked again by every request
_TRIES = 3  # of a connection that broke: another one may be good
_SLOW_TRIES = 2  # of one that did not answer in time
_BETWEEN_S = 0.02
_CONNECTIONS = 32


class RedisLink:
    """Opened by the first call, inside the event loop that uses it."""

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
        self._asleep_until = 0.0
        self._places = asyncio.Semaphore(_CONNECTIONS)  # the library refuses where it should wait
        self._closing = asyncio.Lock()

    async def call(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """What `work` makes of the client."""
        import redis.exceptions as trouble

        tries = 0
        while True:
            tries += 1
            try:
                async with self._places:
                    if self._now() < self._asleep_until:
                        raise StoreUnavailable("Redis cannot be reached")
                    if self._client is None:
                        self._client, *_ = self._opened = _open(self._url)
                    return await work(self._client)
            except trouble.ResponseError as error:  # it answers, and refuses: read only, out of memory
                raise StoreUnavailable(f"Redis refuses: {error}") from error
            except (trouble.RedisError, OSError, TimeoutError) as error:
                slow = isinstance(error, (trouble.TimeoutError, TimeoutError))
                if tries < (_SLOW_TRIES if slow else _TRIES):
                    await asyncio.sleep(tries * _BETWEEN_S)
                    continue
                self._asleep_until = self._now() + _PAUSE_S
                raise StoreUnavailable(f"Redis cannot be reached: {type(error).__name__}") from error

    async def run(self, script: str, key: str, *args: str | bytes | float) -> Any:
        """One Lua script, all or nothing; `key` tells where it lies."""

        async def work(client: Any) -> Any:
            registered = self._scripts.get(script)
            if registered is None:
                registered = self._scripts[script] = client.register_script(script)
            return await registered(keys=[key], args=args)

        return await self.call(work)

    async def close(self) -> None:
        """Once all calls are over: a connection that is in use would be left open. The next call opens it again."""
        async with self._closing, AsyncExitStack() as held:
            for _ in range(_CONNECTIONS):
                await held.enter_async_context(self._places)
            for client in self._opened:
                await client.aclose()
            self._client, self._opened, self._scripts = None, [], {}


def check_url(url: str) -> None:
    """A mistake in the address is told at start, without the password in it."""
    place = urlsplit(url)
    kind = place.scheme.removesuffix(_SENTINEL)
    if kind not in ("redis", "rediss", "unix") or not (place.netloc or place.path):
        raise ConfigError(
            "the address of Redis begins with redis://, rediss://, unix:// or redis+sentinel://",
            where="store.url",
        )
    if place.scheme.endswith(_SENTINEL):
        _sentinels(url)


def _open(url: str) -> list[Any]:
    """The client, and whoever else must be closed."""
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    options: dict[str, Any] = {
        "socket_timeout": _ANSWER_S,
        "socket_connect_timeout": _CONNECT_S,
        "retry": Retry(
            NoBackoff(), 0
        ),  # it tries again inside of what it tries again: a hang would be seven seconds
    }
    if not urlsplit(url).scheme.endswith(_SENTINEL):
        return [Redis.from_url(url, **options)]
    from redis.asyncio import sentinel

    hosts, service, login = _sentinels(url)
    watchers: Any = sentinel.Sentinel  # the library has no types here
    known = watchers(hosts, sentinel_kwargs={"socket_timeout": _CONNECT_S}, **options, **login)
    return [known.master_for(service), *known.sentinels]


def _sentinels(url: str) -> tuple[list[tuple[str, int]], str, dict[str, Any]]:
    """`redis+sentinel://user:password@one:26379,two:26379/service/0`."""
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
        return [_host(host) for host in hosts.split(",")], service, login
    except ValueError:
        raise ConfigError("the port of a sentinel is no number", where="store.url") from None


def _host(text: str) -> tuple[str, int]:
    name, _, port = text.rpartition(":") if ":" in text else (text, "", "")
    return name.strip("[]"), int(port or _SENTINEL_PORT)
