"""Encode the response object, for complete answers and for the events that contain it.

`Echo` is the request data that an answer needs: repeated fields, and the client's names of the tools.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.base import Answer
from dragoman.dialects.openai_responses.tools import ClientTool, ToolSet, flatten
from dragoman.dialects.openai_responses.wire import Body
from dragoman.ir import Finished, StopReason, Usage

#: Fields of the answer that repeat the request -> default value.
DEFAULTS: dict[str, Any] = {
    "background": False,
    "conversation": None,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}


class Echo(msgspec.Struct, frozen=True, kw_only=True):
    """What the answer needs of its request.

    `fields` are repeated in the answer. `faces` maps the function names that Gemini knows to the client's tools.
    `sources` are the client's lists of tools, as JSON. `carries` means that the client wants reasoning items, which
    also carry signatures. `compacts` means that the answer is a compaction. `includes` is the request's `include`.
    """

    fields: dict[str, Any] = msgspec.field(default_factory=lambda: DEFAULTS)
    client_tools: dict[str, ClientTool] = {}
    sources: tuple[bytes, ...] = ()
    carries: bool = False
    compacts: bool = False
    includes: frozenset[str] = frozenset()

    def client_tool(self, name: str) -> ClientTool:
        """Return the client's tool for a function name; an undeclared name is a plain function."""
        return self.client_tools.get(name) or ClientTool(name=name)


def make_echo(wire: Body, tool_set: ToolSet, *, carries: bool, compacts: bool) -> Echo:
    conversation = wire.conversation_id
    given: dict[str, Any] = {
        "conversation": {"id": conversation} if conversation else None,
        "instructions": wire.instructions,
        "max_output_tokens": wire.max_output_tokens,
        "max_tool_calls": wire.max_tool_calls,
        "metadata": _raw(wire.metadata, "metadata"),
        "parallel_tool_calls": wire.parallel_tool_calls,
        "previous_response_id": wire.previous_response_id,
        "prompt_cache_key": wire.prompt_cache_key,
        "reasoning": _raw(wire.reasoning, "reasoning"),
        "safety_identifier": wire.safety_identifier,
        "store": wire.store,
        "temperature": wire.temperature,
        "text": _raw(wire.text, "text"),
        "tool_choice": _choice(wire.tool_choice),
        "tools": msgspec.Raw(tool_set.raw),
        "top_logprobs": wire.top_logprobs,
        "top_p": wire.top_p,
        "truncation": wire.truncation,
        "user": wire.user,
    }
    known = {key: value for key, value in given.items() if value is not None}
    return Echo(
        fields={**DEFAULTS, **known},
        client_tools=tool_set.client_tools,
        sources=tool_set.sources,
        carries=carries,
        compacts=compacts,
        includes=frozenset(wire.include or ()),
    )


def _raw(raw: msgspec.Raw, where: str) -> msgspec.Raw | None:
    """Return a compact copy of a JSON value, or None for null.

    `msgspec.Raw` is a view of the whole body and would keep it in memory; a newline would break an SSE event.
    """
    value = jsontext.validate_text(bytes(raw), where)
    return None if value in (b"", b"null") else msgspec.Raw(msgspec.json.format(value, indent=-1))


def _choice(raw: msgspec.Raw) -> msgspec.Raw | None:
    value = _raw(raw, "tool_choice")
    return None if value is None else msgspec.Raw(flatten(bytes(value), "tool_choice"))


_json = msgspec.json.Encoder().encode

#: Stop reason -> status of the response, and the reason in `incomplete_details`.
_STATUS: dict[StopReason, tuple[str, str | None]] = {
    "end": ("completed", None),
    "tool_calls": ("completed", None),
    "max_tokens": ("incomplete", "max_output_tokens"),
    "blocked": ("incomplete", "content_filter"),
    "malformed": ("incomplete", "content_filter"),
    "other": ("completed", None),
}


def encode_count(tokens: int) -> bytes:
    return b'{"object":"response.input_tokens","input_tokens":%d}' % tokens


def echo_of(answer: Answer) -> Echo:
    return answer.echo if isinstance(answer.echo, Echo) else Echo()


def status_of(finished: Finished) -> tuple[str, str | None]:
    """Return the status of a response, and the reason if it is incomplete."""
    return _STATUS[finished.reason]


def encode_body(
    answer: Answer,
    status: str,
    *,
    output: list[bytes] | None = None,
    usage: Usage | None = None,
    incomplete: str | None = None,
    error: dict[str, Any] | None = None,
) -> bytes:
    """Encode a response object; `output` are the output items as JSON."""
    body: dict[str, Any] = {
        "id": answer.id,
        "object": "response",
        "created_at": answer.created_s,
        "status": status,
        "error": error,
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "model": answer.model,
        "output": [msgspec.Raw(item) for item in output or ()],
        "usage": _usage(usage, answer) if usage is not None else None,
        **echo_of(answer).fields,
    }
    return _json(body)


def _usage(usage: Usage, answer: Answer) -> dict[str, Any]:
    """Encode token counts. As at Google, input includes cached tokens and output includes reasoning tokens."""
    entered = usage.input_tokens or answer.input_tokens
    return {
        "input_tokens": entered,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.thought_tokens},
        "total_tokens": entered + usage.output_tokens,
    }
