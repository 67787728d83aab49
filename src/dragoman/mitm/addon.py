"""The mitmproxy addon: passes Gemini requests and responses through the interceptor, everything else unchanged."""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import urlsplit

import msgspec

from dragoman.dialects.base import Reply
from dragoman.dialects.gemini.client import GeminiClient
from dragoman.errors import DragomanError, UpstreamError
from dragoman.mitm.intercept import Interceptor, PreparedRequest
from dragoman.mitm.traffic import (
    Json,
    decode_request,
    decode_response,
    encode_response,
    is_gemini,
    prepend_text,
    response_text,
    target_of,
)
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
