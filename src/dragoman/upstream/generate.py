"""One call of the Gemini API: post a request, and decode the answer or Google's error.

Every part of Dragoman that calls the API uses these functions: `gateway.relay.relay` (requests of clients, whose
answers it forwards through an `Exchange`), `gateway.gateway_tools.google_tools` (requests that the gateway makes
itself), `gateway.handlers.generate` (token counts) and `agent.model`. Retries, keys and fallbacks are not in here,
because only the gateway has them: see `gateway.relay.attempt_plan`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping

from dragoman.dialects import gemini
from dragoman.dialects.base import Encoded
from dragoman.ir import Event
from dragoman.upstream.client import UpstreamClient, UpstreamResponse


async def generate_events(
    client: UpstreamClient,
    url: str,
    headers: Mapping[str, str],
    encoded: Encoded,
    *,
    stream: bool,
    within_s: float | None = None,
) -> AsyncGenerator[Event]:
    """Post an encoded request and yield the events of the answer as they arrive; raise UpstreamError on failure.

    Use `contextlib.aclosing` if the iteration may be stopped early: closing the iterator closes the connection.
    """
    reader = encoded.reader()
    async with client.post(url, headers, encoded.body, stream=stream, within_s=within_s) as response:
        await raise_for_status(response)
        while data := await response.read_some():
            for event in reader.feed(data):
                yield event
    for event in reader.close():
        yield event


async def raise_for_status(
    response: UpstreamResponse, capture: Callable[[bytes], None] | None = None
) -> None:
    """Raise Google's error, as UpstreamError, unless the status is 200; `capture` gets the body of the error."""
    if response.status == 200:
        return
    body = await response.read()
    if capture is not None:
        capture(body)
    raise gemini.decode_error(response.status, response.headers, body)
