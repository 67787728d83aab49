"""The dashboard's API for lists: requests, live updates, sessions and tools.

They are read from the ledger, which contains the requests of all workers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dragoman.dialects.base import SSE_TYPE, Reply
from dragoman.errors import InvalidRequest
from dragoman.gateway.context import Gateway
from dragoman.gateway.dashboard.static_files import SAFE_HEADERS
from dragoman.gateway.dashboard.summaries import (
    CostFunction,
    RequestRow,
    request_row,
    summarize_sessions,
    summarize_tools,
)
from dragoman.gateway.handlers.pagination import read_page_size
from dragoman.gateway.request import RequestContext
from dragoman.gateway.response_writer import JSON_HEADERS, ResponseWriter
from dragoman.gateway.store_errors import require_store
from dragoman.http.sse import encode_event
from dragoman.observe.record import RequestRecord
from dragoman.observe.usage import MICROS_PER_USD, cost_micro_usd
from dragoman.store import LedgerEntry, StoreUnavailable

RESPONSE_HEADERS = (*JSON_HEADERS, ("cache-control", "no-store"), *SAFE_HEADERS)
_PAGE, _MAX_PAGE = 200, 1000
SUMMARIZED_REQUESTS = 5000  # sessions, tools and models are summarized from this many of the newest requests
_POLL_S = 0.5  # interval at which the ledger is polled for an open page
_POLL_ENTRIES = 100
_MAX_KNOWN_IDS = 1000
_PING_S = 10.0
_decode_record = msgspec.json.Decoder(RequestRecord).decode


async def send_json(response: ResponseWriter, body: Any) -> None:
    await response.reply(Reply(200, msgspec.json.encode(body), RESPONSE_HEADERS))


def cost_function(gateway: Gateway) -> CostFunction:
    """Return a function that computes the cost of a record in dollars, None if its price is unknown."""
    limits = gateway.config.limits

    def cost_of(record: RequestRecord) -> float | None:
        micro = cost_micro_usd(record, limits)
        return None if micro is None else micro / MICROS_PER_USD

    return cost_of


async def list_requests(request: RequestContext, response: ResponseWriter) -> None:
    """Reply with a page of requests older than `before`, which is the `next` value of the previous page."""
    limit = read_page_size(request.query, "limit", _PAGE, _MAX_PAGE)
    before = _parse_position(request.query.get("before", ""))
    ledger = request.gateway.store.ledger
    lines = await require_store(
        ledger.entries(limit=limit, before=before, session=request.query.get("session", ""))
    )
    rows = await asyncio.to_thread(_rows, visible_entries(request, lines), request.gateway)
    more = len(lines) == limit and len(rows) == len(lines)
    last = f"{lines[-1].at_ms},{lines[-1].id}" if lines else ""
    await send_json(response, {"rows": rows, "next": last if more else ""})


async def stream_requests(request: RequestContext, response: ResponseWriter) -> None:
    """Stream new requests as server-sent events, or reply with the newest if the client accepts only JSON.

    Workers write their lines in batches, so a new line may be older than a known one. Known lines are
    therefore remembered by id.
    """
    if "text/event-stream" not in request.headers.get("accept", ""):
        lines = await require_store(request.gateway.store.ledger.entries(limit=_POLL_ENTRIES))
        await send_json(response, {"rows": _rows(visible_entries(request, lines), request.gateway)})
        return
    response.add_headers(SAFE_HEADERS)
    response.prepare_stream(
        SSE_TYPE, b"retry: 2000\n\n", lambda: b": still here\n\n", grace_s=0, ping_s=_PING_S
    )
    known: dict[str, None] = {}
    told = "hello"
    while not request.gateway.draining:
        try:
            lines = await request.gateway.store.ledger.entries(limit=_POLL_ENTRIES)
        except StoreUnavailable:
            if told != "trouble":
                await response.write(encode_event("trouble", b"{}"))
            told = "trouble"
            await asyncio.sleep(_POLL_S)
            continue
        fresh = [line for line in lines if line.id not in known]
        if told:  # the page reloads the whole list when it receives `hello`
            await response.write(encode_event("hello", b"{}"))
            fresh, told = [], ""
        known |= dict.fromkeys(line.id for line in lines)
        for old in list(known)[: len(known) - _MAX_KNOWN_IDS]:
            del known[old]
        rows = _rows(visible_entries(request, fresh), request.gateway)
        if rows:
            await response.write(encode_event("rows", msgspec.json.encode(rows)))
        await asyncio.sleep(_POLL_S)
    await response.finish(encode_event("bye", b"{}"))


async def list_sessions(request: RequestContext, response: ResponseWriter) -> None:
    cost_of = cost_function(request.gateway)
    await send_json(
        response, await summarize_newest(request, lambda records: summarize_sessions(records, cost_of))
    )


async def list_tools(request: RequestContext, response: ResponseWriter) -> None:
    await send_json(response, await summarize_newest(request, summarize_tools))


async def summarize_newest(
    request: RequestContext, work: Callable[[Sequence[RequestRecord]], Any]
) -> dict[str, Any]:
    """Apply `work` to the newest requests in a thread, and return its result and their number."""
    lines = await newest_entries(request, SUMMARIZED_REQUESTS)
    rows = await asyncio.to_thread(lambda: work(decode_records(lines)))
    return {"of": len(lines), "rows": rows}


async def newest_entries(request: RequestContext, most: int) -> list[LedgerEntry]:
    """Return those of the `most` newest lines of the ledger that the caller may see."""
    lines: list[LedgerEntry] = []
    ledger = request.gateway.store.ledger
    while len(lines) < most:
        before = (lines[-1].at_ms, lines[-1].id) if lines else None
        page = await require_store(ledger.entries(limit=_MAX_PAGE, before=before))
        lines += page
        if len(page) < _MAX_PAGE:
            break
    return visible_entries(request, lines[:most])


def visible_entries(request: RequestContext, lines: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """Return the lines that the caller may see; without a key only those since the gateway's start."""
    if request.caller.key_hash:
        return list(lines)
    since_ms = request.gateway.started_s * 1000
    return [line for line in lines if line.at_ms >= since_ms]


def decode_records(lines: Sequence[LedgerEntry]) -> list[RequestRecord]:
    return [_decode_record(line.data) for line in lines]


def _rows(lines: Sequence[LedgerEntry], gateway: Gateway) -> list[RequestRow]:
    cost_of = cost_function(gateway)
    return [request_row(record, cost_of) for record in decode_records(lines)]


def _parse_position(text: str) -> tuple[int, str] | None:
    if not text:
        return None
    at_ms, _, line_id = text.partition(",")
    if not (at_ms.isascii() and at_ms.isdecimal() and len(at_ms) < 16 and line_id):
        raise InvalidRequest("must be a time and an id, as `next` of the page before", where="before")
    return int(at_ms), line_id
