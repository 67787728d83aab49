"""Drive one exchange: send the request upstream, forward the response, and run gateway tools between rounds.

A failed attempt is retried as long as the client has received nothing of its response.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from dragoman.dialects.base import ClientDialect, Reply
from dragoman.errors import DragomanError, UpstreamGarbage
from dragoman.exchange import Exchange
from dragoman.ir import Event, Finished, Sealed, Usage, unseal
from dragoman.mending import InvalidArguments
from dragoman.repair import HIDDEN_KEY, TEXT_KEY
from dragoman.server.auth import Caller
from dragoman.server.desks import open_desk
from dragoman.server.diagnose import explain
from dragoman.server.gateway import Gateway
from dragoman.server.http import JSON_HEADERS, Outlet
from dragoman.server.metered import Meter
from dragoman.server.own import Desk, Later, Outcome
from dragoman.server.reach import quietly
from dragoman.server.way import Way
from dragoman.store import StoreUnavailable
from dragoman.upstream.client import UpstreamResponse
from dragoman.upstream.hosts import Method

_log = logging.getLogger("dragoman")

_MALFORMED = (
    "Your last reply was not a valid function call. Reply again: call the functions exactly as declared."
)

#: Prefixes of store keys that need the caller's scope. Other keys contain tool call ids, which are unique.
_SCOPED = (TEXT_KEY, HIDDEN_KEY)

#: Awaited with the finished exchange before the end of the response is sent.
OnAnswer = Callable[[Exchange], Awaitable[None]]


class Relay:
    """Answer one client request.

    One request has one or more rounds (one per answer of the model, while it calls gateway tools), and each
    round one or more attempts (upstream calls).
    """

    _recalled: dict[str, Sealed] | None = None  # None if the store did not answer
    _body = b""
    _status = 0  # HTTP status of the upstream response
    _prepared = False
    _committed = False  # the client has received bytes of this round, so it cannot be retried

    def __init__(
        self,
        gateway: Gateway,
        dialect: ClientDialect,
        exchange: Exchange,
        outlet: Outlet,
        caller: Caller,
        on_answer: OnAnswer | None = None,
        headers: Mapping[str, str] | None = None,
        meter: Meter | None = None,
    ) -> None:
        self._gateway = gateway
        self._dialect = dialect
        self._exchange = exchange
        self._outlet = outlet
        self._caller = caller
        self._on_answer = on_answer
        self._headers = headers or {}
        self._meter = meter
        self._way = Way(gateway, caller, exchange.request)

    async def run(self) -> None:
        """Send the whole response, or the error that prevented it."""
        exchange, outlet, gateway = self._exchange, self._outlet, self._gateway
        outlet.trail.follow(exchange)
        desk = await self._open_desk()
        try:
            if desk is not None:  # the request has other tools now, and the plan depends on them
                self._way = Way(gateway, self._caller, exchange.request)
            error = await self._answer(desk)
        finally:
            if desk is not None:
                await desk.close()
        if error is not None:
            await self._fail(error)
            return
        rest = exchange.finish()
        if exchange.memories:
            await self._remember()
        if desk is not None and desk.later is not None:
            await quietly(desk.later.done())
        if self._on_answer is not None:
            try:
                await self._on_answer(exchange)
            except DragomanError as lost:
                await self._fail(lost)
                return
        if exchange.request.stream:
            await outlet.finish(rest)
        else:
            await outlet.reply(Reply(200, rest, JSON_HEADERS))

    async def _answer(self, desk: Desk | None) -> DragomanError | None:
        """Produce everything but the end of the response, which the caller sends after saving state."""
        await self._recall()
        if desk is None or desk.later is None:
            self._encode()
        else:
            self._prepare()  # keep the client's stream alive: the missing results may take long
            try:
                resumed = await desk.later.resume()
                desk.rounds.resume(resumed.found, resumed.behind)
                self._encode()
            except DragomanError as error:
                return error
        exchange = self._exchange
        self._outlet.add_headers((("x-dragoman-notes", str(len(exchange.notes))), *exchange.headers))
        self._prepare()
        return await (self._attempts() if desk is None else self._rounds(desk))

    def _prepare(self) -> None:
        """Let the outlet open the stream after the grace period and keep it alive with pings."""
        if self._exchange.request.stream and not self._prepared:
            self._prepared = True
            kind, grace_s = self._dialect.stream_type, self._dialect.opening_grace_s
            opening, ping_s = self._exchange.open(), self._gateway.config.server.ping_s
            self._outlet.prepare_stream(kind, opening, self._exchange.ping, grace_s=grace_s, ping_s=ping_s)

    async def _open_desk(self) -> Desk | None:
        return await open_desk(
            self._gateway,
            self._exchange,
            self._caller,
            request_id=self._outlet.request_id,
            dialect=self._dialect.name,
            headers=self._headers,
        )

    async def _rounds(self, desk: Desk) -> DragomanError | None:
        """Run rounds until the model calls no gateway tool, or a limit stops them."""
        exchange = self._exchange
        await self._show(desk.show)
        approved = desk.rounds.approved
        if approved:
            self._outlet.trail.ran([call.name for call in approved])
            outcomes = await desk.run(approved, agreed=True)
            self._outlet.trail.ended(approved, outcomes)
            await self._show([event for outcome in outcomes for event in outcome.show])
            desk.rounds.answer([outcome.result for outcome in outcomes if outcome.result is not None])
            try:
                self._encode()
            except DragomanError as unfit:
                return unfit
        while True:
            error = await self._attempts()
            calls = exchange.own_calls
            if error is not None or not calls:
                return error
            self._outlet.trail.ran([call.name for call in calls])
            outcomes = await desk.run(calls)
            self._outlet.trail.ended(calls, outcomes)
            await self._show([event for outcome in outcomes for event in outcome.show])
            spent = functools.reduce(Usage.plus, (outcome.usage for outcome in outcomes))
            if desk.later is not None and any(outcome.later for outcome in outcomes):
                exchange.facts.usage = exchange.facts.usage.plus(spent)
                return await self._suspend(desk, desk.later, outcomes, spent)
            exchange.settle(
                [outcome.result for outcome in outcomes],
                reveal=[tool for outcome in outcomes for tool in outcome.reveal],
                enough=desk.enough,
                spent=spent,
            )
            if not exchange.goes_on:
                return None
            try:
                if self._meter is not None:
                    await self._meter.go_on(exchange.facts.usage)
                self._encode()
            except DragomanError as refused:
                return refused
            self._way.begin()
            self._committed = False

    async def _suspend(
        self, desk: Desk, later: Later, outcomes: Sequence[Outcome], spent: Usage
    ) -> DragomanError | None:
        """End the response at calls that are answered through the admin API, and store them first."""
        pairs = zip(self._exchange.own_calls, outcomes, strict=True)
        calls = [call for call, outcome in pairs if outcome.later]
        results = [outcome.result for outcome in outcomes]
        shown = desk.rounds.suspend(results, {call.id for call in calls}, later.words(calls), spent)
        await self._show(shown)
        try:
            await later.suspend(calls, *desk.rounds.record())
        except DragomanError as lost:
            return lost
        return None

    async def _show(self, events: Sequence[Event]) -> None:
        out = self._exchange.show(events) if events else b""
        if out:
            await self._outlet.write(out)

    async def _attempts(self) -> DragomanError | None:
        """Run one round: attempts until one succeeds, or none is left. Return the last error."""
        way = self._way
        while True:
            self._status = 0
            error = await self._attempt()
            self._outlet.trail.attempted(way.target, way.key_name, self._status, error)
            await way.learn(error)
            if error is None or self._committed:
                return error
            wait_s = way.next(error)
            if wait_s is None:
                return error
            if way.note is not None:
                self._exchange.revise(self._exchange.request.messages, (way.note,))
            await asyncio.sleep(wait_s)
            self._encode(_feedback(error))
            self._outlet.add_headers((("x-dragoman-notes", str(len(self._exchange.notes))),))

    def _encode(self, feedback: str = "") -> None:
        """Encode the request for the next attempt's target, and report the model in response headers."""
        target, wanted = self._way.target, self._way.wanted
        self._body = self._exchange.encode(target, self._recalled, feedback=feedback)
        self._outlet.add_headers((("x-dragoman-model", target.model),))
        if target.model != wanted:
            self._outlet.add_headers((("x-dragoman-fallback", f"{wanted} -> {target.model}"),))

    async def _attempt(self) -> DragomanError | None:
        """Make one upstream call and forward its response; return None if it is usable, else the error."""
        exchange, outlet, clock = self._exchange, self._outlet, time.monotonic
        stream = exchange.request.stream
        method: Method = "streamGenerateContent" if stream else "generateContent"
        url = self._gateway.host.url(self._way.target.model, method)
        trail, capture = outlet.trail, outlet.trail.capture
        trail.sent(self._body)
        try:
            headers = await self._way.headers()
            asked = clock()
            way, client = self._way, self._gateway.client
            async with client.post(url, headers, self._body, stream=stream, within_s=way.left_s) as answer:
                self._status = answer.status
                trail.waited_s += clock() - asked
                if answer.status != 200:
                    return await self._refusal(answer)
                self._body = b""
                while True:
                    asked = clock()
                    data = await answer.read_some()
                    trail.waited_s += clock() - asked
                    if not data:
                        break
                    if capture is not None:
                        capture.hear(data)
                    out = exchange.receive(data)
                    if exchange.memories:
                        await self._remember()
                    if out:
                        self._committed = True
                        await outlet.write(out)
                    if exchange.failure is not None:
                        return exchange.failure
                    if exchange.has_finish:
                        answer.hurry()
        except DragomanError as error:
            if not exchange.has_finish:  # otherwise the answer is complete and only the connection broke
                return error
        return await self._conclude()

    async def _conclude(self) -> DragomanError | None:
        """Flush what the decoder still holds, and return the error if the response is unusable."""
        exchange = self._exchange
        out = exchange.end()
        if exchange.memories:
            await self._remember()
        if out:
            self._committed = True
            await self._outlet.write(out)
        return exchange.failure or _unusable(exchange)

    async def _refusal(self, answer: UpstreamResponse) -> DragomanError:
        told, capture = await answer.read(), self._outlet.trail.capture
        if capture is not None:
            capture.hear(told)
        refusal = self._exchange.upstream.decode_error(answer.status, answer.headers, told)
        return explain(refusal, self._body, self._way.target)

    async def _recall(self) -> None:
        """Read signatures and hidden tool rounds from the store that the client's history does not carry."""
        keys, rounds = self._exchange.wanted, self._exchange.rounds
        hidden = rounds.places if rounds is not None else {}
        if not keys and not hidden:
            self._recalled = {}
            return
        scope = f"{self._caller.scope}/"  # as in `_store_key`, for a whole history at once
        wanted = {scope + key if key.startswith(_SCOPED) else key: key for key in (*keys, *hidden)}
        try:
            found = await self._gateway.store.recall(wanted)
        except StoreUnavailable as error:
            _log.warning("%s; signatures the client did not keep are replaced by Google's sentinel", error)
            return
        known = {wanted[key]: word for key, word in found.items()}
        if rounds is not None:
            rounds.remind({key: known.pop(key) for key in hidden if key in known})
        self._recalled = {key: sealed for key, word in known.items() if (sealed := unseal(word)) is not None}

    def _store_key(self, key: str) -> str:
        """Scope keys that are derived from text: callers who send the same text must not share state."""
        return f"{self._caller.scope}/{key}" if key.startswith(_SCOPED) else key

    async def _remember(self) -> None:
        """Store signatures and hidden rounds before the client gets the bytes that refer to them."""
        memories, self._exchange.memories = self._exchange.memories, []
        self._outlet.holds = True
        try:
            await self._gateway.store.remember([(self._store_key(key), word) for key, word in memories])
        except StoreUnavailable as error:
            _log.warning("%s; a client that drops thinking will need Google's sentinel", error)
        finally:
            self._outlet.holds = False

    async def _fail(self, error: DragomanError) -> None:
        """Report an error inside the stream if it is open or the dialect demands it, else as HTTP status."""
        error = self._gateway.redactor.told(error)
        self._outlet.trail.failed(error)
        in_stream = self._exchange.request.stream and error.kind in self._dialect.fails_in_stream
        if self._outlet.started or in_stream:
            await self._outlet.finish(self._exchange.fail(error))
        else:
            await self._outlet.reply(self._dialect.encode_error(error))


def _unusable(exchange: Exchange) -> DragomanError | None:
    """Return an error for a malformed call or an empty answer: neither is a success (pains D1, D2, D5)."""
    finished = exchange.finished or Finished(reason="malformed", raw="no finish reason")
    if finished.reason == "malformed":
        why = f"Gemini stopped with {finished.raw}. {finished.detail}".strip()
        return UpstreamGarbage(why, kind="overloaded", code=finished.raw)
    if finished.reason in ("end", "other", "tool_calls") and not exchange.has_content:
        return UpstreamGarbage("the model gave an empty answer", kind="overloaded")
    return None


def _feedback(error: DragomanError) -> str:
    """Return what the retry tells the model about its invalid function call, if that was the error."""
    if isinstance(error, InvalidArguments):
        return f"Your last reply could not be used: {error.message}. Reply again."
    return _MALFORMED if "CALL" in error.code else ""
