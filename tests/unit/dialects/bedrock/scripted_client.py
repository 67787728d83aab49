"""A client of Converse that talks through the library to the emulator."""

from __future__ import annotations

import json
from typing import Any

from dragoman.dialects.bedrock import ConverseClient
from tests.unit.dialects import scripted_client
from tests.unit.dialects.bedrock.grammar import read_stream

Json = dict[str, Any]


class Player(scripted_client.Player[Json]):
    def __init__(
        self, *, keeps_own: bool = True, keeps_store: bool = True, stream: bool = True, **fields: Any
    ) -> None:
        dialect = ConverseClient("us.anthropic.claude-x-v1:0", stream=stream)
        super().__init__(dialect, keeps_own=keeps_own, keeps_store=keeps_store)
        self._stream = stream
        self._fields = fields

    def say(self, model: str, words: str, slices: scripted_client.Slices | None = None) -> Json:
        return self.turn(model, [{"text": words}], slices)

    def answer(self, model: str, heard: Json) -> Json:
        return self.turn(model, answer_calls(heard))

    def count_calls(self, heard: Json) -> int:
        calls = len(answer_calls(heard))
        assert not calls or heard["stopReason"] == "tool_use"
        return calls

    def check_end(self, heard: Json) -> None:
        assert heard["stopReason"] == "end_turn"
        assert any("text" in block for block in heard["output"]["message"]["content"])

    def turn(self, model: str, content: list[Json], slices: scripted_client.Slices | None = None) -> Json:
        """Say something, get the whole answer."""
        self.history.append({"role": "user", "content": content})
        out = self.send(model, {"messages": self.history, **self._fields}, slices)
        answer = read_stream(out).as_whole() if self._stream else dict(json.loads(out))
        content = answer["output"]["message"]["content"]
        kept = [block for block in content if self._keeps_own or "reasoningContent" not in block]
        self.history.append({"role": "assistant", "content": kept})
        return answer


def answer_calls(answer: Json) -> list[Json]:
    """Results for every call of an answer, last call first, as parallel tools may end."""
    content = answer["output"]["message"]["content"]
    uses = [block["toolUse"] for block in content if "toolUse" in block]
    return [
        {"toolResult": {"toolUseId": use["toolUseId"], "content": [{"text": f"{use['name']} is done"}]}}
        for use in reversed(uses)
    ]
