"""Request smuggling: wherever a proxy in front sees the end of a request, the gateway's server must see it too.

The proxies add a header of their own to every request that they forward. A request that arrives without it was
smuggled: the proxy has taken it for a part of another one.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from tests.attacks.ambiguous_requests import CASES, Case, first_target, smuggled_target
from tests.attacks.raw_connection import exchange
from tests.faults.harness import serving
from tests.load_balancers import balancer

_AT_ONCE = 40
_MARK = "x-forwarded-by-the-proxy"
#: Lines of the shipped files -> lines that mark every request, and share connections among all clients.
_MARKING = {
    "nginx": {
        'proxy_set_header Connection "";': f'proxy_set_header Connection ""; proxy_set_header {_MARK} $request_id;'
    },
    "haproxy": {
        "  balance leastconn": f"  balance leastconn\n  http-reuse always\n  http-request set-header {_MARK} %[uuid()]"
    },
}


class Request(msgspec.Struct):
    """One request as it reached the application; `whole` unless its body broke off."""

    target: str
    body: bytes
    whole: bool
    mark: str


class Recorder:
    """An ASGI application that answers with the request's own path."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, whole, more = b"", True, True
        while more:
            message = await receive()
            whole = message["type"] == "http.request"
            body += message.get("body", b"")
            more = whole and message.get("more_body", False)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self.requests.append(Request(scope["path"], body, whole, headers.get(_MARK, "")))
        answer = scope["path"].encode()
        fields = [(b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": fields})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer})

    def of(self, number: int) -> list[Request]:
        targets = (first_target(number), smuggled_target(number))
        return [request for request in self.requests if request.target in targets]


async def _send_all(port: int, slices: int) -> None:
    places = asyncio.Semaphore(_AT_ONCE)

    async def send(number: int, case: Case) -> None:
        async with places:
            await exchange(port, _pieces(case.numbered(number).data, slices))

    async with asyncio.TaskGroup() as group:
        for number, case in enumerate(CASES.values()):
            group.create_task(send(number, case))


def _pieces(data: bytes, size: int) -> Iterable[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def _split(recorder: Recorder) -> list[str]:
    """Cases whose second request arrived although it is none."""
    cases = enumerate(CASES.items())
    return [
        name
        for number, (name, case) in cases
        if any(one.target == smuggled_target(number) for one in recorder.of(number)) != case.pipelined
    ]


def _lost(recorder: Recorder) -> list[str]:
    """Valid cases whose body is not the one that was sent."""
    cases = [(number, name, case.numbered(number)) for number, (name, case) in enumerate(CASES.items())]
    return [
        name
        for number, name, case in cases
        if case.body is not None
        and not any(one.whole and one.body == case.body for one in recorder.of(number))
    ]


@pytest.mark.parametrize("slices", [1_000_000, 1], ids=["whole", "byte by byte"])
async def test_the_server_sees_one_request(slices: int) -> None:
    recorder = Recorder()
    async with serving(recorder) as url:
        await _send_all(int(url.rpartition(":")[2]), slices)
    assert _split(recorder) == []
    assert _lost(recorder) == []


@asynccontextmanager
async def _others(url: str) -> AsyncIterator[None]:
    """Other clients of the same proxy, whose requests share its connections: each must get its own answer."""
    async with aiohttp.ClientSession() as session:

        async def ask_forever(client: int) -> None:
            for number in itertools.count():
                path = f"/other/{client}/{number}"
                async with session.get(url + path) as response:
                    assert (response.status, await response.text()) == (200, path)

        asking = [asyncio.ensure_future(ask_forever(client)) for client in range(2)]
        await asyncio.sleep(0.2)
        yield
        for task in asking:
            task.cancel()
        results = await asyncio.gather(*asking, return_exceptions=True)
        assert [one for one in results if not isinstance(one, asyncio.CancelledError)] == []


@asynccontextmanager
async def _proxied(name: str, url: str, folder: Path) -> AsyncIterator[str]:
    """Started in a thread: it waits for an answer of the application, which runs in this loop."""
    proxy = balancer(name, [url, url], folder, also=_MARKING[name])
    address = await asyncio.to_thread(proxy.__enter__)
    try:
        yield address
    finally:
        await asyncio.to_thread(proxy.__exit__, None, None, None)


@pytest.mark.parametrize("name", ["nginx", "haproxy"])
async def test_the_server_sees_what_the_proxy_sees(name: str, tmp_path: Path) -> None:
    recorder = Recorder()
    async with serving(recorder) as url, _proxied(name, url, tmp_path) as proxy, _others(proxy):
        recorder.requests.clear()  # health checks carry no mark
        await _send_all(int(proxy.rpartition(":")[2]), 1_000_000)
    unmarked = [one for one in recorder.requests if not one.mark and one.target != "/readyz"]
    assert unmarked == []
    assert _lost(recorder) == []
    print(f"{name} itself reads two requests in: {_split(recorder)}")
