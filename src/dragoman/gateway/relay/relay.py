"""Drive one exchange: send the request upstream, forward the response, and run gateway tools between rounds.

A failed attempt is retried as long as the client has received nothing of its response. Google's unspecific "invalid
argument" errors are explained with the strict checks of our emulator (pain C11).
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from dragoman.dialects.base import ClientDialect, Reply, Target
from dragoman.errors import DragomanError, UpstreamError, UpstreamProtocolError
from dragoman.gateway.auth.authenticator import Caller
from dragoman.gateway.context import Gateway
from dragoman.gateway.gateway_tools.protocol import ExternalResults, GatewayToolRunner, ToolOutcome
from dragoman.gateway.gateway_tools.runner import open_tool_runner
from dragoman.gateway.limits.quota_meter import QuotaReservation
from dragoman.gateway.relay.attempt_plan import AttemptPlan
from dragoman.gateway.response_writer import JSON_HEADERS, ResponseWriter
from dragoman.gateway.store_errors import ignore_store_errors
from dragoman.ir import Event, Finished, SealedSignature, Usage, unseal
from dragoman.store import StoreUnavailable
from dragoman.translation.argument_repair import InvalidArguments
from dragoman.translation.exchange import Exchange
from dragoman.translation.repair import HIDDEN_KEY_PREFIX, TEXT_KEY_PREFIX
from dragoman.upstream.client import UpstreamResponse
from dragoman.upstream.endpoints import Method

_MOST_CHARACTERS = 500


def explain_rejection(error: UpstreamError, body: bytes, target: Target) -> UpstreamError:
    """Return the same error; if it is opaque, append what the emulator finds wrong with `body`."""
    if error.code == "opaque":
        found = _diagnose(body, target)
        says = f"says: {found}" if found else "finds nothing wrong with it"
        error.message = f"{error.message} Dragoman's own check {says}"
        error.args = (error.message,)
    return error


def _diagnose(body: bytes, target: Target) -> str:
    """Return the emulator's complaint, or "". The emulator is large and imported only when needed."""
    from dragoman.emulator.validate import diagnose

    return diagnose(body, target.model, vertex=target.backend == "vertex")[:_MOST_CHARACTERS]


_log = logging.getLogger("dragoman")

_MALFORMED_CALL_FEEDBACK = (
    "Your last reply was not a valid function call. Reply again: call the functions exactly as declared."
)

#: Prefixes of store keys that need the caller's scope. Other keys contain tool call ids, which are unique.
_SCOPED_KEY_PREFIXES = (TEXT_KEY_PREFIX, HIDDEN_KEY_PREFIX)

#: Awaited with the finished exchange before the end of the response is sent.
OnAnswer = Callable[[Exchange], Awaitable[None]]


class Relay:
    """Answer one client request.

    One request has one or more rounds (one per answer of the model, while it calls gateway tools), and each
    round one or more attempts (upstream calls).
    """

    _stored_values: dict[str, SealedSignature] | None = None  # None if the store did not answer
    _body = b""
    _status = 0  # HTTP status of the upstream response
    _prepared = False
    _committed = False  # the client has received bytes of this round, so it cannot be retried

    def __init__(
        self,
        gateway: Gateway,
        dialect: ClientDialect,
        exchange: Exchange,
        outlet: ResponseWriter,
        caller: Caller,
        on_answer: OnAnswer | None = None,
        headers: Mapping[str, str] | None = None,
        meter: QuotaReservation | None = None,
    ) -> None:
        self._gateway = gateway
        self._dialect = dialect
        self._exchange = exchange
        self._writer = outlet
        self._caller = caller
        self._on_answer = on_answer
        self._headers = headers or {}
        self._reservation = meter
        self._plan = AttemptPlan(gateway, caller, exchange.request)

    async def run(self) -> None:
        """Send the whole response, or the error that prevented it."""
        exchange, outlet, gateway = self._exchange, self._writer, self._gateway
        outlet.recorder.on_exchange(exchange)
        desk = await self._open_tool_runner()
        try:
            if desk is not None:  # the request has other tools now, and the plan depends on them
                self._plan = AttemptPlan(gateway, self._caller, exchange.request)
            error = await self._generate(desk)
        finally:
            if desk is not None:
                await desk.close()
        if error is not None:
            await self._send_error(error)
            return
        rest = exchange.finish()
        if exchange.store_entries:
            await self._write_store()
        if desk is not None and desk.external_results is not None:
            await ignore_store_errors(desk.external_results.mark_delivered())
        if self._on_answer is not None:
            try:
                await self._on_answer(exchange)
            except DragomanError as lost:
                await self._send_error(lost)
                return
        if exchange.request.stream:
            await outlet.finish(rest)
        else:
            await outlet.reply(Reply(200, rest, JSON_HEADERS))

    async def _generate(self, desk: GatewayToolRunner | None) -> DragomanError | None:
        """Produce everything but the end of the response, which the caller sends after saving state."""
        await self._read_store()
        if desk is None or desk.external_results is None:
            self._encode()
        else:
            self._prepare_stream()  # keep the client's stream alive: the missing results may take long
            try:
                resumed = await desk.external_results.resume()
                desk.tool_loop.resume(resumed.in_history, resumed.after_history)
                self._encode()
            except DragomanError as error:
                return error
        exchange = self._exchange
        self._writer.add_headers((("x-dragoman-notes", str(len(exchange.notes))), *exchange.headers))
        self._prepare_stream()
        return await (self._run_attempts() if desk is None else self._run_rounds(desk))

    def _prepare_stream(self) -> None:
        """Let the outlet open the stream after the grace period and keep it alive with pings."""
        if self._exchange.request.stream and not self._prepared:
            self._prepared = True
            kind, grace_s = self._dialect.stream_type, self._dialect.opening_grace_s
            opening, ping_s = self._exchange.open(), self._gateway.config.server.ping_s
            self._writer.prepare_stream(kind, opening, self._exchange.ping, grace_s=grace_s, ping_s=ping_s)

    async def _open_tool_runner(self) -> GatewayToolRunner | None:
        return await open_tool_runner(
            self._gateway,
            self._exchange,
            self._caller,
            request_id=self._writer.request_id,
            dialect=self._dialect.name,
            headers=self._headers,
        )

    async def _run_rounds(self, desk: GatewayToolRunner) -> DragomanError | None:
        """Run rounds until the model calls no gateway tool, or a limit stops them."""
        exchange = self._exchange
        await self._write_events(desk.client_events)
        approved = desk.tool_loop.approved_calls
        if approved:
            self._writer.recorder.on_tool_start([call.name for call in approved])
            outcomes = await desk.run(approved, agreed=True)
            self._writer.recorder.on_tool_end(approved, outcomes)
            await self._write_events([event for outcome in outcomes for event in outcome.client_events])
            desk.tool_loop.set_approved_results(
                [outcome.result for outcome in outcomes if outcome.result is not None]
            )
            try:
                self._encode()
            except DragomanError as unfit:
                return unfit
        while True:
            error = await self._run_attempts()
            calls = exchange.gateway_calls
            if error is not None or not calls:
                return error
            self._writer.recorder.on_tool_start([call.name for call in calls])
            outcomes = await desk.run(calls)
            self._writer.recorder.on_tool_end(calls, outcomes)
            await self._write_events([event for outcome in outcomes for event in outcome.client_events])
            spent = functools.reduce(Usage.plus, (outcome.usage for outcome in outcomes))
            if desk.external_results is not None and any(outcome.is_external for outcome in outcomes):
                exchange.summary.usage = exchange.summary.usage.plus(spent)
                return await self._suspend(desk, desk.external_results, outcomes, spent)
            exchange.add_results(
                [outcome.result for outcome in outcomes],
                reveal=[tool for outcome in outcomes for tool in outcome.new_tools],
                enough=desk.stop_reason,
                spent=spent,
            )
            if not exchange.needs_another_round:
                return None
            try:
                if self._reservation is not None:
                    await self._reservation.raise_for_next_round(exchange.summary.usage)
                self._encode()
            except DragomanError as refused:
                return refused
            self._plan.begin_round()
            self._committed = False

    async def _suspend(
        self, desk: GatewayToolRunner, later: ExternalResults, outcomes: Sequence[ToolOutcome], spent: Usage
    ) -> DragomanError | None:
        """End the response at calls that are answered through the admin API, and store them first."""
        pairs = zip(self._exchange.gateway_calls, outcomes, strict=True)
        calls = [call for call, outcome in pairs if outcome.is_external]
        results = [outcome.result for outcome in outcomes]
        shown = desk.tool_loop.suspend(
            results, {call.id for call in calls}, later.placeholder_text(calls), spent
        )
        await self._write_events(shown)
        try:
            await later.suspend(calls, *desk.tool_loop.build_record())
        except DragomanError as lost:
            return lost
        return None

    async def _write_events(self, events: Sequence[Event]) -> None:
        out = self._exchange.send_events(events) if events else b""
        if out:
            await self._writer.write(out)

    async def _run_attempts(self) -> DragomanError | None:
        """Run one round: attempts until one succeeds, or none is left. Return the last error."""
        way = self._plan
        while True:
            self._status = 0
            error = await self._run_attempt()
            self._writer.recorder.on_attempt_end(way.target, way.key_name, self._status, error)
            await way.record_outcome(error)
            if error is None or self._committed:
                return error
            wait_s = way.plan_next(error)
            if wait_s is None:
                return error
            if way.note is not None:
                self._exchange.replace_messages(self._exchange.request.messages, (way.note,))
            await asyncio.sleep(wait_s)
            self._encode(_feedback(error))
            self._writer.add_headers((("x-dragoman-notes", str(len(self._exchange.notes))),))

    def _encode(self, feedback: str = "") -> None:
        """Encode the request for the next attempt's target, and report the model in response headers."""
        target, wanted = self._plan.target, self._plan.requested_model
        self._body = self._exchange.encode(target, self._stored_values, feedback=feedback)
        self._writer.add_headers((("x-dragoman-model", target.model),))
        if target.model != wanted:
            self._writer.add_headers((("x-dragoman-fallback", f"{wanted} -> {target.model}"),))

    async def _run_attempt(self) -> DragomanError | None:
        """Make one upstream call and forward its response; return None if it is usable, else the error."""
        exchange, outlet, clock = self._exchange, self._writer, time.monotonic
        stream = exchange.request.stream
        method: Method = "streamGenerateContent" if stream else "generateContent"
        url = self._gateway.endpoint.url(self._plan.target.model, method)
        trail, capture = outlet.recorder, outlet.recorder.capture
        trail.on_attempt_start(self._body)
        try:
            headers = await self._plan.headers()
            asked = clock()
            way, client = self._plan, self._gateway.client
            async with client.post(
                url, headers, self._body, stream=stream, within_s=way.remaining_s
            ) as answer:
                self._status = answer.status
                trail.upstream_wait_s += clock() - asked
                if answer.status != 200:
                    return await self._read_error(answer)
                self._body = b""
                while True:
                    asked = clock()
                    data = await answer.read_some()
                    trail.upstream_wait_s += clock() - asked
                    if not data:
                        break
                    if capture is not None:
                        capture.add_upstream_bytes(data)
                    out = exchange.receive(data)
                    if exchange.store_entries:
                        await self._write_store()
                    if out:
                        self._committed = True
                        await outlet.write(out)
                    if exchange.failure is not None:
                        return exchange.failure
                    if exchange.has_finish:
                        answer.shorten_timeout()
        except DragomanError as error:
            if not exchange.has_finish:  # otherwise the answer is complete and only the connection broke
                return error
        return await self._finish_attempt()

    async def _finish_attempt(self) -> DragomanError | None:
        """Flush what the decoder still holds, and return the error if the response is unusable."""
        exchange = self._exchange
        out = exchange.end()
        if exchange.store_entries:
            await self._write_store()
        if out:
            self._committed = True
            await self._writer.write(out)
        return exchange.failure or _find_unusable(exchange)

    async def _read_error(self, answer: UpstreamResponse) -> DragomanError:
        told, capture = await answer.read(), self._writer.recorder.capture
        if capture is not None:
            capture.add_upstream_bytes(told)
        refusal = self._exchange.upstream.decode_error(answer.status, answer.headers, told)
        return explain_rejection(refusal, self._body, self._plan.target)

    async def _read_store(self) -> None:
        """Read signatures and hidden tool rounds from the store that the client's history does not carry."""
        keys, rounds = self._exchange.missing_keys, self._exchange.tool_loop
        hidden = rounds.places if rounds is not None else {}
        if not keys and not hidden:
            self._stored_values = {}
            return
        scope = f"{self._caller.scope}/"  # as in `_store_key`, for a whole history at once
        wanted = {
            scope + key if key.startswith(_SCOPED_KEY_PREFIXES) else key: key for key in (*keys, *hidden)
        }
        try:
            found = await self._gateway.store.get_values(wanted)
        except StoreUnavailable as error:
            _log.warning("%s; signatures the client did not keep are replaced by Google's sentinel", error)
            return
        known = {wanted[key]: word for key, word in found.items()}
        if rounds is not None:
            rounds.set_stored_rounds({key: known.pop(key) for key in hidden if key in known})
        self._stored_values = {
            key: sealed for key, word in known.items() if (sealed := unseal(word)) is not None
        }

    def _store_key(self, key: str) -> str:
        """Scope keys that are derived from text: callers who send the same text must not share state."""
        return f"{self._caller.scope}/{key}" if key.startswith(_SCOPED_KEY_PREFIXES) else key

    async def _write_store(self) -> None:
        """Store signatures and hidden rounds before the client gets the bytes that refer to them."""
        memories, self._exchange.store_entries = self._exchange.store_entries, []
        self._writer.pings_paused = True
        try:
            await self._gateway.store.set_values([(self._store_key(key), word) for key, word in memories])
        except StoreUnavailable as error:
            _log.warning("%s; a client that drops thinking will need Google's sentinel", error)
        finally:
            self._writer.pings_paused = False

    async def _send_error(self, error: DragomanError) -> None:
        """Report an error inside the stream if it is open or the dialect demands it, else as HTTP status."""
        error = self._gateway.redactor.redact_error(error)
        self._writer.recorder.on_error(error)
        in_stream = self._exchange.request.stream and error.kind in self._dialect.fails_in_stream
        if self._writer.started or in_stream:
            await self._writer.finish(self._exchange.fail(error))
        else:
            await self._writer.reply(self._dialect.encode_error(error))


def _find_unusable(exchange: Exchange) -> DragomanError | None:
    """Return an error for a malformed call or an empty answer: neither is a success (pains D1, D2, D5)."""
    finished = exchange.finished or Finished(reason="malformed", raw="no finish reason")
    if finished.reason == "malformed":
        why = f"Gemini stopped with {finished.raw}. {finished.detail}".strip()
        return UpstreamProtocolError(why, kind="overloaded", code=finished.raw)
    if finished.reason in ("end", "other", "tool_calls") and not exchange.has_content:
        return UpstreamProtocolError("the model gave an empty answer", kind="overloaded")
    return None


def _feedback(error: DragomanError) -> str:
    """Return what the retry tells the model about its invalid function call, if that was the error."""
    if isinstance(error, InvalidArguments):
        return f"Your last reply could not be used: {error.message}. Reply again."
    return _MALFORMED_CALL_FEEDBACK if "CALL" in error.code else ""
