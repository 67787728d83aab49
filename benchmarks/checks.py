"""A fast wrong answer does not count: what came back, and what was sent upstream, against what was meant."""

from __future__ import annotations

from typing import Any

import msgspec

from benchmarks.answers import CALLED_TOOL, Order
from benchmarks.conversation import Conversation
from benchmarks.http import HttpAnswer, Style
from benchmarks.tools import SCHEMAS

Blocks = list[dict[str, Any]]

_decode = msgspec.json.Decoder().decode


class WrongAnswer(Exception):
    """The answer is not the one that was ordered."""


def read_answer(answer: HttpAnswer, order: Order, style: Style, *, stream: bool) -> Blocks:
    """The answer's blocks in the client's words, checked against the order."""
    if answer.status != 200:
        raise WrongAnswer(f"status {answer.status}: {answer.body[:300]!r}")
    blocks, stop = _READERS[style, stream](answer.body)
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    _expect("text", text, order.text)
    calls = [(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
    _expect("calls", calls, [(CALLED_TOOL, order.arguments)])
    _expect("stop", stop, "tool_use" if style == "anthropic" else "STOP")
    return blocks


def check_upstream(body: bytes, conversation: Conversation, order: Order) -> None:
    """Everything the client said has arrived at Gemini, in order, and nothing was answered twice."""
    sent = _decode(body)
    parts = [part for content in sent["contents"] for part in content["parts"]]
    results = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
    _expect("results", [result.get("output") for result in results], conversation.texts("tool_result"))
    said = "\n".join(part.get("text", "") for part in parts)
    for prompt in conversation.texts("text"):
        if prompt not in said:
            raise WrongAnswer(f"a prompt is missing upstream: {prompt[:80]!r}")
    declared = [tool["name"] for tool in sent.get("tools", [{}])[0].get("functionDeclarations", [])]
    _expect("tools", declared, list(SCHEMAS) if conversation.has_tools else [])
    signatures = {part.get("thoughtSignature") for part in parts if "functionCall" in part}
    if order.signature not in signatures:
        raise WrongAnswer("the signature of the last call did not come back")


def _expect(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise WrongAnswer(f"{what}: got {str(found)[:300]!r}, wanted {str(wanted)[:300]!r}")


def _read_message(body: bytes) -> tuple[Blocks, str]:
    message = _decode(body)
    return message["content"], message["stop_reason"]


def _read_event_stream(body: bytes) -> tuple[Blocks, str]:
    """Folds the stream as the SDK does; anything out of order raises."""
    blocks: Blocks = []
    arguments: dict[int, str] = {}
    stop = ""
    events = _events(body)
    if not events or events[0]["type"] != "message_start" or events[-1]["type"] != "message_stop":
        raise WrongAnswer(f"the stream has no beginning or no end: {body[-300:]!r}")
    for event in events:
        if event["type"] == "content_block_start":
            _expect("index", event["index"], len(blocks))
            blocks.append(event["content_block"])
        elif event["type"] == "content_block_delta":
            _apply(event["delta"], blocks[event["index"]], arguments, event["index"])
        elif event["type"] == "message_delta":
            stop = event["delta"]["stop_reason"]
    for index, text in arguments.items():
        blocks[index]["input"] = _decode(text)
    return blocks, stop


def _apply(delta: dict[str, Any], block: dict[str, Any], arguments: dict[int, str], index: int) -> None:
    match delta["type"]:
        case "text_delta":
            block["text"] += delta["text"]
        case "thinking_delta":
            block["thinking"] += delta["thinking"]
        case "signature_delta":
            block["signature"] = delta["signature"]
        case "input_json_delta":
            arguments[index] = arguments.get(index, "") + delta["partial_json"]


def _read_response(body: bytes) -> tuple[Blocks, str]:
    return _fold_gemini([_decode(body)])


def _read_response_stream(body: bytes) -> tuple[Blocks, str]:
    return _fold_gemini(_events(body))


def _fold_gemini(chunks: list[Any]) -> tuple[Blocks, str]:
    """The same blocks a gateway would make of it, so that every contender gets the same next turn."""
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    text = {"type": "text", "text": ""}
    blocks: Blocks = [thinking, text]
    candidates = [chunk["candidates"][0] for chunk in chunks]
    for part in (part for candidate in candidates for part in candidate["content"]["parts"]):
        if "functionCall" in part:
            call = part["functionCall"]
            thinking["signature"] = part["thoughtSignature"]
            blocks.append({"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]})
        elif part.get("thought"):
            thinking["thinking"] += part["text"]
        else:
            text["text"] += part["text"]
    return blocks, candidates[-1].get("finishReason", "")


def _events(body: bytes) -> list[Any]:
    return [_decode(line[5:]) for line in body.splitlines() if line.startswith(b"data:")]


_READERS = {
    ("anthropic", False): _read_message,
    ("anthropic", True): _read_event_stream,
    ("gemini", False): _read_response,
    ("gemini", True): _read_response_stream,
}
