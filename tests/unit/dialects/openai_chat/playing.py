"""A Chat client that talks through the library to the emulator, in one process and without a loop."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

from dragoman.dialects import openai_chat
from dragoman.dialects.base import Target
from dragoman.exchange import Exchange
from dragoman.ir import unseal
from tests.unit.dialects.anthropic.playing import SENTINEL, ask
from tests.unit.dialects.openai_chat.streaming import folded, tidy

Json = dict[str, Any]

_STANDARD = ("role", "content", "tool_calls", "function_call")


class Player:
    """A client with its conversation; every request goes through a new `Exchange`, as after a restart."""

    def __init__(
        self, *, keeps_extras: bool = True, keeps_store: bool = True, stream: bool = True, **fields: Any
    ) -> None:
        self._keeps_extras = keeps_extras
        self._keeps_store = keeps_store
        self._fields = {"model": "gpt-x", "stream": stream, **fields}
        self._tokens = (f"{number:016d}" for number in itertools.count(1))
        self._store: dict[str, str] = {}
        self.messages: list[Json] = []
        self.sentinels = 0

    def say(
        self, model: str, words: str, slices: Callable[[bytes], list[bytes]] | None = None
    ) -> tuple[Json, str]:
        return self.turn(model, [{"role": "user", "content": words}], slices)

    def turn(
        self, model: str, messages: list[Json], slices: Callable[[bytes], list[bytes]] | None = None
    ) -> tuple[Json, str]:
        """Send these messages behind all others; the model's message and why it ended."""
        self.messages += messages
        exchange = Exchange(openai_chat, new_token=lambda: next(self._tokens))
        exchange.decode(json.dumps({**self._fields, "messages": self.messages}).encode())
        known = {key: self._store[key] for key in exchange.wanted if key in self._store}
        recalled = {key: sealed for key, word in known.items() if (sealed := unseal(word)) is not None}
        body = exchange.encode(Target(model=model), recalled)
        self.sentinels += body.count(SENTINEL.encode())
        choice = self._receive(exchange, model, body, slices)
        if self._keeps_store:
            self._store.update(exchange.memories)
        message = choice["message"]
        self.messages.append(message if self._keeps_extras else _standard(message))
        return message, choice["finish_reason"]

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
        completion = folded(out) if stream else tidy(json.loads(out))
        return dict(completion["choices"][0])


def _standard(message: Json) -> Json:
    """What a typed SDK keeps of a message."""
    kept = {key: message[key] for key in _STANDARD if key in message}
    if "tool_calls" in kept:
        kept["tool_calls"] = [
            {key: value for key, value in call.items() if key != "extra_content"}
            for call in kept["tool_calls"]
        ]
    return kept


def answer_calls(message: Json) -> list[Json]:
    """Results for every call of a message, last call first, as parallel tools may end."""
    if "function_call" in message:
        return [{"role": "function", "name": message["function_call"]["name"], "content": "done"}]
    return [
        {"role": "tool", "tool_call_id": call["id"], "content": f"{call[call['type']]['name']} is done"}
        for call in reversed(message.get("tool_calls", []))
    ]
