"""A client of the Messages API that talks through the library to the emulator."""

from __future__ import annotations

import json
from typing import Any

from dragoman.dialects import anthropic
from tests.unit.dialects import scripted_client
from tests.unit.dialects.anthropic.stream_checks import assembled

Json = dict[str, Any]


class Player(scripted_client.Player[Json]):
    """`beside` is what the client puts behind the results of its tools."""

    def __init__(
        self,
        *,
        keeps_own: bool = True,
        keeps_store: bool = True,
        stream: bool = True,
        backend: str = "gemini",
        beside: tuple[Json, ...] = (),
        **fields: Any,
    ) -> None:
        super().__init__(anthropic, keeps_own=keeps_own, keeps_store=keeps_store, backend=backend)
        self._stream = stream
        self._beside = beside
        self._fields = {"model": "claude-x", "max_tokens": 20_000, "stream": stream, **fields}

    def say(self, model: str, words: str, slices: scripted_client.Slices | None = None) -> Json:
        return self.turn(model, words, slices)

    def answer(self, model: str, heard: Json) -> Json:
        return self.turn(model, [*answer_calls(heard), *self._beside])

    def count_calls(self, heard: Json) -> int:
        return len(answer_calls(heard))

    def check_end(self, heard: Json) -> None:
        assert heard["stop_reason"] == "end_turn"
        assert any(block["type"] == "text" for block in heard["content"])

    def turn(self, model: str, content: Any, slices: scripted_client.Slices | None = None) -> Json:
        """Say something, get the model's message."""
        self.history.append({"role": "user", "content": content})
        out = self.send(model, {**self._fields, "messages": self.history}, slices)
        message = assembled(out) if self._stream else dict(json.loads(out))
        kept = [block for block in message["content"] if self._keeps_own or block["type"] != "thinking"]
        self.history.append({"role": "assistant", "content": kept})
        return message


def answer_calls(message: Json, **more: Any) -> list[Json]:
    """Results for every call of a message, last call first, as parallel tools may end."""
    calls = [block for block in message["content"] if block["type"] == "tool_use"]
    return [
        {"type": "tool_result", "tool_use_id": call["id"], "content": f"{call['name']} is done", **more}
        for call in reversed(calls)
    ]
