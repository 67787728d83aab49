"""Record a script: forward requests to the real service, and write each exchange as a step."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import aiohttp
import truststore
from aiohttp import web
from yarl import URL

from dragoman.emulator.director import DIRECTED_METHODS, ApiRequest
from dragoman.emulator.errors import ApiError
from dragoman.emulator.http_messages import base_url_of
from dragoman.emulator.routes import find_route
from dragoman.emulator.script.recording import (
    RecordedResponse,
    make_step,
    mask_secrets,
    parse_api_request,
    write_step,
)
from dragoman.errors import ConfigError

_KEY_HEADER = "x-goog-api-key"
#: Hop-by-hop headers (RFC 9110 section 7.6.1), and headers that this proxy sets itself.
_NOT_FORWARDED = frozenset(
    "host connection keep-alive proxy-connection proxy-authorization te trailer transfer-encoding upgrade "
    "content-length accept-encoding expect".split()
)
_NOT_RETURNED = _NOT_FORWARDED | {"content-encoding", "date", "server"}
_MAX_BODY_BYTES = 128 * 1024 * 1024
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=600)


class Recorder:
    """A proxy in front of `upstream`.

    It creates the file with the first exchange, and the file always contains complete steps.
    """

    def __init__(
        self,
        upstream: str,
        file: Path,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        timing: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._upstream = _check_upstream(upstream)
        if file.exists():
            raise ConfigError("this file exists already; a recording begins a new one", where=str(file))
        self._file = file
        self._host = host
        self._port = port
        self._timing = timing
        self._clock = clock
        self._runner: web.AppRunner | None = None
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> str:
        """Start to listen and return the base URL. Raise OSError if the port is not available."""
        context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context), timeout=_TIMEOUT, trust_env=True
        )
        app = web.Application(client_max_size=_MAX_BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._relay)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=False)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port)
        await site.start()
        bound = self._runner.addresses[0][1]
        return base_url_of(self._host, bound)

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        if self._session is not None:
            await self._session.close()

    async def _relay(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        url, headers, secrets = self._upstream_request(request)
        started = self._clock()
        try:
            session = self._session
            assert session is not None  # noqa: S101 (a request comes after the start)
            upstream_response = await session.request(
                request.method, url, data=body or None, headers=headers, allow_redirects=False
            )
        except (aiohttp.ClientError, TimeoutError) as error:
            why = str(error) or type(error).__name__
            reason = f"the emulator cannot reach {self._upstream.host}: {why}"
            refusal = ApiError(reason, code=503)  # the proxy's own error is not recorded
            return web.json_response(refusal.body(), status=refusal.code)
        async with upstream_response:
            response, recorded = await self._return_response(request, upstream_response, started)
        route = find_route(request.method, unquote(request.rel_url.raw_path))
        if route is not None and route.method in DIRECTED_METHODS:
            self._append_step(parse_api_request(route, body, request.headers), recorded, secrets)
        return response

    def _upstream_request(self, request: web.Request) -> tuple[URL, dict[str, str], list[str]]:
        """Return the upstream URL, the headers and the secrets of a request.

        A key in the query moves to its header.
        """
        headers = {
            name.lower(): value
            for name, value in request.headers.items()
            if name.lower() not in _NOT_FORWARDED
        }
        query = request.rel_url.query.copy()
        key = query.pop("key", "")
        if key:
            headers.setdefault(_KEY_HEADER, key)
        headers["accept-encoding"] = "identity"  # record the body uncompressed
        path = self._upstream.raw_path.rstrip("/") + request.rel_url.raw_path
        url = self._upstream.with_path(path, encoded=True).with_query(query)
        token = headers.get("authorization", "").rpartition(" ")[2]
        return url, headers, [secret for secret in (key, headers.get(_KEY_HEADER, ""), token) if secret]

    async def _return_response(
        self, request: web.Request, upstream_response: aiohttp.ClientResponse, started: float
    ) -> tuple[web.StreamResponse, RecordedResponse]:
        kept = [
            (name, value)
            for name, value in upstream_response.headers.items()
            if name.lower() not in _NOT_RETURNED
        ]
        response = web.StreamResponse(status=upstream_response.status)
        response.headers.extend(kept)
        # aiohttp decompresses the body, so the length of a compressed response does not apply.
        length = None if "content-encoding" in upstream_response.headers else upstream_response.content_length
        if length is not None:
            response.content_length = length
        pieces: list[tuple[float, bytes]] = []
        cut = False
        piece, last = b"", started
        # If the client disconnects, the recording continues to the end of the response.
        listening = True
        try:
            await response.prepare(request)
        except ConnectionError:
            listening = False
        try:
            async for data, ends in upstream_response.content.iter_chunks():
                listening = listening and await _write(response, data)
                piece += data
                if ends or length is not None:
                    now = self._clock()
                    if piece:
                        pieces.append((now - last, piece))
                    piece, last = b"", now
        except (aiohttp.ClientError, TimeoutError):
            cut = True
        if piece:
            pieces.append((self._clock() - last, piece))
        if cut and request.transport is not None:
            request.transport.close()
        headers = {name.lower(): value for name, value in upstream_response.headers.items()}
        return response, RecordedResponse(
            status=upstream_response.status, headers=headers, pieces=pieces, streamed=length is None, cut=cut
        )

    def _append_step(self, api_request: ApiRequest, recorded: RecordedResponse, secrets: list[str]) -> None:
        step = write_step(
            make_step(api_request, mask_secrets(recorded, secrets), timing=self._timing), secrets
        )
        if not self._file.exists():
            step = (
                f"# Recorded from {self._upstream.host}.\notherwise: refuse\nvalidate: false\nsteps:\n{step}"
            )
        # One write per step, so that the file has complete steps even if the process is killed.
        with self._file.open("ab", buffering=0) as file:
            file.write(step.encode())


async def _write(response: web.StreamResponse, data: bytes) -> bool:
    """Write to the client; return whether it is still connected."""
    try:
        await response.write(data)
    except ConnectionError:
        return False
    return True


def _check_upstream(upstream: str) -> URL:
    try:
        url = URL(upstream)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigError("must be the http or https address of the service to record", where="--upstream")
    return url.with_query(None).with_fragment(None)
