"""A client that talks through the library to the emulator, in one process and without a loop."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dragoman.dialects import anthropic
from dragoman.dialects.base import Target
from dragoman.emulator import create_emulator
from dragoman.exchange import Exchange
from dragoman.ir import unseal
from tests.unit.dialects.anthropic.streaming import assembled

Json = dict[str, Any]

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


def ask(model: str, body: bytes, *, stream: bool = True) -> tuple[int, bytes]:
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
        "path": f"/v1beta/models/{model}:{method}",
        "query_string": query,
        "headers": [(b"content-type", b"application/json")],
    }
    app = _EMULATOR(scope, receive, send)
    with suppress(StopIteration):
        app.send(None)  # type: ignore[attr-defined]
    return sent[0]["status"], b"".join(message["body"] for message in sent[1:])


def refusal(model: str, body: bytes) -> str:
    """Why the emulator does not take this request; empty if it does."""
    status, answer = ask(model, body)
    return "" if status == 200 else f"{model}: {answer.decode()}\n{body.decode()}"


class Player:
    """A client with its conversation; every request goes through a new `Exchange`, as after a restart."""

    def __init__(
        self, *, keeps_thinking: bool = True, keeps_store: bool = True, stream: bool = True, **fields: Any
    ) -> None:
        self._keeps_thinking = keeps_thinking
        self._keeps_store = keeps_store
        self._fields = {"model": "claude-x", "max_tokens": 20_000, "stream": stream, **fields}
        self._tokens = (f"{number:016d}" for number in itertools.count(1))
        self._store: dict[str, str] = {}
        self.messages: list[Json] = []
        self.sentinels = 0

    def turn(self, model: str, content: Any, slices: Callable[[bytes], list[bytes]] | None = None) -> Json:
        """Say something, get the model's message."""
        self.messages.append({"role": "user", "content": content})
        exchange = Exchange(anthropic, new_token=lambda: next(self._tokens))
        exchange.decode(json.dumps({**self._fields, "messages": self.messages}).encode())
        known = {key: self._store[key] for key in exchange.wanted if key in self._store}
        recalled = {key: sealed for key, word in known.items() if (sealed := unseal(word)) is not None}
        body = exchange.encode(Target(model=model), recalled)
        self.sentinels += body.count(SENTINEL.encode())
        message = self._receive(exchange, model, body, slices)
        if self._keeps_store:
            self._store.update(exchange.memories)
        kept = [block for block in message["content"] if self._keeps_thinking or block["type"] != "thinking"]
        self.messages.append({"role": "assistant", "content": kept})
        return message

    def _receive(
        self, exchange: Exchange, model: str, body: bytes, slices: Callable[[bytes], list[bytes]] | None
    ) -> Json:
        stream = exchange.request.stream
        status, answer = ask(model, body, stream=stream)
        assert status == 200, f"{model}: {answer.decode()}\n{body.decode()}"
        out = exchange.open()
        for piece in slices(answer) if slices else [answer]:
            out += exchange.receive(piece)
        out += exchange.finish()
        assert exchange.failure is None
        return assembled(out) if stream else dict(json.loads(out))


def answer_calls(message: Json, **more: Any) -> list[Json]:
    """Results for every call of a message, last call first, as parallel tools may end."""
    calls = [block for block in message["content"] if block["type"] == "tool_use"]
    return [
        {"type": "tool_result", "tool_use_id": call["id"], "content": f"{call['name']} is done", **more}
        for call in reversed(calls)
    ]
