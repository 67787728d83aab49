"""Clients that talk through the library to the emulator, in one process and without a loop."""

from __future__ import annotations

import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from dragoman.dialects.base import ClientDialect, Target
from dragoman.emulator import create_emulator
from dragoman.ir import SealedSignature, unseal
from dragoman.translation.exchange import Exchange

Json = dict[str, Any]
Slices = Callable[[bytes], list[bytes]]
Heard = TypeVar("Heard")

MODELS = (
    "gemini-2.5-flash",
    "gemini-3-flash-preview",
    "gemini-3.1-pro-preview",
    "gemini-3.6-flash",
    "gemini-3.8-flash",
    "gemini-4-argon",
    "gemini-flash-latest",
)
SENTINEL = "skip_thought_signature_validator"

_EMULATOR = create_emulator(seed="play")
_SURFACES = {"gemini": "/v1beta/models", "vertex": "/v1beta1/publishers/google/models"}


def ask(model: str, body: bytes, *, stream: bool = True, backend: str = "gemini") -> tuple[int, bytes]:
    """The emulator's status and body; the app awaits nothing but us, so one step runs it to its end."""
    method, query = ("streamGenerateContent", b"alt=sse") if stream else ("generateContent", b"")
    sent: list[Any] = []

    async def receive() -> Json:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": f"{_SURFACES[backend]}/{model}:{method}",
        "query_string": query,
        "headers": [(b"content-type", b"application/json")],
    }
    app = _EMULATOR(scope, receive, send)
    with suppress(StopIteration):
        app.send(None)  # type: ignore[attr-defined]
    return sent[0]["status"], b"".join(message["body"] for message in sent[1:])


def refusal(model: str, body: bytes, backend: str = "gemini") -> str:
    """Why the emulator does not take this request; empty if it does."""
    status, answer = ask(model, body, backend=backend)
    return "" if status == 200 else f"{model}: {answer.decode()}\n{body.decode()}"


def recall(store: dict[str, str], exchange: Exchange) -> dict[str, SealedSignature]:
    """What the store knows of the signatures that a request should have."""
    return {
        key: sealed for key in exchange.missing_keys if (sealed := unseal(store.get(key, ""))) is not None
    }


class Player(ABC, Generic[Heard]):
    """A client with its conversation; every request goes through a new `Exchange`, as after a restart.

    `keeps_own` is the client that brings back whatever its dialect carries signatures in.
    """

    def __init__(
        self,
        dialect: ClientDialect,
        *,
        keeps_own: bool = True,
        keeps_store: bool = True,
        backend: str = "gemini",
    ) -> None:
        self._dialect = dialect
        self._backend = backend
        self._keeps_own = keeps_own
        self._keeps_store = keeps_store
        self._tokens = (f"{number:016d}" for number in itertools.count(1))
        self._store: dict[str, str] = {}
        self.history: list[Json] = []  # messages or items, as the dialect has it
        self.body = b""  # of the last request to Google
        self.sentinels = 0

    @abstractmethod
    def say(self, model: str, words: str, slices: Slices | None = None) -> Heard:
        """Say something, get the whole answer."""

    @abstractmethod
    def answer(self, model: str, heard: Heard) -> Heard:
        """Results for every call, last call first, as parallel tools may end."""

    @abstractmethod
    def count_calls(self, heard: Heard) -> int:
        """How many calls wait for their results; an answer with calls must say so."""

    @abstractmethod
    def check_end(self, heard: Heard) -> None:
        """An answer without calls is a good end, with words."""

    def play(self, plans: list[str], models: list[str]) -> int:
        """Every plan to its end, another model for every request; how many calls were made."""
        calls = turns = 0
        for plan in plans:
            heard = self.say(models[turns % len(models)], plan)
            while waiting := self.count_calls(heard):
                calls += waiting
                turns += 1
                heard = self.answer(models[turns % len(models)], heard)
            turns += 1
            self.check_end(heard)
        return calls

    def send(self, model: str, request: Json, slices: Slices | None = None) -> bytes:
        """What the client gets for a request, which must not fail."""
        exchange = Exchange(self._dialect, new_id=lambda: next(self._tokens))
        exchange.decode(json.dumps(request).encode())
        recalled = recall(self._store, exchange)
        body = self.body = exchange.encode(Target(model=model, backend=self._backend), recalled)
        self.sentinels += body.count(SENTINEL.encode())
        status, answer = ask(model, body, stream=exchange.request.stream, backend=self._backend)
        assert status == 200, f"{model}: {answer.decode()}\n{body.decode()}"
        out = exchange.open()
        for piece in slices(answer) if slices else [answer]:
            out += exchange.receive(piece)
        out += exchange.finish()
        assert exchange.failure is None
        if self._keeps_store:
            self._store.update(exchange.store_entries)
        return out
