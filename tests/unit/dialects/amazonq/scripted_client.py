"""A client of Amazon's that talks through the library to the emulator."""

from __future__ import annotations

from typing import Any

from dragoman.dialects.amazonq import AmazonQ
from tests.unit.dialects import scripted_client
from tests.unit.dialects.amazonq.builders import assistant, reasoning, result, results, use, user
from tests.unit.dialects.amazonq.strict_reader import Reading, read

Json = dict[str, Any]

ENV = {"operatingSystem": "linux", "currentWorkingDirectory": "/w"}


class Player(scripted_client.Player[Reading]):
    """It keeps its conversation as the Rust client does: tools on the current message only.

    One that keeps its own is Kiro; the older clients bring nothing back but the ids of their tool uses.
    """

    def __init__(
        self, tools: list[Json], *, keeps_own: bool = True, keeps_store: bool = True, **fields: Any
    ) -> None:
        super().__init__(AmazonQ(), keeps_own=keeps_own, keeps_store=keeps_store)
        self._tools = tools
        self._fields = fields

    def say(self, model: str, words: str, slices: scripted_client.Slices | None = None) -> Reading:
        return self.turn(model, user(words, context={"envState": ENV}), slices)

    def answer(self, model: str, heard: Reading, content: str = "") -> Reading:
        given = (
            result({"json": {"tool": tool.name}}, identity=tool.id, status="success")
            for tool in reversed(heard.tools)
        )
        return self.turn(model, results(*given, content=content))

    def count_calls(self, heard: Reading) -> int:
        assert not heard.tools or heard.stop_reason == "TOOL_USE"
        return len(heard.tools)

    def check_end(self, heard: Reading) -> None:
        assert (heard.stop_reason, bool(heard.text)) == ("END_TURN", True)

    def turn(self, model: str, message: Json, slices: scripted_client.Slices | None = None) -> Reading:
        reading = read(self.send(model, self._request(message), slices))
        assert reading.failure == ""
        self.history += [message, self._kept(reading)]
        return reading

    def _request(self, message: Json) -> Json:
        """The tools come out of a hash map: in another order every time."""
        self._tools = self._tools[1:] + self._tools[:1]
        asked = dict(message["userInputMessage"])
        asked["userInputMessageContext"] = {**asked.get("userInputMessageContext", {}), "tools": self._tools}
        state = {
            "conversationId": "c",
            "history": self.history,
            "currentMessage": {"userInputMessage": {**asked, "modelId": "auto"}},
        }
        return {"conversationState": state, **self._fields}

    def _kept(self, reading: Reading) -> Json:
        uses = [use(tool.id, tool.name, input=tool.input) for tool in reading.tools]
        if not self._keeps_own or not (reading.thoughts or reading.signatures):
            return assistant(reading.text, *uses)
        return assistant(
            reading.text, *uses, **reasoning(reading.thoughts, "".join(reading.signatures) or None)
        )
