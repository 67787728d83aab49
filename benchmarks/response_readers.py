"""Decode the answers of every dialect as its clients do, into Anthropic's blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from botocore.eventstream import EventStreamBuffer, ParserError

from benchmarks.request_encoders import Style

Blocks = list[dict[str, Any]]
Read = tuple[Blocks, str]

_decode = msgspec.json.Decoder().decode


class WrongAnswer(Exception):
    """The answer differs from its specification."""


def read_blocks(style: Style, body: bytes, *, stream: bool) -> Read:
    """Return the blocks and the stop reason; raise `WrongAnswer` for anything that cannot be decoded."""
    try:
        return _READERS[style][stream](body)
    except (LookupError, TypeError, ValueError, ParserError) as error:
        raise WrongAnswer(f"unreadable ({type(error).__name__}: {error}): {body[-300:]!r}") from error


def _message(body: bytes) -> Read:
    message = _decode(body)
    return message["content"], message["stop_reason"]


def _message_stream(body: bytes) -> Read:
    """Collect the stream as the SDK does; raise if events are out of order."""
    blocks: Blocks = []
    arguments: dict[int, str] = {}
    stop = ""
    events = [event for event in _events(body) if event["type"] != "ping"]
    if not events or events[0]["type"] != "message_start" or events[-1]["type"] != "message_stop":
        raise WrongAnswer(f"the stream has no beginning or no end: {body[-300:]!r}")
    for event in events:
        if event["type"] == "content_block_start":
            if event["index"] != len(blocks):
                raise WrongAnswer(f"index: got {event['index']}, wanted {len(blocks)}")
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


def _gemini(body: bytes) -> Read:
    return _fold_gemini([_decode(body)])


def _gemini_stream(body: bytes) -> Read:
    return _fold_gemini(_events(body))


def _fold_gemini(chunks: list[Any]) -> Read:
    """Return the blocks that a gateway would return, so that every contender gets the same next turn."""
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    text = {"type": "text", "text": ""}
    blocks: Blocks = [thinking, text]
    candidates = [chunk["candidates"][0] for chunk in chunks if chunk.get("candidates")]
    for part in (part for one in candidates for part in one.get("content", {}).get("parts", ())):
        if "functionCall" in part:
            call = part["functionCall"]
            thinking["signature"] = part.get("thoughtSignature", "")
            blocks.append(_call(call["id"], call["name"], call["args"]))
        elif part.get("thought"):
            thinking["thinking"] += part["text"]
        else:
            text["text"] += part["text"]
    return blocks, candidates[-1].get("finishReason", "")


def _chat(body: bytes) -> Read:
    choice = _decode(body)["choices"][0]
    message = choice["message"]
    calls = [(call["id"], call["function"]) for call in message.get("tool_calls") or ()]
    return _said(message.get("content") or "") + [
        _call(call_id, function["name"], _decode(function["arguments"])) for call_id, function in calls
    ], choice["finish_reason"]


def _chat_stream(body: bytes) -> Read:
    text, stop = "", ""
    calls: dict[int, dict[str, str]] = {}
    for chunk in _events(body):
        for choice in chunk["choices"]:
            delta = choice["delta"]
            text += delta.get("content") or ""
            stop = choice.get("finish_reason") or stop
            for piece in delta.get("tool_calls") or ():
                call = calls.setdefault(piece["index"], {"id": "", "name": "", "arguments": ""})
                call["id"] = piece.get("id") or call["id"]
                call["name"] += piece["function"].get("name") or ""
                call["arguments"] += piece["function"].get("arguments") or ""
    if not stop:
        raise WrongAnswer(f"the stream has no end: {body[-300:]!r}")
    done = "" if body.rstrip().endswith(b"data: [DONE]") else " and no [DONE]"
    return _said(text) + [
        _call(call["id"], call["name"], _decode(call["arguments"])) for call in calls.values()
    ], stop + done


def _response(body: bytes) -> Read:
    return _items(_decode(body))


def _response_stream(body: bytes) -> Read:
    """Check that the deltas equal the complete response at the end."""
    events = _events(body)
    text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    if events[-1]["type"] != "response.completed":
        raise WrongAnswer(f"the stream has no end: {body[-300:]!r}")
    blocks, stop = _items(events[-1]["response"])
    if text != "".join(block["text"] for block in blocks if block["type"] == "text"):
        raise WrongAnswer("the deltas of the text are not the text")
    return blocks, stop


def _items(response: dict[str, Any]) -> Read:
    blocks: Blocks = []
    for item in response["output"]:
        if item["type"] == "message":
            blocks += _said("".join(part["text"] for part in item["content"]))
        elif item["type"] == "function_call":
            blocks.append(_call(item["call_id"], item["name"], _decode(item["arguments"])))
    return blocks, response["status"]


def _converse(body: bytes) -> Read:
    answer = _decode(body)
    blocks: Blocks = []
    for part in answer["output"]["message"]["content"]:
        if "text" in part:
            blocks += _said(part["text"])
        elif "toolUse" in part:
            call = part["toolUse"]
            blocks.append(_call(call["toolUseId"], call["name"], call["input"]))
    return blocks, answer["stopReason"]


def _converse_stream(body: bytes) -> Read:
    text, stop = "", ""
    calls: dict[int, dict[str, str]] = {}
    for kind, event in _frames(body):
        delta = event.get("delta", {})
        text += delta.get("text", "")
        if kind == "contentBlockStart" and "toolUse" in event.get("start", {}):
            calls[event["contentBlockIndex"]] = event["start"]["toolUse"] | {"input": ""}
        elif "toolUse" in delta:
            calls[event["contentBlockIndex"]]["input"] += delta["toolUse"]["input"]
        elif kind == "messageStop":
            stop = event["stopReason"]
    return _said(text) + [
        _call(call["toolUseId"], call["name"], _decode(call["input"])) for call in calls.values()
    ], stop


def _assistant_stream(body: bytes) -> Read:
    text = ""
    calls: dict[str, dict[str, Any]] = {}
    for kind, event in _frames(body):
        if kind == "assistantResponseEvent":
            text += event["content"]
        elif kind == "toolUseEvent":
            call = calls.setdefault(event["toolUseId"], {"name": event["name"], "input": "", "stop": False})
            call["input"] += event.get("input", "")
            call["stop"] = call["stop"] or event.get("stop", False)
    said = [_call(key, call["name"], _decode(call["input"])) for key, call in calls.items()]
    return _said(text) + said, "stop" if all(call["stop"] for call in calls.values()) else ""


def _said(text: str) -> Blocks:
    return [{"type": "text", "text": text}] if text else []


def _call(call_id: str, name: str, arguments: object) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def _events(body: bytes) -> list[Any]:
    lines = (line[5:].strip() for line in body.splitlines() if line.startswith(b"data:"))
    return [_decode(line) for line in lines if line != b"[DONE]"]


def _frames(body: bytes) -> list[tuple[str, Any]]:
    """Decode with Amazon's own reader, which also checks the checksums."""
    buffer = EventStreamBuffer()
    buffer.add_data(body)
    return [(frame.headers[":event-type"], _decode(frame.payload)) for frame in buffer]


#: How an answer is read: whole, from a stream.
_READERS: dict[Style, tuple[Callable[[bytes], Read], Callable[[bytes], Read]]] = {
    "floor": (_gemini, _gemini_stream),
    "anthropic": (_message, _message_stream),
    "openai_chat": (_chat, _chat_stream),
    "openai_responses": (_response, _response_stream),
    "gemini": (_gemini, _gemini_stream),
    "bedrock": (_converse, _converse_stream),
    "amazonq": (_assistant_stream, _assistant_stream),
}
