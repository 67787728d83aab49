"""What an answer repeats of its request, and how the client knows the tools it will be asked to run."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.openai_responses.tools import Face, ToolSet, flatten
from dragoman.dialects.openai_responses.wire import Body

#: Field of the answer -> what stands there when the request does not say.
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
    """`carries`: reasoning items are wanted, with what they encrypt; `compacts`: the answer is a summary.

    `includes` is what else the client asked to see, `sources` the tools as it declared them.
    """

    fields: dict[str, Any] = msgspec.field(default_factory=lambda: DEFAULTS)
    faces: dict[str, Face] = {}
    sources: tuple[bytes, ...] = ()
    carries: bool = False
    compacts: bool = False
    includes: frozenset[str] = frozenset()

    def face(self, name: str) -> Face:
        return self.faces.get(name) or Face(name=name)


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
        faces=tool_set.faces,
        sources=tool_set.sources,
        carries=carries,
        compacts=compacts,
        includes=frozenset(wire.include or ()),
    )


def _raw(raw: msgspec.Raw, where: str) -> msgspec.Raw | None:
    """A copy, on one line: the field must not keep the whole request's bytes alive, nor break an event."""
    value = jsontext.checked(bytes(raw), where)
    return None if value in (b"", b"null") else msgspec.Raw(msgspec.json.format(value, indent=-1))


def _choice(raw: msgspec.Raw) -> msgspec.Raw | None:
    value = _raw(raw, "tool_choice")
    return None if value is None else msgspec.Raw(flatten(bytes(value), "tool_choice"))
