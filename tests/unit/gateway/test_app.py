"""What the application holds while a request runs."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

from dragoman.config import Config
from dragoman.gateway.app import GatewayApp
from dragoman.gateway.context import Gateway
from dragoman.gateway.request import RequestContext
from dragoman.store import MemoryStore


class Scope(dict[str, Any]):
    """One that can be watched."""


async def test_a_refused_request_whose_body_still_comes_holds_nothing_of_its_head() -> None:
    gateway = Gateway(Config(), MemoryStore(), keys=("dgm-test-key-of-sufficient-length",))
    app, waits, answers = GatewayApp(gateway), asyncio.Event(), list[Any]()

    async def receive() -> Any:
        waits.set()
        await asyncio.sleep(3600)

    async def send(message: Any) -> None:
        answers.append(message)

    def begin() -> tuple[asyncio.Task[None], weakref.ref[Scope]]:
        scope = Scope(
            type="http", http_version="1.1", method="POST", path="/v1/messages", query_string=b"a=b"
        )
        scope |= {
            "headers": [(b"host", b"localhost")],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
        }
        return asyncio.ensure_future(app(scope, receive, send)), weakref.ref(scope)

    task, scope = begin()
    await waits.wait()
    assert answers[0]["status"] == 400  # it does not say what its body is
    assert scope() is None
    assert not [one for one in gc.get_objects() if type(one) is RequestContext and one.query == {"a": "b"}]
    task.cancel()
    await asyncio.wait({task})
    await gateway.close()
