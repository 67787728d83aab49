"""A model call that the gateway makes for one of its tools: not streamed, retried like a client's request."""

from __future__ import annotations

import asyncio

from dragoman.dialects import gemini
from dragoman.errors import DragomanError
from dragoman.ir import Collector, Request, Response
from dragoman.server.auth import Caller
from dragoman.server.gateway import Gateway
from dragoman.server.way import Way
from dragoman.tokens import new_token


async def ask_google(gateway: Gateway, caller: Caller, request: Request) -> Response:
    """Send a request to Google and return the response; raise the last error when no attempt is left."""
    way = Way(gateway, caller, request)
    while True:
        try:
            response = await _attempt(gateway, way, request)
        except DragomanError as error:
            await way.learn(error)
            wait_s = way.next(error)
            if wait_s is None:
                raise
            await asyncio.sleep(wait_s)
        else:
            await way.learn(None)
            return response


async def _attempt(gateway: Gateway, way: Way, request: Request) -> Response:
    encoded = gemini.encode_request(request, way.target, lambda: f"call_{new_token()}")
    reader, collector = encoded.reader(), Collector()
    url = gateway.host.url(way.target.model, "generateContent")
    headers = await way.headers()
    client = gateway.client
    async with client.post(url, headers, encoded.body, stream=False, within_s=way.left_s) as answer:
        if answer.status != 200:
            raise gemini.decode_error(answer.status, answer.headers, await answer.read())
        for event in reader.feed(await answer.read()):
            collector.feed(event)
    for event in reader.close():
        collector.feed(event)
    return collector.close()
