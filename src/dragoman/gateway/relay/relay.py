"""Answer one generate request: send it upstream, forward the answer, and run gateway tools between rounds.

A request has one or more rounds, one per answer of the model: while the model calls gateway tools, their results go
into the next round. A round has one or more attempts, which are upstream calls: a failed attempt is repeated, perhaps
with another key, model or request form, until the client has received a part of its answer. The methods are in this
order: `run`, rounds, attempts, one attempt, and then what they share.

The translation is in `translation.exchange`, the choice of the next attempt in `attempt_plan`, the upstream call in
`upstream.generate`, and gateway tools in `gateway_tools.runner`.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from dragoman.dialects.base import ClientDialect, Reply
from dragoman.errors import DragomanError, UpstreamProtocolError
from dragoman.gateway.auth.authenticator import Caller
from dragoman.gateway.context import Gateway
from dragoman.gateway.gateway_tools.protocol import ExternalResults, ToolOutcome
from dragoman.gateway.gateway_tools.runner import GatewayToolRunner, open_tool_runner
from dragoman.gateway.limits.quota_meter import QuotaReservation
from dragoman.gateway.relay.attempt_plan import AttemptPlan, explain_rejection
from dragoman.gateway.response_writer import JSON_HEADERS, ResponseWriter
from dragoman.gateway.store_errors import ignore_store_errors
from dragoman.ir import Event, Finished, SealedSignature, ToolCall, Usage, unseal
from dragoman.store import StoreUnavailable
from dragoman.translation.argument_repair import InvalidArguments
from dragoman.translation.exchange import Exchange
from dragoman.translation.repair import HIDDEN_KEY_PREFIX, TEXT_KEY_PREFIX
from dragoman.upstream.client import UpstreamResponse
from dragoman.upstream.generate import raise_for_status

_log = logging.getLogger("dragoman")

_MALFORMED_CALL_FEEDBACK = (
    "Your last reply was not a valid function call. Reply again: call the functions exactly as declared."
)

#: Prefixes of store keys that need the caller's scope. Other keys contain tool call ids, which are unique.
_SCOPED_KEY_PREFIXES = (TEXT_KEY_PREFIX, HIDDEN_KEY_PREFIX)

#: Awaited with the finished exchange before the end of the response is sent.
OnAnswer = Callable[[Exchange], Awaitable[None]]


class Relay:
    """Answer one client request; create it with a decoded exchange and await `run()` once."""

    def __init__(
        self,
        gateway: Gateway,
        dialect: ClientDialect,
        exchange: Exchange,
        writer: ResponseWriter,
        caller: Caller,
        on_answer: OnAnswer | None = None,
        headers: Mapping[str, str] | None = None,
        reservation: QuotaReservation | None = None,
    ) -> None:
        self._gateway = gateway
        self._dialect = dialect
        self._exchange = exchange
        self._writer = writer
        self._recorder = writer.recorder
        self._caller = caller
        self._on_answer = on_answer
        self._headers = headers or {}
        self._reservation = reservation
        self._tool_runner: GatewayToolRunner | None = None  # None if no gateway tools are offered
        self._stream_prepared = False  # the writer may open the client's stream and keep it alive
        #: From the store, by key, for `Exchange.encode`: None if the store did not answer.
        self._stored_signatures: dict[str, SealedSignature] | None = None
        self._plan = AttemptPlan(gateway, caller, exchange.request)
        self._body = b""  # of the next upstream request; released when Google has accepted it
        self._status = 0  # HTTP status of the current attempt's upstream response; 0 if there is none
        self._committed = False  # the client has received bytes of this round, so it cannot be retried

    async def run(self) -> None:
        """Send the whole response, or the error that prevented it."""
        self._recorder.on_exchange(self._exchange)
        self._tool_runner = await open_tool_runner(
            self._gateway,
            self._exchange,
            self._caller,
            request_id=self._writer.request_id,
            headers=self._headers,
        )
        try:
            try:
                await self._run_rounds()
            finally:
                if self._tool_runner is not None:
                    await self._tool_runner.close()
            await self._finish()
        except DragomanError as error:
            # The exchange may keep this error: with a traceback it would keep all frames of the request alive, until
            # the garbage collector runs.
            await self._send_error(error.with_traceback(None))

    async def _finish(self) -> None:
        """Save what the next request needs, then send the end of the response."""
        exchange, runner = self._exchange, self._tool_runner
        rest = exchange.finish()
        if exchange.store_entries:
            await self._write_store()
        if runner is not None and runner.external_results is not None:
            await ignore_store_errors(runner.external_results.mark_delivered())
        if self._on_answer is not None:
            await self._on_answer(exchange)
        if exchange.request.stream:
            await self._writer.finish(rest)
        else:
            await self._writer.reply(Reply(200, rest, JSON_HEADERS))

    async def _run_rounds(self) -> None:
        """Send everything but the end of the response: run rounds until the model calls no gateway tool."""
        exchange, runner = self._exchange, self._tool_runner
        await self._prepare_first_round()
        while True:
            await self._run_attempts()
            calls = exchange.gateway_calls
            if runner is None or not calls:
                return
            outcomes = await self._run_tools(runner, calls)
            tool_usage = functools.reduce(Usage.plus, (outcome.usage for outcome in outcomes))
            if runner.external_results is not None and any(outcome.is_external for outcome in outcomes):
                exchange.summary.usage = exchange.summary.usage.plus(tool_usage)
                await self._suspend(runner, runner.external_results, outcomes, tool_usage)
                return
            exchange.add_results(
                [outcome.result for outcome in outcomes],
                found_tools=[tool for outcome in outcomes for tool in outcome.new_tools],
                stop_reason=runner.stop_reason,
                tool_usage=tool_usage,
            )
            if not exchange.needs_another_round:
                return
            if self._reservation is not None:
                await self._reservation.raise_for_next_round(exchange.summary.usage)
            self._encode()
            self._plan.begin_round()
            self._committed = False

    async def _prepare_first_round(self) -> None:
        """Encode the first request, with stored state and with results of calls of earlier answers."""
        exchange, runner = self._exchange, self._tool_runner
        if runner is not None:  # the request has other tools now, and the plan depends on them
            self._plan = AttemptPlan(self._gateway, self._caller, exchange.request)
        await self._read_store()
        if runner is not None and runner.external_results is not None:
            self._prepare_stream()  # keep the client's stream alive: missing results may take long
            resumed = await runner.external_results.resume()
            runner.tool_loop.resume(resumed.in_history, resumed.after_history)
        self._encode()
        self._writer.add_headers((("x-dragoman-notes", str(len(exchange.notes))), *exchange.headers))
        self._prepare_stream()
        if runner is not None:
            await self._write_events(runner.client_events)
            await self._run_approved_calls(runner)

    def _prepare_stream(self) -> None:
        """Let the writer open the stream after the grace period and keep it alive with pings."""
        if self._exchange.request.stream and not self._stream_prepared:
            self._stream_prepared = True
            content_type, grace_s = self._dialect.stream_type, self._dialect.opening_grace_s
            opening, ping_s = self._exchange.open(), self._gateway.config.server.ping_s
            self._writer.prepare_stream(
                content_type, opening, self._exchange.ping, grace_s=grace_s, ping_s=ping_s
            )

    async def _run_approved_calls(self, runner: GatewayToolRunner) -> None:
        """Run the calls of the last answer that the user has approved now; the model gets their results."""
        calls = runner.tool_loop.approved_calls
        if calls:
            outcomes = await self._run_tools(runner, calls, approved=True)
            results = [outcome.result for outcome in outcomes if outcome.result is not None]
            runner.tool_loop.set_approved_results(results)
            self._encode()

    async def _run_tools(
        self, runner: GatewayToolRunner, calls: Sequence[ToolCall], *, approved: bool = False
    ) -> list[ToolOutcome]:
        """Run calls of gateway tools and send their events to the client."""
        self._recorder.on_tool_start([call.name for call in calls])
        outcomes = await runner.run(calls, approved=approved)
        self._recorder.on_tool_end(calls, outcomes)
        await self._write_events([event for outcome in outcomes for event in outcome.client_events])
        return outcomes

    async def _suspend(
        self,
        runner: GatewayToolRunner,
        external_results: ExternalResults,
        outcomes: Sequence[ToolOutcome],
        tool_usage: Usage,
    ) -> None:
        """End the response at calls whose results come through the admin API, and store the calls first."""
        pairs = zip(self._exchange.gateway_calls, outcomes, strict=True)
        calls = [call for call, outcome in pairs if outcome.is_external]
        placeholder = runner.tool_loop.suspend(
            [outcome.result for outcome in outcomes],
            {call.id for call in calls},
            external_results.placeholder_text(calls),
            tool_usage,
        )
        await self._write_events(placeholder)
        await external_results.suspend(calls, *runner.tool_loop.build_record())

    async def _run_attempts(self) -> None:
        """Run one round: make attempts until one succeeds, or raise the error of the last one."""
        exchange, plan, recorder = self._exchange, self._plan, self._recorder
        while True:
            self._status = 0
            recorder.on_attempt_start(self._body)
            error = await self._run_attempt()
            recorder.on_attempt_end(plan.target, plan.key_name, self._status, error)
            await plan.record_outcome(error)
            if error is None:
                return
            wait_s = None if self._committed else plan.plan_next(error)
            if wait_s is None:
                raise error
            if plan.note is not None:
                exchange.replace_messages(exchange.request.messages, (plan.note,))
            await asyncio.sleep(wait_s)
            self._encode(_feedback(error))
            self._writer.add_headers((("x-dragoman-notes", str(len(exchange.notes))),))

    def _encode(self, feedback: str = "") -> None:
        """Encode the request for the next attempt's target, and report the model in response headers."""
        target, requested_model = self._plan.target, self._plan.requested_model
        self._body = self._exchange.encode(target, self._stored_signatures, feedback=feedback)
        self._writer.add_headers((("x-dragoman-model", target.model),))
        if target.model != requested_model:
            fallback = f"{requested_model} -> {target.model}"
            self._writer.add_headers((("x-dragoman-fallback", fallback),))

    async def _run_attempt(self) -> DragomanError | None:
        """Post the request and forward the answer; return the error, or None if the answer is usable."""
        gateway, exchange, plan = self._gateway, self._exchange, self._plan
        stream = exchange.request.stream
        url = gateway.endpoint.url(
            plan.target.model, "streamGenerateContent" if stream else "generateContent"
        )
        try:
            headers = await plan.headers()
            sent_s = time.monotonic()
            async with gateway.client.post(
                url, headers, self._body, stream=stream, within_s=plan.remaining_s
            ) as response:
                self._status = response.status
                self._recorder.upstream_wait_s += time.monotonic() - sent_s
                capture = self._recorder.capture
                await raise_for_status(response, capture.add_upstream_bytes if capture is not None else None)
                self._body = b""
                await self._forward(response)
        except DragomanError as error:
            if not exchange.has_finish:  # otherwise the answer is complete and only the connection broke
                return explain_rejection(error, self._body, plan.target)
        await self._write(exchange.end())
        return exchange.failure or _find_unusable(exchange)

    async def _forward(self, response: UpstreamResponse) -> None:
        """Translate the answer chunk by chunk and send it to the client, until its end or a failure."""
        exchange, recorder, capture = self._exchange, self._recorder, self._recorder.capture
        while exchange.failure is None:
            waiting_since_s = time.monotonic()
            data = await response.read_some()
            recorder.upstream_wait_s += time.monotonic() - waiting_since_s
            if not data:
                return
            if capture is not None:
                capture.add_upstream_bytes(data)
            await self._write(exchange.receive(data))
            if exchange.has_finish:
                response.shorten_timeout()

    async def _write(self, data: bytes) -> None:
        """Send bytes of the model's answer, after storing what a later request may look up for them."""
        if self._exchange.store_entries:
            await self._write_store()
        if data:
            self._committed = True
            await self._writer.write(data)

    async def _write_events(self, events: Sequence[Event]) -> None:
        """Send events that do not come from the model; the round can still be retried after them."""
        data = self._exchange.send_events(events) if events else b""
        if data:
            await self._writer.write(data)

    async def _send_error(self, error: DragomanError) -> None:
        """Report an error inside the stream if it is open or the dialect demands it, else as HTTP status."""
        error = self._gateway.redactor.redact_error(error)
        self._recorder.on_error(error)
        in_stream = self._exchange.request.stream and error.kind in self._dialect.fails_in_stream
        if self._writer.started or in_stream:
            await self._writer.finish(self._exchange.fail(error))
        else:
            await self._writer.reply(self._dialect.encode_error(error))

    async def _read_store(self) -> None:
        """Read signatures and hidden tool rounds from the store that the client's history does not carry."""
        exchange, tool_loop = self._exchange, self._exchange.tool_loop
        hidden_keys = tool_loop.places if tool_loop is not None else {}
        keys = {self._store_key(key): key for key in (*exchange.missing_keys, *hidden_keys)}
        if not keys:
            self._stored_signatures = {}
            return
        try:
            entries = await self._gateway.store.get_values(keys)
        except StoreUnavailable as error:
            _log.warning("%s; signatures the client did not keep are replaced by Google's sentinel", error)
            return
        values = {keys[key]: value for key, value in entries.items()}
        if tool_loop is not None:
            tool_loop.set_stored_rounds({key: values.pop(key) for key in hidden_keys if key in values})
        self._stored_signatures = {
            key: sealed for key, value in values.items() if (sealed := unseal(value)) is not None
        }

    async def _write_store(self) -> None:
        """Store signatures and hidden rounds before the client gets the bytes that refer to them."""
        entries, self._exchange.store_entries = self._exchange.store_entries, []
        self._writer.pings_paused = True
        try:
            await self._gateway.store.set_values([(self._store_key(key), value) for key, value in entries])
        except StoreUnavailable as error:
            _log.warning("%s; a client that drops thinking will need Google's sentinel", error)
        finally:
            self._writer.pings_paused = False

    def _store_key(self, key: str) -> str:
        """Scope keys that are derived from text: callers who send the same text must not share state."""
        return f"{self._caller.scope}/{key}" if key.startswith(_SCOPED_KEY_PREFIXES) else key


def _find_unusable(exchange: Exchange) -> DragomanError | None:
    """Return an error for a malformed call or an empty answer: neither is a success (known problems D1, D2, D5)."""
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
