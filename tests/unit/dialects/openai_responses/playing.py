"""A client that talks through the library to the emulator, in one process and without a loop."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

from dragoman.dialects import openai_responses
from dragoman.dialects.base import Target
from dragoman.exchange import Exchange
from dragoman.ir import unseal
from tests.corpus.responses import assembled
from tests.unit.dialects.anthropic.playing import MODELS, SENTINEL, ask

Json = dict[str, Any]

#: The item that answers a call, by the call's own type.
OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}


class Player:
    """A client with its conversation; every request goes through a new `Exchange`, as after a restart."""

    def __init__(
        self, *, keeps_reasoning: bool = True, keeps_store: bool = True, stream: bool = True, **fields: Any
    ) -> None:
        self._keeps_reasoning = keeps_reasoning
        self._keeps_store = keeps_store
        self._fields = {"model": "gpt-5", "stream": stream, "store": False, **fields}
        self._tokens = (f"{number:016d}" for number in itertools.count(1))
        self._store: dict[str, str] = {}
        self.items: list[Json] = []
        self.sentinels = 0

    def turn(
        self, model: str, said: str | list[Json], slices: Callable[[bytes], list[bytes]] | None = None
    ) -> Json:
        """Say something or bring results, get the response."""
        self.items += [{"role": "user", "content": said}] if isinstance(said, str) else said
        exchange = Exchange(openai_responses, new_token=lambda: next(self._tokens))
        exchange.decode(json.dumps({**self._fields, "input": self.items}).encode())
        known = {key: self._store[key] for key in exchange.wanted if key in self._store}
        recalled = {key: sealed for key, word in known.items() if (sealed := unseal(word)) is not None}
        body = exchange.encode(Target(model=model), recalled)
        self.sentinels += body.count(SENTINEL.encode())
        response = self._receive(exchange, model, body, slices)
        if self._keeps_store:
            self._store.update(exchange.memories)
        self.items += [
            item for item in response["output"] if self._keeps_reasoning or item["type"] != "reasoning"
        ]
        return response

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


def answer_calls(response: Json) -> list[Json]:
    """Results for every call of a response, last call first, as parallel tools may end."""
    calls = [item for item in response["output"] if item["type"] in OUTPUTS]
    return [_answer(item) for item in reversed(calls)]


def _answer(item: Json) -> Json:
    done: Any = "done"
    if item["type"] == "shell_call":
        done = [{"stdout": "done", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    return {
        "type": OUTPUTS[item["type"]],
        "call_id": item["call_id"],
        "output": done,
        "status": "completed",
    }


__all__ = ["MODELS", "OUTPUTS", "Player", "answer_calls"]
