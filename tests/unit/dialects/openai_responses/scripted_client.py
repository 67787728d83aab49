"""A client of the Responses API that talks through the library to the emulator."""

from __future__ import annotations

import json
from typing import Any

from dragoman.dialects import openai_responses
from tests.corpus.responses_adapter import assembled
from tests.unit.dialects import scripted_client

Json = dict[str, Any]

#: The item that answers a call, by the call's own type.
OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}


class Player(scripted_client.Player[Json]):
    def __init__(
        self, *, keeps_own: bool = True, keeps_store: bool = True, stream: bool = True, **fields: Any
    ) -> None:
        super().__init__(openai_responses, keeps_own=keeps_own, keeps_store=keeps_store)
        self._stream = stream
        self._fields = {"model": "gpt-5", "stream": stream, "store": False, **fields}

    def say(self, model: str, words: str, slices: scripted_client.Slices | None = None) -> Json:
        return self.turn(model, [{"role": "user", "content": words}], slices)

    def answer(self, model: str, heard: Json) -> Json:
        return self.turn(model, answer_calls(heard))

    def count_calls(self, heard: Json) -> int:
        return len(answer_calls(heard))

    def check_end(self, heard: Json) -> None:
        assert heard["status"] == "completed"
        assert any(item["type"] == "message" for item in heard["output"])

    def turn(self, model: str, items: list[Json], slices: scripted_client.Slices | None = None) -> Json:
        """Send these items behind all others, get the response."""
        self.history += items
        out = self.send(model, {**self._fields, "input": self.history}, slices)
        response = assembled(out) if self._stream else dict(json.loads(out))
        self.history += [
            item for item in response["output"] if self._keeps_own or item["type"] != "reasoning"
        ]
        return response


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
