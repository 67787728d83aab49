"""A model call that the gateway makes for one of its tools: not streamed, retried like a client's request."""

from __future__ import annotations

import asyncio

from dragoman.dialects import gemini
from dragoman.errors import DragomanError
from dragoman.ir import Collector, Request, Response
from dragoman.server.auth import Caller
from dragoman.server.gateway import Gateway
from dragoman.server.way import AttemptPlan
from dragoman.tokens import new_id


async def generate_internal(gateway: Gateway, caller: Caller, request: Request) -> Response:
    """Send a request to Google and return the response; raise the last error when no attempt is left."""
    way = AttemptPlan(gateway, caller, request)
    while True:
        try:
            response = await _generate_once(gateway, way, request)
        except DragomanError as error:
            await way.record_outcome(error)
            wait_s = way.plan_next(error)
            if wait_s is None:
                raise
            await asyncio.sleep(wait_s)
        else:
            await way.record_outcome(None)
            return response


async def _generate_once(gateway: Gateway, way: AttemptPlan, request: Request) -> Response:
    encoded = gemini.encode_request(request, way.target, lambda: f"call_{new_id()}")
    reader, collector = encoded.reader(), Collector()
    url = gateway.endpoint.url(way.target.model, "generateContent")
    headers = await way.headers()
    client = gateway.client
    async with client.post(url, headers, encoded.body, stream=False, within_s=way.remaining_s) as answer:
        if answer.status != 200:
            raise gemini.decode_error(answer.status, answer.headers, await answer.read())
        for event in reader.feed(await answer.read()):
            collector.feed(event)
    for event in reader.close():
        collector.feed(event)
    return collector.close()
