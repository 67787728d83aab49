"""Check the answer and the upstream request against what was expected, since a wrong answer must not count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from benchmarks.conversation import Conversation
from benchmarks.fake_answers import CALLED_TOOL, AnswerSpec
from benchmarks.http_client import HttpAnswer
from benchmarks.request_encoders import Style
from benchmarks.response_readers import Blocks, WrongAnswer, read_blocks
from benchmarks.tool_definitions import SCHEMAS

__all__ = [
    "Blocks",
    "MinorDeviation",
    "UnexpectedStop",
    "WrongAnswer",
    "check_upstream",
    "expected_blocks",
    "read_answer",
]

_decode = msgspec.json.Decoder().decode
_STOPS: dict[Style, str] = {
    "floor": "STOP",
    "anthropic": "tool_use",
    "openai_chat": "tool_calls",
    "openai_responses": "completed",
    "gemini": "STOP",
    "bedrock": "tool_use",
    "amazonq": "stop",
}
#: Google reads both spellings of its names, and its peers write both.
_OTHER_NAMES = {
    "function_response": "functionResponse",
    "function_call": "functionCall",
    "thought_signature": "thoughtSignature",
    "function_declarations": "functionDeclarations",
}


class MinorDeviation(WrongAnswer):
    """The answer is complete but has a minor deviation, which is reported; the figures count."""


class UnexpectedStop(MinorDeviation):
    """The answer ends with another stop reason; `blocks` are its content."""

    def __init__(self, about: str, blocks: Blocks) -> None:
        super().__init__(about)
        self.blocks = blocks


def read_answer(answer: HttpAnswer, order: AnswerSpec, style: Style, *, stream: bool) -> Blocks:
    """Return the blocks of the answer in Anthropic's format, checked against the specification."""
    if answer.status != 200:
        raise WrongAnswer(f"status {answer.status}: {answer.body[:300]!r}")
    blocks, stop = read_blocks(style, answer.body, stream=stream)
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    _expect("text", text, order.text)
    calls = [(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
    _expect("calls", calls, [(CALLED_TOOL, order.arguments)])
    if stop != _STOPS[style]:
        raise UnexpectedStop(f"ends with {stop!r} after a call, not with {_STOPS[style]!r}", blocks)
    return blocks


def expected_blocks(order: AnswerSpec) -> Blocks:
    """Return the expected blocks, so that a conversation can continue after a wrong answer."""
    call = {"type": "tool_use", "id": f"toolu_{order.id}", "name": CALLED_TOOL, "input": order.arguments}
    return [{"type": "text", "text": order.text}, call]


def check_upstream(body: bytes, conversation: Conversation, order: AnswerSpec) -> None:
    """Check that all content of the client arrived at Gemini in order, and no call was answered twice."""
    sent = _decode(body)
    parts = [_named(part) for content in sent["contents"] for part in content["parts"]]
    results = ["\n".join(_strings(part["functionResponse"])) for part in parts if "functionResponse" in part]
    wanted = conversation.texts("tool_result")
    if len(results) != len(wanted) or not all(map(_contains, results, wanted)):
        raise WrongAnswer(f"results: {len(wanted)} were given, {len(results)} arrived, or with other text")
    said = "\n".join(part.get("text", "") for part in parts)
    for prompt in conversation.texts("text"):
        if prompt not in said:
            raise WrongAnswer(f"a prompt is missing upstream: {prompt[:80]!r}")
    declared = [tool["name"] for tools in sent.get("tools", ()) for tool in _declarations(tools)]
    _expect("tools", declared, list(SCHEMAS) if conversation.has_tools else [])
    calls = [part for part in parts if "functionCall" in part]
    if order.arguments not in [part["functionCall"].get("args") for part in calls]:
        raise WrongAnswer("the last call did not come back")
    if order.signature not in {part.get("thoughtSignature") for part in calls}:
        raise MinorDeviation(
            "the signature of the last call did not come back, and Gemini 3 refuses a call without it"
        )


def _contains(result: str, wanted: str) -> bool:
    return wanted in result


def _declarations(tools: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _named(tools).get("functionDeclarations", [])
    return found


def _named(part: dict[str, Any]) -> dict[str, Any]:
    return {_OTHER_NAMES.get(name, name): value for name, value in part.items()}


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from _strings(member)
    elif isinstance(value, list):
        for member in value:
            yield from _strings(member)


def _expect(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise WrongAnswer(f"{what}: got {str(found)[:300]!r}, wanted {str(wanted)[:300]!r}")
