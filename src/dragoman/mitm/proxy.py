"""The mitmproxy addon, and mitmproxy itself in this process.

The addon passes Gemini requests and responses through the interceptor, everything else unchanged. mitmproxy listens on
loopback, only for Google's Gemini hosts, with its own certificate authority. It is an optional dependency, so it is
imported inside functions.

The last part recognises Gemini requests, and decodes and encodes responses: a JSON object, a JSON array or SSE.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from dragoman.dialects.base import Reply, Target
from dragoman.dialects.gemini.client import GeminiClient
from dragoman.dialects.gemini.stream_framing import FrameDecoder
from dragoman.errors import ConfigError, DragomanError, UpstreamError
from dragoman.http.sse import escape_line_separators
from dragoman.mitm.interceptor import Interceptor, PreparedRequest
from dragoman.store import StoreUnavailable
from dragoman.upstream.client import UpstreamClient

_METADATA_KEY = "dragoman"
_DROPPED_HEADERS = frozenset(
    {"host", "content-length", "connection", "accept-encoding", "transfer-encoding", "proxy-connection"}
)
_log = logging.getLogger("dragoman")


class GeminiAddon:
    """A mitmproxy addon; `upstream` is a base URL that replaces Google's hosts, if given."""

    def __init__(self, interceptor: Interceptor, client: UpstreamClient, *, upstream: str = "") -> None:
        self._interceptor = interceptor
        self._client = client
        self._upstream = urlsplit(upstream) if upstream else None

    async def request(self, flow: Any) -> None:
        """mitmproxy's `request` hook: modify a Gemini request before it is sent."""
        host: str = flow.request.pretty_host
        if not is_gemini(host):
            return
        target = target_of(host, flow.request.path)
        body = decode_request(flow.request.get_content(strict=False) or b"") if target else None
        if self._upstream is not None:
            self._redirect(flow)
        if target is None or body is None:
            return
        try:
            prepared = await self._interceptor.prepare(target, body)
        except StoreUnavailable as error:
            _log.warning("%s; the request goes on without the session's tools", error)
            return
        except DragomanError as error:
            _set_response(flow, GeminiClient().encode_error(error))
            return
        if prepared is not None:
            flow.metadata[_METADATA_KEY] = prepared
            flow.request.content = msgspec.json.encode(prepared.body)

    async def response(self, flow: Any) -> None:
        """mitmproxy's `response` hook: run or withhold the calls of injected tools."""
        prepared: PreparedRequest | None = flow.metadata.get(_METADATA_KEY)
        if prepared is None or flow.response.status_code != 200:
            return
        found = decode_response(flow.response.get_content(strict=False) or b"")
        if found is None:
            return
        chunks, framing = found
        try:
            flow.response.content = encode_response(await self._run_rounds(flow, prepared, chunks), framing)
        except StoreUnavailable as error:
            _set_response(flow, GeminiClient().encode_error(DragomanError(str(error), kind="overloaded")))
        except DragomanError as error:
            _set_response(flow, GeminiClient().encode_error(error))

    async def _run_rounds(self, flow: Any, prepared: PreparedRequest, chunks: list[Json]) -> list[Json]:
        said: list[str] = []
        while True:
            received = await self._interceptor.receive(prepared, chunks)
            if isinstance(received, list):
                return prepend_text(received, "\n\n".join(said))
            said += [words] if (words := response_text(chunks).strip()) else []
            prepared = received
            chunks = await self._send_round(flow, prepared)

    async def _send_round(self, flow: Any, prepared: PreparedRequest) -> list[Json]:
        """Send the next request of the same answer, with the program's own headers, and return its chunks."""
        headers = {
            name: value
            for name, value in flow.request.headers.items()
            if name.lower() not in _DROPPED_HEADERS
        }
        body = msgspec.json.encode(prepared.body)
        async with self._client.post(flow.request.url, headers, body, stream=True) as answer:
            raw = await answer.read()
            if answer.status != 200:
                error = UpstreamError("the next round was refused", kind="internal", status=answer.status)
                error.native = raw
                raise error
        found = decode_response(raw)
        if found is None:
            raise UpstreamError("Google's answer cannot be read", kind="overloaded")
        return found[0]

    def _redirect(self, flow: Any) -> None:
        assert self._upstream is not None  # noqa: S101 (checked by the caller)
        flow.request.scheme = self._upstream.scheme
        flow.request.host = self._upstream.hostname
        flow.request.port = self._upstream.port or (443 if self._upstream.scheme == "https" else 80)
        flow.request.path = self._upstream.path.rstrip("/") + flow.request.path


def _set_response(flow: Any, reply: Reply) -> None:
    from mitmproxy import http

    flow.response = http.Response.make(reply.status, reply.body, dict(reply.headers))


LOOPBACK = "127.0.0.1"
CERTIFICATE = "mitmproxy-ca-cert.pem"

OnReady = Callable[[str], None]


def check_installed() -> None:
    """Raise `ConfigError` if the optional mitmproxy package is missing."""
    if find_spec("mitmproxy") is None:
        raise ConfigError("the proxy needs mitmproxy\npip install 'dragoman[mitm]'")


async def run_proxy(addon: GeminiAddon, *, port: int, folder: Path, on_ready: OnReady) -> None:
    """Serve until SIGINT or SIGTERM.

    `folder` holds the certificate authority, which is created at the first start. `on_ready` is called with the
    proxy's URL.
    """
    from mitmproxy.options import Options
    from mitmproxy.tools.dump import DumpMaster

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    trusted = os.environ.get("SSL_CERT_FILE") or None  # the same variable as in OpenSSL
    options = Options(
        listen_host=LOOPBACK,
        listen_port=port,
        confdir=str(folder),
        allow_hosts=[rf"^{host}:\d+$" for host in HOSTS],
        upstream_cert=False,  # no connection to Google before the program sends a request
        ssl_verify_upstream_trusted_ca=trusted,
    )
    master = DumpMaster(options, with_termlog=False, with_dumper=False)
    options.update(connection_strategy="lazy", stream_large_bodies=None)
    master.addons.add(addon, _ReadyAddon(master, on_ready))
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, master.shutdown)
    await master.run()


class _ReadyAddon:
    """An addon that reports the proxy's URL once it listens."""

    def __init__(self, master: object, on_ready: OnReady) -> None:
        self._master = master
        self._on_ready = on_ready

    def running(self) -> None:
        from mitmproxy.addons.proxyserver import Proxyserver

        server = self._master.addons.get("proxyserver")  # type: ignore[attr-defined]
        if isinstance(server, Proxyserver) and server.listen_addrs():
            host, port, *_ = server.listen_addrs()[0]
            self._on_ready(f"http://{host}:{port}")


Json = dict[str, Any]
Framing = Literal["whole", "array", "sse"]

#: Google's Gemini hosts: AI Studio, and Vertex AI with and without a region. TLS to other hosts is not intercepted.
HOSTS = (
    r"generativelanguage\.googleapis\.com",
    r"([a-z0-9-]+-)?aiplatform\.googleapis\.com",
    r"aiplatform\.[a-z]{2,8}\.rep\.googleapis\.com",
)
_HOST = re.compile("|".join(f"(?:{host})" for host in HOSTS))
_GENERATE = re.compile(r"/models/(?P<model>[^/:]+):(?:streamG|g)enerateContent")


def is_gemini(host: str) -> bool:
    return _HOST.fullmatch(host.lower()) is not None


def target_of(host: str, path: str) -> Target | None:
    """Return the target of a `generateContent` or `streamGenerateContent` request, or None for any other path."""
    found = _GENERATE.search(urlsplit(path).path)
    if found is None:
        return None
    backend = "vertex" if "aiplatform" in host else "gemini"
    return Target(model=found["model"], backend=backend)


def decode_request(body: bytes) -> Json | None:
    """Decode a request body; return None if it is not a JSON object, which Google will reject."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def decode_response(body: bytes) -> tuple[list[Json], Framing] | None:
    """Return the chunks of a response and its framing, or None if it cannot be decoded."""
    first = body.lstrip()[:1]
    framing: Framing = {b"{": "whole", b"[": "array"}.get(first, "sse")  # type: ignore[assignment]
    decoder = FrameDecoder()
    try:
        frames = [*decoder.feed(body), *decoder.close()]
        chunks = [msgspec.json.decode(frame) for frame in frames]
    except (UpstreamError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return (chunks, framing) if chunks and all(isinstance(chunk, dict) for chunk in chunks) else None


def encode_response(chunks: list[Json], framing: Framing) -> bytes:
    """Encode chunks in the given framing; a "whole" response joins them into one object."""
    if framing == "whole":
        return msgspec.json.encode(chunks[0] if len(chunks) == 1 else join_chunks(chunks))
    if framing == "array":
        return msgspec.json.encode(chunks)
    return escape_line_separators(
        b"".join(b"data: %b\r\n\r\n" % msgspec.json.encode(chunk) for chunk in chunks)
    )


def response_text(chunks: list[Json]) -> str:
    """Return the text of a response without thoughts."""
    return "".join(part["text"] for part in _parts(chunks) if part.get("text") and not part.get("thought"))


def prepend_text(chunks: list[Json], words: str) -> list[Json]:
    """Return the response with the text of earlier rounds in front."""
    if not words:
        return chunks
    opening = {
        "candidates": [{"content": {"role": "model", "parts": [{"text": f"{words}\n\n"}]}, "index": 0}]
    }
    return [opening, *chunks]


def join_chunks(chunks: list[Json]) -> Json:
    """Join chunks into one response: the last chunk with the parts of all."""
    last = chunks[-1]
    candidates = last.get("candidates") or [{"content": {"role": "model"}}]
    content = {"role": "model", **(candidates[0].get("content") or {}), "parts": _parts(chunks)}
    return {**last, "candidates": [{**candidates[0], "content": content}, *candidates[1:]]}


def _parts(chunks: list[Json]) -> list[Json]:
    return [
        part
        for chunk in chunks
        for candidate in (chunk.get("candidates") or ())[:1]
        for part in (candidate.get("content") or {}).get("parts") or ()
    ]
