"""Notice that a client has disconnected, and stop the work for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from dragoman.gateway.asgi import ClientDisconnect, Receive
from dragoman.gateway.response_writer import ResponseWriter


async def run_until_disconnect(
    task: asyncio.Task[None], work: Awaitable[None], response: ResponseWriter, receive: Receive
) -> None:
    """Await `work`, and cancel it together with its upstream call when the client disconnects (known problem E12).

    A client that disconnects after the last byte was sent does not interrupt the remaining work, such as
    writing the ledger. Raises ClientDisconnect.
    """
    left = False

    def leave() -> None:
        nonlocal left
        left = True
        task.cancel()

    async def watch_disconnect() -> None:
        """Wait for `http.disconnect`, which an ASGI server reports only while the app awaits `receive`."""
        while (await receive())["type"] != "http.disconnect":
            pass
        if not response.ended:
            leave()

    response.on_stall = leave
    watcher = asyncio.get_running_loop().create_task(watch_disconnect())
    try:
        await work
    except asyncio.CancelledError:
        if not left:
            raise
        task.uncancel()
        raise ClientDisconnect from None
    finally:
        response.on_stall = None  # break the reference cycle: `leave` holds this frame
        watcher.cancel()
