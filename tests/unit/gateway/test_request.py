"""What handlers get to see of a request's head, and that each request on a connection is authenticated by itself."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from dragoman.dialects.base import Reply
from dragoman.gateway import routes
from dragoman.gateway.auth.authenticator import scope_of
from dragoman.gateway.request import RequestContext
from dragoman.gateway.response_writer import JSON_HEADERS, ResponseWriter
from dragoman.gateway.routes import Route
from tests.faults.harness import FakeGoogle, gateway
from tests.unit.gateway.auth.botocore_requests import NOW_S, SECRET, signed

KEY, OTHER = SECRET, "dgm-another-key-of-sufficient-length"
JSON = {"content-type": "application/json"}


class OneConnection:
    """A client that sends all its requests on the same connection."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session

    async def post(self, body: bytes, headers: dict[str, str], path: str = "/v1/messages") -> tuple[int, Any]:
        headers = {"host": "127.0.0.1", **headers}
        async with self._session.post(
            self._url + path, data=body, headers=headers, skip_auto_headers=("user-agent", "accept")
        ) as response:
            return response.status, json.loads(await response.read())


@asynccontextmanager
async def connected(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OneConnection]:
    """A gateway whose handler answers with what it was given."""

    async def echo(call: RequestContext, outlet: ResponseWriter) -> None:
        given = {"headers": dict(call.headers), "query": dict(call.query), "caller": call.caller.scope}
        await outlet.reply(Reply(200, json.dumps(given).encode(), JSON_HEADERS))

    monkeypatch.setitem(routes._EXACT_ROUTES, ("POST", "/v1/messages"), Route(echo, "anthropic"))
    async with (
        gateway(FakeGoogle(), keys=(KEY, OTHER)) as running,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session,
    ):
        yield OneConnection(running.url, session)


async def test_q_handlers_get_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {"x-api-key": KEY, "x-goog-api-key": "AIzaSy", "x-amz-security-token": "t"}
    secrets["authorization"] = f"Bearer {KEY}"
    async with connected(monkeypatch) as client:
        _, given = await client.post(
            b"{}", {**JSON, **secrets, "x-kept": "1"}, f"/v1/messages?key={KEY}&beta=true"
        )
    ours = {name: value for name, value in given["headers"].items() if name != "accept-encoding"}
    assert ours == {"host": "127.0.0.1", "content-type": "application/json", "x-kept": "1"}
    assert given["query"] == {"beta": "true"}


async def test_q_another_key_on_the_same_connection_is_another_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with connected(monkeypatch) as client:
        callers = []
        for key in (KEY, OTHER, KEY, "dgm-a-key-that-nobody-knows-at-all", KEY):
            status, given = await client.post(b"{}", {**JSON, "authorization": f"Bearer {key}"})
            callers.append(given["caller"] if status == 200 else status)
    mine, other = scope_of(KEY), scope_of(OTHER)
    assert callers == [mine, other, mine, 401, mine]


async def test_q_a_signature_is_verified_for_each_request_and_expires(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [NOW_S]
    monkeypatch.setattr("dragoman.gateway.app.time.time", lambda: now[0])
    head = signed(url="http://127.0.0.1/v1/messages", headers=tuple(JSON.items()), body=b"{}")
    headers = _as_text(head.headers)
    async with connected(monkeypatch) as client:
        assert (await client.post(b"{}", headers))[0] == 200
        assert (await client.post(b"[]", headers))[0] == 401  # not the body that was signed
        now[0] += 3600
        assert (await client.post(b"{}", headers))[0] == 401


def _as_text(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in headers if name != b"content-length"}
