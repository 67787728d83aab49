"""The way to Google for one client request: which key, which model, in which form; and what next when it fails."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence

import msgspec

from dragoman.dialects.base import Target
from dragoman.errors import DragomanError, ErrorKind, UpstreamError, UpstreamGarbage
from dragoman.ir import Request
from dragoman.notes import Note
from dragoman.server.auth import Caller
from dragoman.server.gateway import Gateway
from dragoman.upstream.breaker import Breaker
from dragoman.upstream.keys import NO_KEY
from dragoman.upstream.retry import Step, next_step

#: What Google complained about -> the form of the same request that may please it, once (pains A12, B12, C11, I2).
_CURES: dict[str, dict[str, bool]] = {
    "pairing": {"told_history": True},
    "schema_form": {"proto_schemas": True},
    "signature": {"trust_signatures": False},
    "states": {"relaxed_schemas": True},
    "thinking": {"own_thinking": True},
    "tool_mix": {"unmixed_tools": True},
}
#: The same, for people: what was changed and how.
_HEALED: dict[str, tuple[str, str]] = {
    "field": ("request", "without a field that this back end does not know"),
    "pairing": ("messages", "with the calls and results told as text"),
    "schema_form": ("tools", "with the schemas in the older form"),
    "signature": ("messages", "without the signatures"),
    "states": ("tools", "with fewer rules in the schemas"),
    "thinking": ("thinking", "with the thinking that is the model's own"),
    "tool_mix": ("tools", "without tools that do not go together"),
}
_MOST_FIELDS = 3  # that a back end may not know before it is another one
_DOWN: frozenset[ErrorKind] = frozenset({"overloaded", "internal", "timeout"})


class Way:
    """`target` is where the next attempt goes; all attempts share one budget of seconds, their waits and themselves."""

    _breaker: Breaker  # of the attempt that runs

    def __init__(self, gateway: Gateway, caller: Caller, request: Request) -> None:
        self._gateway = gateway
        self._caller = caller
        self._request = request
        self.target = gateway.target(request.model, request.tools)
        self.wanted = self.target.model
        self._others: Sequence[str] = gateway.fallbacks(self.wanted)
        self._key = NO_KEY
        self.note: Note | None = None  # of a refusal that the next attempt takes into account
        self._budget = gateway.budget
        self._attempt = 1
        self._until_s = time.monotonic() + gateway.config.upstream.total_timeout_s

    @property
    def left_s(self) -> float:
        """For all that is still to come."""
        return max(0.0, self._until_s - time.monotonic())

    def begin(self) -> None:
        """A round with the model: attempts are counted anew, seconds are not."""
        attempts = self._gateway.budget.attempts
        if self._budget.attempts != attempts:
            self._budget = msgspec.structs.replace(self._budget, attempts=attempts)
        self._attempt = 1

    async def headers(self) -> Mapping[str, str]:
        """Credentials for an attempt; an error if it would be in vain, which is no key's fault."""
        self._key = NO_KEY
        model = self.target.model
        breaker = self._breaker = self._gateway.breaker(model)
        wait_s = breaker.wait_s(time.monotonic())
        if wait_s:
            why = f"{model} has failed again and again; it is left alone for a moment"
            raise UpstreamError(why, kind="overloaded", retry_after_s=wait_s, code="breaker")
        if self._caller.google_key:
            return {"x-goog-api-key": self._caller.google_key}
        try:
            keys = self._gateway.keys
            self._key = keys.only or await keys.pick(self._request.session, model)
            return await self._gateway.auth_headers(self._key)
        except BaseException:
            breaker.unasked(time.monotonic())
            raise

    @property
    def key_name(self) -> str:
        return self._key.name

    async def learn(self, error: DragomanError | None) -> None:
        """How an attempt went that `headers` began, for this request's next one and for everybody's."""
        breaker = self._breaker
        if error is None:
            breaker.succeeded()
            if self.target.proto_schemas:
                self._gateway.learn(self.target, self._request.tools)
        elif error.kind in _DOWN and error.code != "breaker" and not isinstance(error, UpstreamGarbage):
            breaker.failed(time.monotonic())
        elif error.status is not None or isinstance(error, UpstreamGarbage):  # refused, but by somebody
            breaker.succeeded()
        if self._key.secret and self._gateway.keys.only is None:
            await self._gateway.keys.report(self._key, self.target.model, error)

    def next(self, error: DragomanError) -> float | None:
        """Seconds to wait before the next attempt, whose target is set; None to give up."""
        healed = _heal(error, self.target)
        self.note = _tell(error) if healed is not None else None
        step = Step() if healed is not None else self._step(error)
        if step is None or step.wait_s >= self.left_s:
            return None
        self._budget, self._attempt = self._budget.after(step.wait_s), self._attempt + 1
        if step.change == "model":
            other, *self._others = self._others
            self.target = self._gateway.target(other, self._request.tools)
            self._attempt = 1
        self.target = healed or self.target
        return step.wait_s

    def _step(self, error: DragomanError) -> Step | None:
        return next_step(
            error,
            self._attempt,
            self._budget,
            random.random(),  # noqa: S311 (jitter)
            other_key=bool(self._key.secret) and self._gateway.keys.has_other(self.target.model, self._key),
            other_model=bool(self._others),
        )


def _tell(error: DragomanError) -> Note:
    where, how = _HEALED[error.code]
    return Note("repaired", where, f"Google refused the request; it was sent again {how}")


def _heal(error: DragomanError, target: Target) -> Target | None:
    if error.code == "field" and isinstance(error, UpstreamError) and len(target.without) < _MOST_FIELDS:
        without = tuple(dict.fromkeys((*target.without, error.place)))
        healed = msgspec.structs.replace(target, without=without)
    else:
        healed = msgspec.structs.replace(target, **_CURES.get(error.code, {}))
    return healed if healed != target else None
