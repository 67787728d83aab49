"""A Chat client that talks through the library to the emulator."""

from __future__ import annotations

import json
from typing import Any

from dragoman.dialects import openai_chat
from tests.unit.dialects import scripted_client
from tests.unit.dialects.openai_chat.stream_checks import folded, tidy

Json = dict[str, Any]
Heard = tuple[Json, str]  # the model's message and why it ended

_STANDARD = ("role", "content", "tool_calls", "function_call")


class Player(scripted_client.Player[Heard]):
    """One that does not keep its own is a typed SDK: fields that it does not know are gone."""

    def __init__(
        self, *, keeps_own: bool = True, keeps_store: bool = True, stream: bool = True, **fields: Any
    ) -> None:
        super().__init__(openai_chat, keeps_own=keeps_own, keeps_store=keeps_store)
        self._stream = stream
        self._fields = {"model": "gpt-x", "stream": stream, **fields}

    def say(self, model: str, words: str, slices: scripted_client.Slices | None = None) -> Heard:
        return self.turn(model, [{"role": "user", "content": words}], slices)

    def answer(self, model: str, heard: Heard) -> Heard:
        return self.turn(model, answer_calls(heard[0]))

    def count_calls(self, heard: Heard) -> int:
        message, reason = heard
        calls = len(answer_calls(message))
        assert not calls or reason == ("function_call" if "function_call" in message else "tool_calls")
        return calls

    def check_end(self, heard: Heard) -> None:
        message, reason = heard
        assert reason == "stop"
        assert message["content"]

    def turn(self, model: str, messages: list[Json], slices: scripted_client.Slices | None = None) -> Heard:
        """Send these messages behind all others."""
        self.history += messages
        out = self.send(model, {**self._fields, "messages": self.history}, slices)
        completion = folded(out) if self._stream else tidy(json.loads(out))
        choice = completion["choices"][0]
        message = choice["message"]
        self.history.append(message if self._keeps_own else _standard(message))
        return message, choice["finish_reason"]


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
