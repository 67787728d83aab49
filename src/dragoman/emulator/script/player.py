"""The director that plays scripts: it selects a step for each request and records deviations."""

from __future__ import annotations

import json
import re
import threading
from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Literal

import msgspec

from dragoman.emulator.director import ApiRequest, ResponsePlan
from dragoman.emulator.errors import ApiError
from dragoman.emulator.script.load import LoadedScript
from dragoman.emulator.script.match import RequestView, decode_base64, differences, quote_text
from dragoman.emulator.script.model import Conditions, Script, ScriptStep
from dragoman.emulator.script.step_response import (
    compose_chunks,
    compose_http,
    compose_reply,
    faults_of,
    make_pacer,
)

_GENERATING = ("generate", "stream")
_MAX_SHOWN = 3
_MAX_FAILURES = 1000  # failures; limits the memory of a long-running emulator
_ANY = Conditions()
_SIGNATURE = re.compile(r'"thought_?[sS]ignature"\s*:\s*("(?:[^"\\]|\\.)*")')


class _StepState:
    """A step and the number of times that it was played."""

    def __init__(self, step: ScriptStep, number: int, line: int) -> None:
        self.step = step
        self.used = 0
        name = f" {step.name!r}" if step.name else ""
        self.label = f"step {number}{name}" + (f" (line {line})" if line else "")

    @property
    def is_available(self) -> bool:
        return self.step.times == "always" or self.used < self.step.times

    @property
    def unused_message(self) -> str:
        """The message for a step that was played less often than required, or ""."""
        wanted = 1 if self.step.times == "always" else self.step.times
        if self.step.optional or self.used >= wanted:
            return ""
        return f"{self.label} was " + (f"used {self.used} of {wanted} times" if self.used else "never used")

    def differences(self, view: RequestView) -> list[str]:
        when = self.step.when or _ANY
        if when.method is None and view.method not in _GENERATING:
            return [f"method: expected {' or '.join(_GENERATING)}, got {view.method}"]
        return differences(when, view)


class ScriptPlayer:
    """A director that plays scripts. It is thread-safe, and steps can be added at any time."""

    def __init__(self, *loaded: LoadedScript) -> None:
        self._lock = threading.Lock()
        self._entries: list[_StepState] = []
        self._signatures: set[bytes] = set()
        self._failures: list[str] = []
        self._refusals: deque[str] = deque(maxlen=_MAX_SHOWN)
        self._number = 0
        self.otherwise: Literal["model", "refuse"] = "model"
        self.validate = True
        for one in loaded:
            self.add(one)

    def add(self, loaded: LoadedScript) -> None:
        """Add a script. Its settings replace those of earlier scripts."""
        with self._lock:
            for step, line in zip(loaded.script.steps, loaded.lines, strict=True):
                self._entries.append(_StepState(step, len(self._entries) + 1, line))
            self._signatures |= set(signatures_of(loaded.script))
            self.otherwise = loaded.script.otherwise
            self.validate = loaded.script.validate

    def add_step(self, step: ScriptStep) -> None:
        with self._lock:
            self._entries.append(_StepState(step, len(self._entries) + 1, 0))
            self._signatures |= set(signatures_of(Script(steps=[step])))

    def plan_response(self, api_request: ApiRequest) -> ResponsePlan:
        with self._lock:
            if api_request.error is not None and self.validate:
                return ResponsePlan(on_rejected=self._refusals.append)
            self._number += 1
            view = RequestView(api_request, self._number)
            entry = next(
                (one for one in self._entries if one.is_available and not one.differences(view)), None
            )
            if entry is not None:
                entry.used += 1
                self._check_expectations(entry, view)
            plan = self._unscripted(view) if entry is None else self._plan_step(entry.step, api_request)
            return msgspec.structs.replace(plan, on_rejected=partial(self._undo, entry))

    def problems(self) -> list[str]:
        """Return how the requests deviated from the scripts so far."""
        with self._lock:
            unused = [entry.unused_message for entry in self._entries if entry.unused_message]
            refusals = [f"a request was refused: {message}" for message in self._refusals] if unused else []
            return [*self._failures, *unused, *refusals]

    def _undo(self, entry: _StepState | None, message: str) -> None:
        """Undo the selection of a step, because validation rejected the request."""
        with self._lock:
            self._refusals.append(message)
            self._number -= 1
            if entry is not None:
                entry.used -= 1

    def _plan_step(self, step: ScriptStep, api_request: ApiRequest) -> ResponsePlan:
        plan = ResponsePlan(
            pace=make_pacer(step),
            faults=faults_of(step),
            validate=self.validate,
            signatures=frozenset(self._signatures),
        )
        if step.http is not None:
            return msgspec.structs.replace(plan, response=compose_http(step.http))
        if step.chunks is not None:
            return msgspec.structs.replace(plan, response=compose_chunks(step.chunks, api_request))
        if step.reply is not None:
            return msgspec.structs.replace(plan, chunks=compose_reply(step, api_request.request))
        return plan

    def _check_expectations(self, entry: _StepState, view: RequestView) -> None:
        found = differences(entry.step.expect, view) if entry.step.expect is not None else []
        if found:
            raise self._failure(f"{entry.label}: {'; '.join(found)}")

    def _unscripted(self, view: RequestView) -> ResponsePlan:
        if self.otherwise == "model":
            return ResponsePlan(validate=self.validate, signatures=frozenset(self._signatures))
        tried = [
            f"{one.label}: {'; '.join(one.differences(view))}" for one in self._entries if one.is_available
        ]
        why = "\n".join(f"  {line}" for line in tried[:_MAX_SHOWN])
        left = f"what is left:\n{why}" if tried else f"all {len(self._entries)} steps are used up"
        said = f"saying {quote_text(view.user_text)}" if view.user_text else "without words"
        raise self._failure(
            f"no step fits request {self._number}, a {view.method} of {view.model} {said}; {left}"
        )

    def _failure(self, what: str) -> ApiError:
        message = f"emulator script: {what}"
        if len(self._failures) < _MAX_FAILURES:
            self._failures.append(message)
        return ApiError(message, status="FAILED_PRECONDITION")


def signatures_of(script: Script) -> Iterator[bytes]:
    """Yield the thought signatures in a script. Clients that receive them send them back."""
    for step in script.steps:
        for text in _texts(step):
            for found in _SIGNATURE.finditer(text):
                decoded = decode_base64(_unescape(found[1]))
                if decoded:
                    yield decoded


def _texts(step: ScriptStep) -> Iterator[str]:
    if step.http is not None:
        yield compose_http(step.http).body.decode("utf-8", "replace")
    for bit in step.chunks or ():
        yield bit.raw or msgspec.json.encode(bit).decode()


def _unescape(literal: str) -> str:
    try:
        return str(json.loads(literal, strict=False))
    except ValueError:
        return ""
