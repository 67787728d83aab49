"""The handlers of routes without a model: health checks, metrics, and the telemetry of clients."""

from __future__ import annotations

import msgspec

from dragoman.dialects.base import Reply
from dragoman.gateway.request import RequestContext
from dragoman.gateway.response_writer import JSON_HEADERS, ResponseWriter
from dragoman.observe.metrics import render

_METRICS_HEADERS = (("content-type", "text/plain; version=0.0.4; charset=utf-8"),)


async def health(request: RequestContext, response: ResponseWriter) -> None:
    """Report the service name and the backend, without any call to the upstream or the store (known problem O8)."""
    body = {"service": "dragoman", "status": "ok", "backend": request.gateway.config.backend}
    await response.reply(Reply(200, msgspec.json.encode(body), JSON_HEADERS))


async def ready(request: RequestContext, response: ResponseWriter) -> None:
    """Like `health`, but fail while the gateway drains, so that a load balancer stops sending requests."""
    request.gateway.refuse_while_draining()
    await health(request, response)


async def metrics(request: RequestContext, response: ResponseWriter) -> None:
    """Return metrics for Prometheus, which sends a gateway key with the admin role as its bearer token."""
    await response.reply(Reply(200, render(request.gateway.observer_hub.metrics()), _METRICS_HEADERS))


async def empty_object(request: RequestContext, response: ResponseWriter) -> None:
    """Answer connectivity checks and telemetry of clients with an empty object; nothing is forwarded."""
    await response.reply(Reply(200, b"{}", JSON_HEADERS))
