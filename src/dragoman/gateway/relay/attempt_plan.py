"""The upstream attempts of one request: key, model, request form, and the next step after a failure.

Separate from the relay because requests that the gateway makes itself (`gateway_tools.google_tools`) and token counts
choose keys and models in the same way.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence

import msgspec

from dragoman.dialects.base import Target
from dragoman.errors import DragomanError, ErrorKind, UpstreamError, UpstreamProtocolError
from dragoman.gateway.auth.authenticator import Caller
from dragoman.gateway.context import Gateway
from dragoman.ir import Request
from dragoman.notes import Note
from dragoman.upstream.breaker import CircuitBreaker
from dragoman.upstream.keys import NO_KEY
from dragoman.upstream.retry import RetryStep, next_step

#: Code of Google's error -> changes of the target for one more attempt (known problems A12, B12, C11, I2).
REQUEST_FALLBACKS: dict[str, dict[str, bool]] = {
    "pairing": {"history_as_text": True},
    "schema_form": {"proto_schemas": True},
    "signature": {"trust_signatures": False},
    "states": {"relaxed_schemas": True},
    "thinking": {"own_thinking": True},
    "tool_mix": {"unmixed_tools": True},
}
#: Code of Google's error -> place and text of the note that tells users what was changed.
_REPAIR_NOTES: dict[str, tuple[str, str]] = {
    "field": ("request", "without a field that this back end does not know"),
    "pairing": ("messages", "with the calls and results told as text"),
    "schema_form": ("tools", "with the schemas in the older form"),
    "signature": ("messages", "without the signatures"),
    "states": ("tools", "with fewer rules in the schemas"),
    "thinking": ("thinking", "with the thinking that is the model's own"),
    "tool_mix": ("tools", "without tools that do not go together"),
}
_MAX_DIAGNOSIS_CHARACTERS = 500
_MAX_DROPPED_FIELDS = 3  # fields unknown to the backend that are removed one by one before giving up
_BACKEND_FAILURES: frozenset[ErrorKind] = frozenset({"overloaded", "internal", "timeout"})


class AttemptPlan:
    """The attempts of one request: `headers()`, then the upstream call, then `record_outcome()` and `plan_next()`.

    `target` is the target of the next attempt. All attempts and the waits between them share one time limit,
    `upstream.total_timeout_s`.
    """

    _breaker: CircuitBreaker  # the circuit breaker of the current attempt

    def __init__(self, gateway: Gateway, caller: Caller, request: Request) -> None:
        self._gateway = gateway
        self._caller = caller
        self._request = request
        self.target = gateway.target(request.model, request.tools)
        self.requested_model = self.target.model
        self._fallback_models: Sequence[str] = gateway.fallbacks(self.requested_model)
        self._key = NO_KEY
        self.note: Note | None = None  # how the next attempt differs because Google rejected the last one
        self._budget = gateway.retry_budget
        self._attempt = 1
        self._deadline_s = time.monotonic() + gateway.config.upstream.total_timeout_s

    @property
    def remaining_s(self) -> float:
        """Seconds left for all further attempts and waits."""
        return max(0.0, self._deadline_s - time.monotonic())

    def begin_round(self) -> None:
        """Begin another round with the model: reset the number of attempts, but not the time limit."""
        attempts = self._gateway.retry_budget.attempts
        if self._budget.attempts != attempts:
            self._budget = msgspec.structs.replace(self._budget, attempts=attempts)
        self._attempt = 1

    async def headers(self) -> Mapping[str, str]:
        """Return credentials for an attempt; raise UpstreamError while the circuit breaker is open."""
        self._key = NO_KEY
        model = self.target.model
        breaker = self._breaker = self._gateway.breaker(model)
        wait_s = breaker.acquire(time.monotonic())
        if wait_s:
            why = f"{model} has failed again and again; it is left alone for a moment"
            raise UpstreamError(why, kind="overloaded", retry_after_s=wait_s, code="breaker")
        if self._caller.google_key:
            return {"x-goog-api-key": self._caller.google_key}
        try:
            keys = self._gateway.key_pool
            self._key = keys.single_key or await keys.pick(self._request.session, model)
            return await self._gateway.auth_headers(self._key)
        except BaseException:
            breaker.release(time.monotonic())
            raise

    @property
    def key_name(self) -> str:
        return self._key.name

    async def record_outcome(self, error: DragomanError | None) -> None:
        """Report the outcome of the attempt to the circuit breaker, the key pool and the schema memory."""
        breaker = self._breaker
        if error is None:
            breaker.record_success()
            if self.target.proto_schemas:
                self._gateway.remember_schema_form(self.target, self._request.tools)
        elif (
            error.kind in _BACKEND_FAILURES
            and error.code != "breaker"
            and not isinstance(error, UpstreamProtocolError)
        ):
            breaker.record_failure(time.monotonic())
        elif error.status is not None or isinstance(error, UpstreamProtocolError):  # the backend answered
            breaker.record_success()
        if self._key.secret and self._gateway.key_pool.single_key is None:
            await self._gateway.key_pool.report(self._key, self.target.model, error)

    def plan_next(self, error: DragomanError) -> float | None:
        """Set `target` for the next attempt and return the seconds to wait before it; None to give up."""
        repaired = _repair_target(error, self.target)
        self.note = _repair_note(error) if repaired is not None else None
        step = RetryStep() if repaired is not None else self._next_step(error)
        if step is None or step.wait_s >= self.remaining_s:
            return None
        self._budget, self._attempt = self._budget.after(step.wait_s), self._attempt + 1
        if step.change == "model":
            fallback, *self._fallback_models = self._fallback_models
            self.target = self._gateway.target(fallback, self._request.tools)
            self._attempt = 1
        self.target = repaired or self.target
        return step.wait_s

    def _next_step(self, error: DragomanError) -> RetryStep | None:
        return next_step(
            error,
            self._attempt,
            self._budget,
            random.random(),  # noqa: S311 (jitter)
            other_key=bool(self._key.secret)
            and self._gateway.key_pool.has_other(self.target.model, self._key),
            other_model=bool(self._fallback_models),
        )


def explain_rejection(error: DragomanError, body: bytes, target: Target) -> DragomanError:
    """Return the same error; if it is Google's bare "invalid argument", append what is wrong with `body`.

    The emulator's strict checks find that (known problem C11). The emulator is large and imported only when needed.
    """
    if error.code == "opaque":
        from dragoman.emulator.validate import diagnose

        problem = diagnose(body, target.model, vertex=target.backend == "vertex")[:_MAX_DIAGNOSIS_CHARACTERS]
        says = f"says: {problem}" if problem else "finds nothing wrong with it"
        error.message = f"{error.message} Dragoman's own check {says}"
        error.args = (error.message,)
    return error


def _repair_note(error: DragomanError) -> Note:
    where, change = _REPAIR_NOTES[error.code]
    return Note("repaired", where, f"Google refused the request; it was sent again {change}")


def _repair_target(error: DragomanError, target: Target) -> Target | None:
    """Return a target that avoids Google's complaint; None if there is none, or it was tried already."""
    if (
        error.code == "field"
        and isinstance(error, UpstreamError)
        and len(target.omit_fields) < _MAX_DROPPED_FIELDS
    ):
        omit_fields = tuple(dict.fromkeys((*target.omit_fields, error.place)))
        repaired = msgspec.structs.replace(target, omit_fields=omit_fields)
    else:
        repaired = msgspec.structs.replace(target, **REQUEST_FALLBACKS.get(error.code, {}))
    return repaired if repaired != target else None
