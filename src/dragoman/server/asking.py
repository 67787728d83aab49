"""A question of the gateway's own to Google: whole, tried again like a client's, counted with it."""

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
    """The answer; an error that no other attempt helps against is raised."""
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
