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

from dragoman.emulator.direct import Asked, Scene
from dragoman.emulator.refusal import Refusal
from dragoman.emulator.script.compose import compose_chunks, compose_http, compose_reply, pace
from dragoman.emulator.script.load import Loaded
from dragoman.emulator.script.match import View, decode_base64, differences, shorten
from dragoman.emulator.script.model import Script, Step, When
from dragoman.emulator.script.troubles import faults_of

_GENERATING = ("generate", "stream")
_MOST_SHOWN = 3
_MOST_KEPT = 1000  # failures; limits the memory of a long-running emulator
_ANY = When()
_SIGNATURE = re.compile(r'"thought_?[sS]ignature"\s*:\s*("(?:[^"\\]|\\.)*")')


class _Entry:
    """A step and the number of times that it was played."""

    def __init__(self, step: Step, number: int, line: int) -> None:
        self.step = step
        self.used = 0
        name = f" {step.name!r}" if step.name else ""
        self.label = f"step {number}{name}" + (f" (line {line})" if line else "")

    @property
    def open(self) -> bool:
        return self.step.times == "always" or self.used < self.step.times

    @property
    def unused(self) -> str:
        """The message for a step that was played less often than required, or ""."""
        wanted = 1 if self.step.times == "always" else self.step.times
        if self.step.optional or self.used >= wanted:
            return ""
        return f"{self.label} was " + (f"used {self.used} of {wanted} times" if self.used else "never used")

    def differences(self, view: View) -> list[str]:
        when = self.step.when or _ANY
        if when.method is None and view.method not in _GENERATING:
            return [f"method: expected {' or '.join(_GENERATING)}, got {view.method}"]
        return differences(when, view)


class Player:
    """A director that plays scripts. It is thread-safe, and steps can be added at any time."""

    def __init__(self, *loaded: Loaded) -> None:
        self._lock = threading.Lock()
        self._entries: list[_Entry] = []
        self._signatures: set[bytes] = set()
        self._failures: list[str] = []
        self._refusals: deque[str] = deque(maxlen=_MOST_SHOWN)
        self._number = 0
        self.otherwise: Literal["model", "refuse"] = "model"
        self.validate = True
        for one in loaded:
            self.add(one)

    def add(self, loaded: Loaded) -> None:
        """Add a script. Its settings replace those of earlier scripts."""
        with self._lock:
            for step, line in zip(loaded.script.steps, loaded.lines, strict=True):
                self._entries.append(_Entry(step, len(self._entries) + 1, line))
            self._signatures |= set(signatures_of(loaded.script))
            self.otherwise = loaded.script.otherwise
            self.validate = loaded.script.validate

    def add_step(self, step: Step) -> None:
        with self._lock:
            self._entries.append(_Entry(step, len(self._entries) + 1, 0))
            self._signatures |= set(signatures_of(Script(steps=[step])))

    def direct(self, asked: Asked) -> Scene:
        with self._lock:
            if asked.problem is not None and self.validate:
                return Scene(on_refused=self._refusals.append)
            self._number += 1
            view = View(asked, self._number)
            entry = next((one for one in self._entries if one.open and not one.differences(view)), None)
            if entry is not None:
                entry.used += 1
                self._check(entry, view)
            scene = self._unscripted(view) if entry is None else self._scene(entry.step, asked)
            return msgspec.structs.replace(scene, on_refused=partial(self._undo, entry))

    def problems(self) -> list[str]:
        """Return how the requests deviated from the scripts so far."""
        with self._lock:
            unused = [entry.unused for entry in self._entries if entry.unused]
            refusals = [f"a request was refused: {message}" for message in self._refusals] if unused else []
            return [*self._failures, *unused, *refusals]

    def _undo(self, entry: _Entry | None, message: str) -> None:
        """Undo the selection of a step, because validation rejected the request."""
        with self._lock:
            self._refusals.append(message)
            self._number -= 1
            if entry is not None:
                entry.used -= 1

    def _scene(self, step: Step, asked: Asked) -> Scene:
        scene = Scene(
            pace=pace(step),
            faults=faults_of(step),
            validate=self.validate,
            signatures=frozenset(self._signatures),
        )
        if step.http is not None:
            return msgspec.structs.replace(scene, answer=compose_http(step.http))
        if step.chunks is not None:
            return msgspec.structs.replace(scene, answer=compose_chunks(step.chunks, asked))
        if step.reply is not None:
            return msgspec.structs.replace(scene, chunks=compose_reply(step, asked.request))
        return scene

    def _check(self, entry: _Entry, view: View) -> None:
        found = differences(entry.step.expect, view) if entry.step.expect is not None else []
        if found:
            raise self._failure(f"{entry.label}: {'; '.join(found)}")

    def _unscripted(self, view: View) -> Scene:
        if self.otherwise == "model":
            return Scene(validate=self.validate, signatures=frozenset(self._signatures))
        tried = [f"{one.label}: {'; '.join(one.differences(view))}" for one in self._entries if one.open]
        why = "\n".join(f"  {line}" for line in tried[:_MOST_SHOWN])
        left = f"what is left:\n{why}" if tried else f"all {len(self._entries)} steps are used up"
        said = f"saying {shorten(view.words)}" if view.words else "without words"
        raise self._failure(
            f"no step fits request {self._number}, a {view.method} of {view.model} {said}; {left}"
        )

    def _failure(self, what: str) -> Refusal:
        message = f"emulator script: {what}"
        if len(self._failures) < _MOST_KEPT:
            self._failures.append(message)
        return Refusal(message, status="FAILED_PRECONDITION")


def signatures_of(script: Script) -> Iterator[bytes]:
    """Yield the thought signatures in a script. Clients that receive them send them back."""
    for step in script.steps:
        for text in _texts(step):
            for found in _SIGNATURE.finditer(text):
                decoded = decode_base64(_unescape(found[1]))
                if decoded:
                    yield decoded


def _texts(step: Step) -> Iterator[str]:
    if step.http is not None:
        yield compose_http(step.http).body.decode("utf-8", "replace")
    for bit in step.chunks or ():
        yield bit.raw or msgspec.json.encode(bit).decode()


def _unescape(literal: str) -> str:
    try:
        return str(json.loads(literal, strict=False))
    except ValueError:
        return ""
