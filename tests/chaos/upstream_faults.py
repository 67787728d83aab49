"""Faults of Google itself: refusals, spoilt answers, spoilt bytes, lost connections."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

from tests.chaos.matrix_rows import Cell, Expect, Expected, Fault, cured, fatal, harmless, hopeless, stopped
from tests.chaos.scripted_google import OVER, Moment, Strike
from tests.chaos.scripted_turns import PHASES, Phase
from tests.faults.harness import chunk

_RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.05s"}
_DAY = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}],
}
_PAGE = b"<!DOCTYPE html>\n<title>Error 502 (Server Error)!!1</title>\n<p>That\xe2\x80\x99s all we know.\n"
_UNSAID: tuple[Phase, ...] = ("before headers", "before content", "between turns")
_AT_ONCE: tuple[Phase, ...] = ("before headers", "between turns")
#: Why a fault cannot strike at every moment.
_SAYS_ALL = "behind words it is a proper end"
_IS_HEAD = "it takes the place of status and headers"
_HAS_STATUS = "a whole answer that has begun has its status"

#: status -> what becomes of it; inside a stream it is told as an error of that code
STATUSES: dict[int, Expect] = {
    **dict.fromkeys((400, 401, 402, 403, 404, 405, 410, 413, 415, 422, 431, 451, 499), fatal),
    **dict.fromkeys((408, 429, 500, 501, 502, 503, 504, 507, 529), cured),
}


def refuse(
    status: int, *details: dict[str, Any], body: bytes = b"", kind: str = "application/json"
) -> Strike:
    """The status, or inside an answer that has begun the error that Google tells there."""

    async def strike(moment: Moment) -> bool:
        error = {"code": status, "message": "this does not work", "status": "X", "details": list(details)}
        told = body or json.dumps({"error": error}).encode()
        if moment.has_head:
            await moment.say(b"data: %b\r\n\r\n" % told)
        else:
            await moment.head(status, kind)
            await moment.say(told)
        await moment.end()
        return OVER

    return strike


def ends_with(*pieces: bytes) -> Strike:
    """These instead of the rest, and a proper end."""

    async def strike(moment: Moment) -> bool:
        for piece in pieces:
            await moment.say(piece if moment.stream else piece.removeprefix(b"data: "))
        await moment.end()
        return OVER

    return strike


async def fillers(moment: Moment) -> None:
    """What proxies put between to keep a line alive."""
    await moment.say(b"\r\n\r\n")
    if moment.stream:
        await moment.say(b": keep-alive\r\n")
        await moment.say(b"\r\n")


async def hang(_moment: Moment) -> None:
    await asyncio.sleep(3600)


async def drip(moment: Moment) -> bool:
    """The rest in so small pieces, so slowly, that all of an answer takes longer than a silence may."""
    rest = b"".join(moment.rest)
    moment.rest = [rest[start : start + 97] for start in range(0, len(rest), 97)]
    pause_s = min(2.0 / len(moment.rest), 0.2)
    while moment.rest:
        await asyncio.sleep(pause_s)
        await moment.say(moment.rest.pop(0))
    await moment.end()
    return OVER


async def byte_by_byte(moment: Moment) -> bool:
    moment.rest = [bytes([byte]) for byte in b"".join(moment.rest)]
    await moment.finish()
    return OVER


async def fin(moment: Moment) -> bool:
    moment.cut()
    return OVER


async def rst(moment: Moment) -> bool:
    moment.reset()
    return OVER


async def unframed_fin(moment: Moment) -> bool:
    """Without chunks or a length only the end of the connection tells the end of the body."""
    if not moment.has_head:
        kind = "text/event-stream" if moment.stream else "application/json"
        moment.writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n".encode())
        moment.writer.write(moment.rest[0][: len(moment.rest[0]) // 2])
        await moment.writer.drain()
    moment.cut()
    return OVER


async def half_a_piece(moment: Moment) -> bool:
    """Half of what comes next, and a proper end behind it."""
    rest = b"".join(moment.rest)
    await moment.say(rest[: max(1, len(moment.rest[0]) // 2)])
    await moment.end()
    return OVER


async def half_a_chunk(moment: Moment) -> bool:
    """HTTP's own chunk is announced, and does not come whole."""
    await moment.head()
    moment.writer.write(b"1000\r\n" + moment.rest[0][:10])
    await moment.writer.drain()
    moment.cut()
    return OVER


async def not_utf8(moment: Moment) -> bool:
    """In the strings of everything that follows."""
    moment.rest = [piece.replace(b'": "', b'": "\xff\xfe') for piece in moment.rest]
    await moment.finish()
    return OVER


async def garbage(moment: Moment) -> bool:
    await moment.say(b"data: \x00\x01{[\xfe\xff\r\n\r\n")
    await moment.finish()
    return OVER


async def not_http(moment: Moment) -> bool:
    moment.writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    await moment.writer.drain()
    moment.cut()
    return OVER


async def endless_header(moment: Moment) -> bool:
    moment.writer.write(b"HTTP/1.1 200 OK\r\nx: " + b"x" * 100_000 + b"\r\n\r\n")
    await moment.writer.drain()
    moment.cut()
    return OVER


async def broken_gzip(moment: Moment) -> bool:
    await moment.head(200, "", "content-encoding: gzip")
    await moment.say(gzip.compress(b"".join(moment.rest))[:10] + b"\x07" * 50)
    await moment.end()
    return OVER


async def mislabelled(moment: Moment) -> None:
    await moment.head(200, "text/plain")


async def page(moment: Moment) -> bool:
    """A portal's page instead of an answer."""
    await moment.head(200, "text/html")
    await moment.say(_PAGE)
    await moment.end()
    return OVER


async def moved(moment: Moment) -> bool:
    await moment.head(307, "text/html", "location: http://127.0.0.1:9/elsewhere")
    await moment.end()
    return OVER


async def twice(moment: Moment) -> bool:
    """Everything but words comes twice, as from a proxy that lost its place. Words twice may be meant."""
    moment.rest = [piece for piece in moment.rest for _ in range(2 if _is_told_once(piece) else 1)]
    await moment.finish()
    return OVER


def _is_told_once(piece: bytes) -> bool:
    return b"functionCall" in piece or b'"text": ""' in piece


async def without_end(moment: Moment) -> bool:
    """Everything is said, and the connection stays open."""
    while moment.rest:
        await moment.say(moment.rest.pop(0))
    await asyncio.sleep(3600)
    return OVER


async def cut_behind_the_end(moment: Moment) -> bool:
    """Everything is said, and HTTP's own end is lost."""
    while moment.rest:
        await moment.say(moment.rest.pop(0))
    moment.cut()
    return OVER


def _fault(name: str, strike: Strike, expect: Expect, **more: Any) -> Fault:
    return Fault(name=name, strike=strike, expect=expect, **more)


def _endless(cell: Cell) -> Expected:
    """A stream says itself where it ends; only HTTP says it of a body in one piece."""
    return Expected("answer" if cell.stream else "error")


def _endless_cut(cell: Cell) -> Expected:
    return Expected("answer", 1 if cell.stream else 2)


def _unsaid(name: str, strike: Strike, expect: Expect = cured, **more: Any) -> Fault:
    """One that is no fault once something was said."""
    return _fault(name, strike, expect, streamed=_UNSAID, whole=_UNSAID, because=_SAYS_ALL, **more)


def _at_once(name: str, strike: Strike, expect: Expect = cured, **more: Any) -> Fault:
    """One that takes the place of status and headers."""
    return _fault(name, strike, expect, streamed=_AT_ONCE, whole=_AT_ONCE, because=_IS_HEAD, **more)


def _refusal(name: str, strike: Strike, expect: Expect, **more: Any) -> Fault:
    """A whole answer that has begun cannot be refused any more."""
    return _fault(name, strike, expect, whole=_AT_ONCE, because=_HAS_STATUS, **more)


_STOP = chunk({"text": ""}, finish="STOP")
_ONE_DOCUMENT = "the rest of a whole answer is no document of its own"
_BLOCKED = b'data: {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}\r\n\r\n'

REFUSALS: tuple[Fault, ...] = (
    *(_refusal(f"status {status}", refuse(status), expect) for status, expect in STATUSES.items()),
    _refusal("429 with RetryInfo", refuse(429, _RETRY), cured),
    _refusal("429, the day's quota", refuse(429, _DAY), fatal),
    _refusal("429, again and again", refuse(429, _RETRY), hopeless, times=0),
    _refusal("503, again and again", refuse(503), hopeless, times=0),
    _at_once("502 with a page", refuse(502, body=_PAGE, kind="text/html")),
    _at_once("200 with a page", page),
    _at_once("307 to elsewhere", moved),
)
ENDINGS: tuple[Fault, ...] = (
    _fault(
        "MALFORMED_FUNCTION_CALL",
        ends_with(chunk(finish="MALFORMED_FUNCTION_CALL")),
        cured,
        whole=_UNSAID,
        because=_ONE_DOCUMENT,
    ),
    _fault(
        "UNEXPECTED_TOOL_CALL",
        ends_with(chunk(finish="UNEXPECTED_TOOL_CALL")),
        cured,
        whole=_UNSAID,
        because=_ONE_DOCUMENT,
    ),
    _fault(
        "MAX_TOKENS", ends_with(chunk(finish="MAX_TOKENS")), stopped, whole=_UNSAID, because=_ONE_DOCUMENT
    ),
    _fault("SAFETY", ends_with(chunk(finish="SAFETY")), stopped, whole=_UNSAID, because=_ONE_DOCUMENT),
    _unsaid("a blocked prompt", ends_with(_BLOCKED), stopped),
    _unsaid("an empty STOP", ends_with(_STOP)),
    _unsaid("an empty STOP, again and again", ends_with(_STOP), hopeless, times=0),
    _fault("an end without a finish reason", ends_with(), cured),
)
BYTES: tuple[Fault, ...] = (
    _fault("garbage", garbage, cured),
    _fault(
        "strings that are no UTF-8",
        not_utf8,
        cured,
        streamed=PHASES[:5],
        whole=PHASES[:3],
        because="no string follows that matters",
    ),
    _fault("half a document, then an end", half_a_piece, cured),
    _fault("half an HTTP chunk", half_a_chunk, cured),
    _fault("a body without a length, cut", unframed_fin, cured),
    _fault("calls and endings twice", twice, harmless, whole=(), because="a document comes once"),
    _fault(
        "comments and blank lines",
        fillers,
        harmless,
        whole=(*_AT_ONCE, "at the end"),
        because="in the middle of a document it is no filler",
    ),
    _fault("byte by byte", byte_by_byte, harmless),
    _at_once("labelled text/plain", mislabelled, harmless),
    _at_once("broken gzip", broken_gzip),
    _at_once("no HTTP at all", not_http),
    _at_once("a header without end", endless_header),
)
CONNECTION: tuple[Fault, ...] = (
    _fault("FIN", fin, cured),
    _fault("RST", rst, cured),
    _fault("RST, again and again", rst, hopeless, times=0),
    _fault("silence", hang, fatal, hasty=True),
    _fault("a slow drip", drip, harmless, hasty=True),
    _fault("all said, no end", without_end, _endless, hasty=True),
    _fault("all said, then cut", cut_behind_the_end, _endless_cut),
)
UPSTREAM = (*REFUSALS, *ENDINGS, *BYTES, *CONNECTION)
