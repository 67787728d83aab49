"""The dashboard's API for lists: requests, live updates, sessions and tools.

They are read from the ledger, which contains the requests of all workers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dragoman.dashboard.pages import SAFE_HEADERS
from dragoman.dashboard.rows import CostOf, Row, row_of
from dragoman.dashboard.summary import sessions_of, tools_of
from dragoman.dialects.base import SSE_TYPE, Reply
from dragoman.errors import InvalidRequest
from dragoman.observe.record import Record
from dragoman.observe.usage import MICRO, cost_micro_usd
from dragoman.server.converse import Call
from dragoman.server.gateway import Gateway
from dragoman.server.http import JSON_HEADERS, Outlet
from dragoman.server.pages import read_size
from dragoman.server.reach import reach
from dragoman.sse import encode_event
from dragoman.store import Line, StoreUnavailable

HEADERS = (*JSON_HEADERS, ("cache-control", "no-store"), *SAFE_HEADERS)
_PAGE, _MOST_PAGE = 200, 1000
SUMMED = 5000  # sessions, tools and models are summarized from this many of the newest requests
_LOOK_S = 0.5  # interval at which the ledger is polled for an open page
_LOOK_LINES = 100
_REMEMBERED = 1000
_PING_S = 10.0
_decode = msgspec.json.Decoder(Record).decode


async def reply(outlet: Outlet, body: Any) -> None:
    await outlet.reply(Reply(200, msgspec.json.encode(body), HEADERS))


def costs(gateway: Gateway) -> CostOf:
    """Return a function that computes the cost of a record in dollars, None if its price is unknown."""
    limits = gateway.config.limits

    def cost_of(record: Record) -> float | None:
        micro = cost_micro_usd(record, limits)
        return None if micro is None else micro / MICRO

    return cost_of


async def requests(call: Call, outlet: Outlet) -> None:
    """Reply with a page of requests older than `before`, which is the `next` value of the previous page."""
    limit = read_size(call.query, "limit", _PAGE, _MOST_PAGE)
    before = _place(call.query.get("before", ""))
    ledger = call.gateway.store.ledger
    lines = await reach(ledger.lines(limit=limit, before=before, session=call.query.get("session", "")))
    rows = await asyncio.to_thread(_rows, visible(call, lines), call.gateway)
    more = len(lines) == limit and len(rows) == len(lines)
    last = f"{lines[-1].at_ms},{lines[-1].id}" if lines else ""
    await reply(outlet, {"rows": rows, "next": last if more else ""})


async def live(call: Call, outlet: Outlet) -> None:
    """Stream new requests as server-sent events, or reply with the newest if the client accepts only JSON.

    Workers write their lines in batches, so a new line may be older than a known one. Known lines are
    therefore remembered by id.
    """
    if "text/event-stream" not in call.headers.get("accept", ""):
        lines = await reach(call.gateway.store.ledger.lines(limit=_LOOK_LINES))
        await reply(outlet, {"rows": _rows(visible(call, lines), call.gateway)})
        return
    outlet.add_headers(SAFE_HEADERS)
    outlet.prepare_stream(
        SSE_TYPE, b"retry: 2000\n\n", lambda: b": still here\n\n", grace_s=0, ping_s=_PING_S
    )
    known: dict[str, None] = {}
    told = "hello"
    while not call.gateway.draining:
        try:
            lines = await call.gateway.store.ledger.lines(limit=_LOOK_LINES)
        except StoreUnavailable:
            if told != "trouble":
                await outlet.write(encode_event("trouble", b"{}"))
            told = "trouble"
            await asyncio.sleep(_LOOK_S)
            continue
        fresh = [line for line in lines if line.id not in known]
        if told:  # the page reloads the whole list when it receives `hello`
            await outlet.write(encode_event("hello", b"{}"))
            fresh, told = [], ""
        known |= dict.fromkeys(line.id for line in lines)
        for old in list(known)[: len(known) - _REMEMBERED]:
            del known[old]
        rows = _rows(visible(call, fresh), call.gateway)
        if rows:
            await outlet.write(encode_event("rows", msgspec.json.encode(rows)))
        await asyncio.sleep(_LOOK_S)
    await outlet.finish(encode_event("bye", b"{}"))


async def sessions(call: Call, outlet: Outlet) -> None:
    cost_of = costs(call.gateway)
    await reply(outlet, await summed(call, lambda records: sessions_of(records, cost_of)))


async def tools(call: Call, outlet: Outlet) -> None:
    await reply(outlet, await summed(call, tools_of))


async def summed(call: Call, work: Callable[[Sequence[Record]], Any]) -> dict[str, Any]:
    """Apply `work` to the newest requests in a thread, and return its result and their number."""
    lines = await newest(call, SUMMED)
    rows = await asyncio.to_thread(lambda: work(records_of(lines)))
    return {"of": len(lines), "rows": rows}


async def newest(call: Call, most: int) -> list[Line]:
    """Return those of the `most` newest lines of the ledger that the caller may see."""
    lines: list[Line] = []
    ledger = call.gateway.store.ledger
    while len(lines) < most:
        before = (lines[-1].at_ms, lines[-1].id) if lines else None
        page = await reach(ledger.lines(limit=_MOST_PAGE, before=before))
        lines += page
        if len(page) < _MOST_PAGE:
            break
    return visible(call, lines[:most])


def visible(call: Call, lines: Sequence[Line]) -> list[Line]:
    """Return the lines that the caller may see; without a key only those since the gateway's start."""
    if call.caller.key_hash:
        return list(lines)
    since_ms = call.gateway.started_s * 1000
    return [line for line in lines if line.at_ms >= since_ms]


def records_of(lines: Sequence[Line]) -> list[Record]:
    return [_decode(line.data) for line in lines]


def _rows(lines: Sequence[Line], gateway: Gateway) -> list[Row]:
    cost_of = costs(gateway)
    return [row_of(record, cost_of) for record in records_of(lines)]


def _place(text: str) -> tuple[int, str] | None:
    if not text:
        return None
    at_ms, _, line_id = text.partition(",")
    if not (at_ms.isascii() and at_ms.isdecimal() and len(at_ms) < 16 and line_id):
        raise InvalidRequest("must be a time and an id, as `next` of the page before", where="before")
    return int(at_ms), line_id
