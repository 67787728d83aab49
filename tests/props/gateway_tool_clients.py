"""A client of each dialect with its conversation, and a gateway with tools of its own in front of the emulator."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec
from openai.types.responses import Response

from dragoman.dialects import CLIENTS
from dragoman.dialects.amazonq import AmazonQ
from dragoman.dialects.base import ClientDialect, Target
from dragoman.dialects.bedrock import ConverseClient
from dragoman.dialects.gemini.client import GeminiClient
from dragoman.ir import Text, Tool, ToolCall, ToolResult
from dragoman.translation.exchange import Exchange
from dragoman.translation.tool_loop import LoopLimits, ToolLoop
from tests.unit.dialects.amazonq import builders as q
from tests.unit.dialects.amazonq import strict_reader
from tests.unit.dialects.anthropic.stream_checks import assembled
from tests.unit.dialects.bedrock.grammar import read_stream
from tests.unit.dialects.openai_chat import stream_checks as chat
from tests.unit.dialects.openai_responses import stream_checks as responses
from tests.unit.dialects.scripted_client import SENTINEL, ask, recall

Json = dict[str, Any]

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


class Call(msgspec.Struct, frozen=True):
    """A call that the client is asked to answer."""

    id: str
    name: str
    args: Json


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a client makes of one answer."""

    text: str
    calls: list[Call]
    finish: str  # end, calls, or what the dialect says
    tokens: tuple[int, int]  # read, written


class Speaker(Protocol):
    """Says what it said before, and what is new."""

    dialect: ClientDialect
    history: list[Json]

    def body(self, tools: Iterable[str], *, stream: bool) -> Json: ...

    def say(self, words: str) -> None: ...

    def answer(self, results: list[tuple[Call, str]]) -> None: ...

    def hear(self, data: bytes, *, stream: bool, keeps_thinking: bool) -> Seen: ...


class Anthropic:
    dialect: ClientDialect = CLIENTS["anthropic"]

    def __init__(self) -> None:
        self.history: list[Json] = []

    def body(self, tools: Iterable[str], *, stream: bool) -> Json:
        declared = [{"name": name, "input_schema": SCHEMA} for name in tools]
        thinking = {"type": "adaptive"}
        base = {"model": "m", "max_tokens": 20_000, "stream": stream, "thinking": thinking}
        return {**base, "messages": self.history, "tools": declared}

    def say(self, words: str) -> None:
        self.history.append({"role": "user", "content": words})

    def answer(self, results: list[tuple[Call, str]]) -> None:
        blocks = [{"type": "tool_result", "tool_use_id": call.id, "content": said} for call, said in results]
        self.history.append({"role": "user", "content": blocks})

    def hear(self, data: bytes, *, stream: bool, keeps_thinking: bool) -> Seen:
        message: Json = assembled(data) if stream else json.loads(data)
        kept = [block for block in message["content"] if keeps_thinking or block["type"] != "thinking"]
        self.history.append({"role": "assistant", "content": kept})
        usage = message["usage"]
        return Seen(
            text="".join(block["text"] for block in kept if block["type"] == "text"),
            calls=[Call(one["id"], one["name"], one["input"]) for one in kept if one["type"] == "tool_use"],
            finish={"end_turn": "end", "tool_use": "calls"}.get(message["stop_reason"], ""),
            tokens=(usage["input_tokens"] + usage["cache_read_input_tokens"], usage["output_tokens"]),
        )


class Chat:
    dialect: ClientDialect = CLIENTS["openai_chat"]

    def __init__(self) -> None:
        self.history: list[Json] = []

    def body(self, tools: Iterable[str], *, stream: bool) -> Json:
        declared = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in tools]
        more = {"stream_options": {"include_usage": True}} if stream else {}
        return {"model": "m", "stream": stream, "messages": self.history, "tools": declared, **more}

    def say(self, words: str) -> None:
        self.history.append({"role": "user", "content": words})

    def answer(self, results: list[tuple[Call, str]]) -> None:
        self.history += [{"role": "tool", "tool_call_id": call.id, "content": said} for call, said in results]

    def hear(self, data: bytes, *, stream: bool, keeps_thinking: bool) -> Seen:
        completion = chat.folded(data) if stream else chat.tidy(json.loads(data))
        (choice,) = completion["choices"]
        message: Json = choice["message"]
        if not keeps_thinking:
            message.pop("extra_content", None)
            for call in message.get("tool_calls", ()):
                call.pop("extra_content", None)
        self.history.append({"content": None, **message})
        calls = [(call["id"], call["function"]) for call in message.get("tool_calls", ())]
        usage = completion["usage"]
        return Seen(
            text=message.get("content", ""),
            calls=[Call(own, call["name"], json.loads(call["arguments"])) for own, call in calls],
            finish={"stop": "end", "tool_calls": "calls"}.get(choice["finish_reason"], ""),
            tokens=(usage["prompt_tokens"], usage["completion_tokens"]),
        )


class Responses:
    dialect: ClientDialect = CLIENTS["openai_responses"]

    def __init__(self) -> None:
        self.history: list[Json] = []

    def body(self, tools: Iterable[str], *, stream: bool) -> Json:
        declared = [{"type": "function", "name": name, "parameters": SCHEMA} for name in tools]
        more = {"reasoning": {"summary": "auto"}, "include": ["reasoning.encrypted_content"]}
        return {"model": "m", "stream": stream, "input": self.history, "tools": declared, **more}

    def say(self, words: str) -> None:
        self.history.append({"role": "user", "content": words})

    def answer(self, results: list[tuple[Call, str]]) -> None:
        self.history += [
            {"type": "function_call_output", "call_id": call.id, "output": said} for call, said in results
        ]

    def hear(self, data: bytes, *, stream: bool, keeps_thinking: bool) -> Seen:
        response = responses.folded(data)[1] if stream else Response.model_validate_json(data, strict=True)
        items = [item.to_dict(mode="json") for item in response.output]
        self.history += [item for item in items if keeps_thinking or item["type"] != "reasoning"]
        calls = [item for item in response.output if item.type == "function_call"]
        usage = response.usage
        assert usage is not None
        assert response.status == "completed"
        return Seen(
            text=response.output_text,
            calls=[Call(item.call_id, item.name, json.loads(item.arguments)) for item in calls],
            finish="calls" if calls else "end",
            tokens=(usage.input_tokens, usage.output_tokens),
        )


class Gemini:
    def __init__(self) -> None:
        self.dialect: ClientDialect = GeminiClient("m", "whole")
        self.history: list[Json] = []

    def body(self, tools: Iterable[str], *, stream: bool) -> Json:
        self.dialect = GeminiClient("m", "sse" if stream else "whole")
        declared = [{"name": name, "parametersJsonSchema": SCHEMA} for name in tools]
        more = {"tools": [{"functionDeclarations": declared}]} if declared else {}
        return {"contents": self.history, **more}

    def say(self, words: str) -> None:
        self.history.append({"role": "user", "parts": [{"text": words}]})

    def answer(self, results: list[tuple[Call, str]]) -> None:
        parts = [
            {"functionResponse": {"id": call.id, "name": call.name, "response": {"output": said}}}
            for call, said in results
        ]
        self.history.append({"role": "user", "parts": parts})

    def hear(self, data: bytes, *, stream: bool, keeps_thinking: bool) -> Seen:
        frames = (
            [frame.removeprefix(b"data: ") for frame in data.split(b"\r\n\r\n")[:-1]] if stream else [data]
        )
        chunks: list[Json] = [json.loads(frame) for frame in frames]
        assert len({chunk["responseId"] for chunk in chunks}) == 1
        parts = [
            part
            for chunk in chunks
            for candidate in chunk.get("candidates", ())
            for part in candidate["content"].get("parts", ())
        ]
        if not keeps_thinking:
            parts = [{k: v for k, v in part.items() if k != "thoughtSignature"} for part in parts]
        self.history.append({"role": "model", "parts": parts})
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        usage = chunks[-1]["usageMetadata"]
        written = usage.get("candidatesTokenCount", 0) + usage.get("thoughtsTokenCount", 0)
        return Seen(
            text="".join(part.get("text", "") for part in parts if not part.get("thought")),
            calls=[Call(call["id"], call["name"], call["args"]) for call in calls],
            finish="calls" if calls else "end",
            tokens=(usage["promptTokenCount"], written),
        )


class Bedrock:
    dialect: ClientDialect

    def __init__(self) -> None:
        self.history: list[Json] = []

    def body(self, tools: Iterable[str], *, stream: bool) -> Json:
        self.dialect = ConverseClient("m", stream=stream)
        specs = [{"toolSpec": {"name": name, "inputSchema": {"json": SCHEMA}}} for name in tools]
        more = {"toolConfig": {"tools": specs}} if specs else {}
        thinking = {"thinking": {"type": "adaptive"}}
        return {"messages": self.history, "additionalModelRequestFields": thinking, **more}

    def say(self, words: str) -> None:
        self.history.append({"role": "user", "content": [{"text": words}]})

    def answer(self, results: list[tuple[Call, str]]) -> None:
        blocks = [
            {"toolResult": {"toolUseId": call.id, "content": [{"text": said}]}} for call, said in results
        ]
        self.history.append({"role": "user", "content": blocks})

    def hear(self, data: bytes, *, stream: bool, keeps_thinking: bool) -> Seen:
        answer: Json = read_stream(data).as_whole() if stream else json.loads(data)
        content = answer["output"]["message"]["content"]
        kept = [block for block in content if keeps_thinking or "reasoningContent" not in block]
        self.history.append({"role": "assistant", "content": kept})
        uses = [block["toolUse"] for block in kept if "toolUse" in block]
        usage = answer["usage"]
        return Seen(
            text="".join(block["text"] for block in kept if "text" in block),
            calls=[Call(use["toolUseId"], use["name"], use["input"]) for use in uses],
            finish={"end_turn": "end", "tool_use": "calls"}.get(answer["stopReason"], ""),
            tokens=(usage["inputTokens"] + usage["cacheReadInputTokens"], usage["outputTokens"]),
        )


class Amazon:
    """Always a stream; the tools stand beside the last message."""

    dialect: ClientDialect = AmazonQ()

    def __init__(self) -> None:
        self.history: list[Json] = []

    def body(self, tools: Iterable[str], *, stream: bool) -> Json:
        *history, current = self.history
        asked = dict(current["userInputMessage"])
        declared = [q.tool(name, SCHEMA) for name in tools]
        asked["userInputMessageContext"] = {**asked.get("userInputMessageContext", {}), "tools": declared}
        state = {"conversationId": "c", "history": history, "currentMessage": {"userInputMessage": asked}}
        return {"conversationState": state}

    def say(self, words: str) -> None:
        self.history.append(q.user(words))

    def answer(self, results: list[tuple[Call, str]]) -> None:
        given = (q.result({"text": said}, identity=call.id, status="success") for call, said in results)
        self.history.append(q.results(*given))

    def hear(self, data: bytes, *, stream: bool, keeps_thinking: bool) -> Seen:
        found = strict_reader.read(data)
        uses = [q.use(tool.id, tool.name, input=tool.input) for tool in found.tools]
        thoughts = found.thoughts or found.signatures
        carried = q.reasoning(found.thoughts, "".join(found.signatures) or None)
        self.history.append(
            q.assistant(found.text, *uses, **(carried if thoughts and keeps_thinking else {}))
        )
        usage = found.usage
        return Seen(
            text=found.text,
            calls=[Call(tool.id, tool.name, tool.input) for tool in found.tools],
            finish={"END_TURN": "end", "TOOL_USE": "calls"}.get(found.stop_reason, ""),
            tokens=(usage["uncachedInputTokens"] + usage["cacheReadInputTokens"], usage["outputTokens"]),
        )


SPEAKERS: dict[str, Callable[[], Speaker]] = {
    "anthropic": Anthropic,
    "openai_chat": Chat,
    "openai_responses": Responses,
    "gemini": Gemini,
    "bedrock": Bedrock,
    "amazonq": Amazon,
}


class House:
    """The gateway's side: its own tools, what it remembers, and every request that went upstream."""

    def __init__(
        self,
        speaker: Speaker,
        *,
        own: Iterable[str],
        theirs: Iterable[str],
        keeps_store: bool = True,
        keeps_thinking: bool = True,
        stream: bool = True,
        limits: LoopLimits | None = None,
        keep: bool = False,
    ) -> None:
        self.speaker = speaker
        self.own = tuple(own)
        self.theirs = tuple(theirs)
        self.store: dict[str, str] = {}
        self.ran: list[ToolCall] = []
        self.sent: list[Json] = []
        self.sentinels = 0
        self.exchanges: list[Exchange] = []
        self._keeps_store = keeps_store
        self._keeps_thinking = keeps_thinking
        self._stream = stream
        self._keep = keep
        self._limits = limits or LoopLimits()
        self._tokens = (f"{number:016d}" for number in itertools.count(1))

    def turn(self, model: str) -> Seen:
        """One request of the client's and everything it sets off."""
        body = self.speaker.body(self.theirs, stream=self._stream)
        exchange = Exchange(self.speaker.dialect, new_id=lambda: next(self._tokens), keep_events=self._keep)
        self.exchanges.append(exchange)
        exchange.decode(json.dumps(body).encode())
        tools = [Tool(name=name, schema=json.dumps(SCHEMA).encode()) for name in self.own]
        if tools:
            exchange.add_tool_loop(ToolLoop(exchange.request, tools, limits=self._limits))
        recalled = recall(self.store, exchange)
        if exchange.tool_loop is not None:
            places = exchange.tool_loop.places
            exchange.tool_loop.set_stored_rounds(
                {key: self.store[key] for key in places if key in self.store}
            )
        out = b""
        while True:
            sent = exchange.encode(Target(model=model), recalled)
            if not out:
                out = exchange.open()
            out += self._receive(exchange, model, sent, stream=exchange.request.stream)
            calls = exchange.gateway_calls
            if not calls:
                break
            self.ran += calls
            exchange.add_results([self.answer_of(call) for call in calls])
            if not exchange.needs_another_round:
                break
        out += exchange.finish()
        if self._keeps_store:
            self.store.update(exchange.store_entries)
        stream = exchange.request.stream
        return self.speaker.hear(out, stream=stream, keeps_thinking=self._keeps_thinking)

    def answer_of(self, call: ToolCall) -> ToolResult:
        said = f"{call.name} found {call.args.decode()}"
        return ToolResult(call_id=call.id, name=call.name, content=(Text(text=said),))

    def _receive(self, exchange: Exchange, model: str, sent: bytes, *, stream: bool) -> bytes:
        self.sent.append(json.loads(sent))
        self.sentinels += sent.count(SENTINEL.encode())
        status, answer = ask(model, sent, stream=stream)
        assert status == 200, f"{model}: {answer.decode()}\n{sent.decode()}"
        out = exchange.receive(answer) + exchange.end()
        assert exchange.failure is None
        if self._keeps_store:
            self.store.update(exchange.store_entries)
        return out
