"""The emulator inside the gateway: what it is asked is bounded before it sees it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from dragoman.config import ServerConfig
from dragoman.server.emulated import EmulatorMount
from tests.unit.server.test_bodies import Sender


class Asked:
    """An emulator that remembers, behind a mount with small limits."""

    def __init__(self, **settings: Any) -> None:
        limits = {"max_body_bytes": 100, "max_inflight_bytes": 160, **settings}
        self.mount = EmulatorMount(self._answer, ServerConfig(**limits))
        self.paths: list[str] = []
        self.bodies: list[bytes] = []
        self.said: list[dict[str, Any]] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def ask(self, sender: Sender, **headers: str) -> None:
        raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        scope = {"type": "http", "path": "/_emulator/v1beta/models", "headers": raw}
        await self.mount(scope, sender.receive, self._send)

    def refusal(self) -> tuple[int, str]:
        status, body = self.said
        return status["status"], json.loads(body["body"])["error"]["message"]

    async def _answer(self, scope: Any, receive: Any, _send: Any) -> None:
        self.paths.append(scope["path"])
        message = await receive()
        assert not message["more_body"]
        self.bodies.append(message["body"])
        await self.go_on.wait()
        while (await receive())["type"] != "http.disconnect":
            pass

    async def _send(self, message: Any) -> None:
        self.said.append(message)


async def test_it_gets_the_whole_body_and_hears_that_its_client_has_left() -> None:
    asked = Asked()
    await asked.ask(Sender(b"one", b"two", leaves=True))
    assert (asked.paths, asked.bodies) == (["/v1beta/models"], [b"onetwo"])


async def test_a_body_that_is_too_long_is_refused_in_googles_words() -> None:
    for headers in ({}, {"content_length": "101"}):
        asked = Asked()
        await asked.ask(Sender(b"x" * 60, b"y" * 60, b"z", leaves=True), **headers)
        assert asked.refusal() == (413, "the request body is larger than 100 bytes")
        assert asked.bodies == []


async def test_a_body_that_stops_coming_is_given_up() -> None:
    asked = Asked(body_idle_s=0.01)
    asking = asyncio.ensure_future(asked.ask(Sender(b"x", whole=False)))
    while len(asked.said) < 2:
        await asyncio.sleep(0.01)
    assert asked.refusal()[0] == 504
    asking.cancel()
    await asyncio.wait({asking})


async def test_all_bodies_together_are_bounded_too() -> None:
    asked = Asked()
    asked.go_on.clear()
    first = asyncio.ensure_future(asked.ask(Sender(b"x" * 100, leaves=True)))
    while not asked.bodies:
        await asyncio.sleep(0)
    await asked.ask(Sender(b"x" * 100))
    assert asked.refusal()[0] == 503
    asked.go_on.set()
    await first
    await asked.ask(Sender(b"y" * 100, leaves=True))
    assert len(asked.bodies) == 2


async def test_a_client_that_leaves_in_the_middle_asks_nothing() -> None:
    asked = Asked()
    await asked.ask(Sender(b"x", whole=False, leaves=True))
    assert (asked.bodies, asked.said) == ([], [])
