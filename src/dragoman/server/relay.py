"""Drives one exchange: sends upstream, passes the answer on, tries again while nothing has been said."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

import msgspec

from dragoman.dialects.base import ClientDialect, Reply, Target
from dragoman.errors import DragomanError, UpstreamGarbage
from dragoman.exchange import Exchange, InvalidArguments
from dragoman.ir import Finished, Sealed, unseal
from dragoman.repair import TEXT_KEY
from dragoman.server.auth import Caller
from dragoman.server.gateway import Gateway
from dragoman.server.http import JSON_HEADERS, Outlet
from dragoman.store import StoreUnavailable
from dragoman.upstream.hosts import Method
from dragoman.upstream.retry import wait_before_retry

_log = logging.getLogger("dragoman")

#: How long a stream waits for Google's status before it opens by itself.
OPENING_GRACE_S = 0.4

_MALFORMED = (
    "Your last reply was not a valid function call. Reply again: call the functions exactly as declared."
)

#: What Google complained about -> the form of the same request that may please it, once (pains A12, B12, I2).
_CURES: dict[str, dict[str, bool]] = {
    "schema_form": {"proto_schemas": True},
    "signature": {"trust_signatures": False},
    "thinking": {"own_thinking": True},
}


#: Called with the finished exchange before the client learns that it is finished.
OnAnswer = Callable[[Exchange], Awaitable[None]]


class Relay:
    """One client request on its way."""

    def __init__(
        self,
        gateway: Gateway,
        dialect: ClientDialect,
        exchange: Exchange,
        outlet: Outlet,
        caller: Caller,
        on_answer: OnAnswer | None = None,
    ) -> None:
        self._gateway = gateway
        self._dialect = dialect
        self._exchange = exchange
        self._outlet = outlet
        self._caller = caller
        self._on_answer = on_answer
        self._target = gateway.target(exchange.request.model, exchange.request.tools)
        self._body = b""
        self._committed = False  # the client has seen something of the answer: nothing can be taken back

    async def run(self) -> None:
        exchange, outlet, gateway = self._exchange, self._outlet, self._gateway
        recalled = await self._recall()
        self._body = exchange.encode(self._target, recalled)
        outlet.add_headers(
            (("x-dragoman-model", self._target.model), ("x-dragoman-notes", str(len(exchange.notes))))
        )
        if exchange.request.stream:
            opening = exchange.open()
            ping_s = gateway.config.server.ping_s
            kind = self._dialect.stream_type
            outlet.prepare_stream(kind, opening, exchange.ping, grace_s=OPENING_GRACE_S, ping_s=ping_s)
        error = await self._attempts(recalled)
        if error is not None:
            await self._fail(error)
            return
        rest = exchange.finish()
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

    async def _attempts(self, recalled: dict[str, Sealed]) -> DragomanError | None:
        budget = self._gateway.budget()
        attempt = 1
        while True:
            error = await self._attempt()
            if error is None:
                self._gateway.learn(self._target, self._exchange.request.tools)
            if error is None or self._committed:
                return error
            healed = _heal(error, self._target)
            wait = 0.0 if healed is not None else wait_before_retry(error, attempt, budget, random.random())  # noqa: S311 (jitter)
            if wait is None:
                return error
            await asyncio.sleep(wait)
            self._target = healed or self._target
            self._body = self._exchange.encode(self._target, recalled, feedback=_feedback(error))
            budget, attempt = budget.after(wait), attempt + 1

    async def _attempt(self) -> DragomanError | None:
        """One call of the upstream; None if the answer is good."""
        exchange = self._exchange
        stream = exchange.request.stream
        method: Method = "streamGenerateContent" if stream else "generateContent"
        url = self._gateway.host.url(self._target.model, method)
        try:
            headers = await self._gateway.auth_headers(self._caller)
            async with self._gateway.client.post(url, headers, self._body, stream=stream) as answer:
                if answer.status != 200:
                    return exchange.upstream.decode_error(answer.status, answer.headers, await answer.read())
                self._body = b""
                while data := await answer.read_some():
                    out = exchange.receive(data)
                    if exchange.memories:
                        await self._remember()
                    if out:
                        self._committed = True
                        await self._outlet.write(out)
                    if exchange.failure is not None:
                        return exchange.failure
        except DragomanError as error:
            return error
        out = exchange.end()
        await self._remember()
        if out:
            self._committed = True
            await self._outlet.write(out)
        return exchange.failure or _unusable(exchange)

    async def _recall(self) -> dict[str, Sealed]:
        wanted = {self._kept_as(key): key for key in self._exchange.wanted}
        if not wanted:
            return {}
        try:
            found = await self._gateway.store.recall(wanted)
        except StoreUnavailable as error:
            _log.warning("%s; signatures the client did not keep are replaced by Google's sentinel", error)
            return {}
        return {wanted[key]: sealed for key, word in found.items() if (sealed := unseal(word)) is not None}

    def _kept_as(self, key: str) -> str:
        """Two callers may say the same words: what the model thought for one is not brought to the other."""
        return f"{self._caller.scope}/{key}" if key.startswith(TEXT_KEY) else key

    async def _remember(self) -> None:
        """What the answer taught us is safe before the bytes that need it leave."""
        memories, self._exchange.memories = self._exchange.memories, []
        if not memories:
            return
        try:
            await self._gateway.store.remember([(self._kept_as(key), word) for key, word in memories])
        except StoreUnavailable as error:
            _log.warning("%s; a client that drops thinking will need Google's sentinel", error)

    async def _fail(self, error: DragomanError) -> None:
        # Kinds only: the words may quote what a user wrote.
        _log.warning(
            "%s: %s failed: %s (HTTP %s)",
            self._outlet.request_id,
            self._target.model,
            error.kind,
            error.status,
        )
        in_stream = self._exchange.request.stream and error.kind in self._dialect.fails_in_stream
        if self._outlet.started or in_stream:
            await self._outlet.finish(self._exchange.fail(error))
        else:
            await self._outlet.reply(self._dialect.encode_error(error))


def _unusable(exchange: Exchange) -> DragomanError | None:
    """An aborted call or an empty answer must not look like success (pains D1, D2, D5)."""
    finished = exchange.finished or Finished(reason="malformed", raw="no finish reason")
    if finished.reason == "malformed":
        why = f"Gemini stopped with {finished.raw}. {finished.detail}".strip()
        return UpstreamGarbage(why, kind="overloaded", code=finished.raw)
    if finished.reason in ("end", "other") and not exchange.has_content:
        return UpstreamGarbage("the model gave an empty answer", kind="overloaded")
    return None


def _feedback(error: DragomanError) -> str:
    if isinstance(error, InvalidArguments):
        return f"Your last reply could not be used: {error.message}. Reply again."
    return _MALFORMED if "CALL" in error.code else ""


def _heal(error: DragomanError, target: Target) -> Target | None:
    cure = _CURES.get(error.code)
    if cure is None:
        return None
    healed = msgspec.structs.replace(target, **cure)
    return healed if healed != target else None
