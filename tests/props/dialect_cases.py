"""Each dialect with what its clients may ask, how they put a stream together, and what we remember of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import msgspec
from hypothesis import strategies as st

from dragoman.dialects import amazonq, anthropic, bedrock, openai_chat
from dragoman.dialects.amazonq import AmazonQ, editor_state
from dragoman.dialects.base import ClientDialect
from dragoman.dialects.bedrock import ConverseClient
from dragoman.translation.exchange import Exchange
from tests.corpus import check
from tests.props import exchange_harness
from tests.unit.dialects.amazonq.builders import tool
from tests.unit.dialects.amazonq.strategies import conversations as q_conversations
from tests.unit.dialects.anthropic.strategies import conversations as anthropic_conversations
from tests.unit.dialects.anthropic.stream_checks import assembled
from tests.unit.dialects.bedrock.grammar import read_stream
from tests.unit.dialects.bedrock.strategies import conversations as bedrock_conversations
from tests.unit.dialects.openai_chat.strategies import conversations as chat_conversations
from tests.unit.dialects.openai_chat.stream_checks import folded, tidy

Json = dict[str, Any]


class Wire(msgspec.Struct, frozen=True, kw_only=True):
    """Where `asks_stream`, a field of the body says whether the answer is streamed; elsewhere the address does."""

    client: Callable[[bool], ClientDialect]
    conversations: st.SearchStrategy[Json]
    questions: st.SearchStrategy[Json]  # one question, with tools, thinking about it or not
    memos: tuple[tuple[ModuleType, str], ...]
    asks_stream: bool = False
    fold: Callable[[bytes], Json] = json.loads
    whole: Callable[[bytes], Json] = json.loads

    def exchange(self, request: Json, model: str) -> tuple[Exchange, bytes]:
        stream = bool(request.get("stream"))
        return exchange_harness.exchange(self.client(stream), request, model, stream=stream)

    def client_bytes(self, request: Json, pieces: list[bytes], *, stream: bool) -> tuple[bytes, Any]:
        asked = {**request, "stream": stream} if self.asks_stream else request
        return exchange_harness.client_bytes(self.client(stream), asked, pieces, stream=stream)


def _questions(request: Json, *fields: list[Json]) -> st.SearchStrategy[Json]:
    """The request with one of each."""
    chosen = st.tuples(*map(st.sampled_from, fields))
    return chosen.map(
        lambda several: {**request, **{key: item for one in several for key, item in one.items()}}
    )


def _message(data: bytes) -> Json:
    message: Json = json.loads(data)
    assert check.anthropic_message_problems(message) == []
    return message


_ANTHROPIC_THINKING: list[Json] = [
    {},
    {"thinking": {"type": "adaptive"}},
    {"thinking": {"type": "disabled"}},
]
_CHAT_FUNCTIONS: list[Json] = [{"name": "Read", "parameters": {"type": "object"}}, {"name": "Bash"}]
_CHAT_FORMS: list[Json] = [
    {"tools": [{"type": "function", "function": function} for function in _CHAT_FUNCTIONS]},
    {"tools": [{"type": "custom", "custom": {"name": "Read"}}]},
    {"functions": _CHAT_FUNCTIONS},
]
_CHAT_THINKING: list[Json] = [{}, {"reasoning_effort": "high"}, {"reasoning_effort": "none"}]
_ADAPTIVE: Json = {"additionalModelRequestFields": {"thinking": {"type": "adaptive"}}}
_SPEC: Json = {"name": "Read", "inputSchema": {"json": {"type": "object"}}}
_Q_TOOLS = [tool("Read", {"type": "object"}), tool("Bash")]

WIRES: dict[str, Wire] = {
    "anthropic": Wire(
        client=lambda _stream: anthropic,
        conversations=anthropic_conversations(),
        questions=_questions(
            {
                "model": "claude-x",
                "max_tokens": 9000,
                "messages": [{"role": "user", "content": "q"}],
                "tools": [
                    {"name": "Read", "input_schema": {"type": "object"}},
                    {"name": "Bash", "input_schema": {}},
                ],
            },
            _ANTHROPIC_THINKING,
        ),
        memos=((anthropic.tools, "_TOOL_SETS"),),
        asks_stream=True,
        fold=assembled,
        whole=_message,
    ),
    "openai_chat": Wire(
        client=lambda _stream: openai_chat,
        conversations=chat_conversations(),
        questions=_questions(
            {
                "model": "gpt-x",
                "messages": [{"role": "user", "content": "q"}],
                "stream_options": {"include_usage": True},
            },
            _CHAT_THINKING,
            _CHAT_FORMS,
        ),
        memos=((openai_chat.tools, "_TOOL_SETS"),),
        asks_stream=True,
        fold=folded,
        whole=lambda data: tidy(json.loads(data)),
    ),
    "bedrock": Wire(
        client=lambda stream: ConverseClient("m", stream=stream),
        conversations=bedrock_conversations(),
        questions=_questions(
            {
                "messages": [{"role": "user", "content": [{"text": "q"}]}],
                "toolConfig": {"tools": [{"toolSpec": _SPEC}, {"toolSpec": {**_SPEC, "name": "Bash"}}]},
                "additionalModelResponseFieldPaths": ["/usage"],
            },
            [{}, _ADAPTIVE, {"outputConfig": {"effort": "low"}}],
        ),
        memos=((bedrock.tools, "_TOOL_SETS"),),
        fold=lambda data: read_stream(data).as_whole(),
    ),
    "amazonq": Wire(
        client=lambda _stream: AmazonQ(),
        conversations=q_conversations(),
        questions=_questions(
            {
                "conversationState": {
                    "conversationId": "c",
                    "currentMessage": {
                        "userInputMessage": {
                            "content": "q",
                            "userInputMessageContext": {"tools": _Q_TOOLS},
                        }
                    },
                }
            },
            [{}, _ADAPTIVE],
        ),
        memos=((editor_state, "_MESSAGES"), (amazonq.tools, "_ENTRIES")),
    ),
}
