"""Decode a Chat Completions request to the neutral `Request`."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import msgspec

from dragoman import jsontext
from dragoman.dialects.base import EFFORTS, Decoded, Headers
from dragoman.dialects.openai_chat.encode import Echo
from dragoman.dialects.openai_chat.messages import DecodedMessage, decode_message
from dragoman.dialects.openai_chat.tools import (
    ToolSet,
    decode_legacy_choice,
    decode_search,
    decode_tool_choice,
    decode_tool_set,
)
from dragoman.dialects.openai_chat.wire import Body, WireFormat, decode_body, decode_schema
from dragoman.dialects.openai_chat.wire import decode_message as decode_wire_message
from dragoman.errors import InvalidRequest
from dragoman.incremental.decode import TOOLS_FIELD, BodySpec, decode_incrementally
from dragoman.incremental.fold import derive, join_messages
from dragoman.incremental.items import DecodedHistory, absolute_notes
from dragoman.ir import Message, OutputFormat, Request, Sampling, Text, Thinking, ToolChoice, ToolResult
from dragoman.notes import Note

#: Fields that are dropped with a note -> the reason in the note.
_DROPPED: dict[str, str] = {
    "audio": "answers are text only",
    "enable_thinking": "reasoning_effort says how hard to think",
    "extra_body": "it belongs to another gateway",
    "logit_bias": "Gemini's tokens are others",
    "logprobs": "Gemini gives no log probabilities here",
    "metadata": "answers are not stored here",
    "min_p": "Gemini has no such setting",
    "moderation": "Gemini moderates by its own rules",
    "prediction": "Gemini takes no predicted output",
    "prompt_cache_options": "Gemini caches by itself",
    "prompt_cache_retention": "Gemini caches by itself",
    "reasoning": "reasoning_effort says how hard to think",
    "repetition_penalty": "Gemini has no such setting",
    "safety_identifier": "Gemini is not told who asks",
    "service_tier": "there is one tier here",
    "store": "answers are not stored here",
    "thinking": "reasoning_effort says how hard to think",
    "top_logprobs": "Gemini gives no log probabilities here",
    "user": "Gemini is not told who asks",
    "verbosity": "Gemini has no such setting",
}
#: Values that have no effect, for which no note is needed.
_WITHOUT_EFFECT = frozenset({b"", b"null", b"false", b"0", b"{}", b"[]", b'"auto"', b'"default"', b'""'})


def _merge_messages(
    before: tuple[Message, ...], _: Sequence[DecodedMessage], new: Sequence[DecodedMessage]
) -> tuple[Message, ...]:
    """Return the messages with the new items; neighbouring tool results become one message."""
    messages = list(before)
    for piece in new:
        message = piece.message
        if messages and _brings_result(message) and _brings_result(messages[-1]):
            messages[-1] = join_messages(messages[-1], message)
        else:
            messages.append(message)
    return tuple(messages)


def _brings_result(message: Message) -> bool:
    return message.role == "user" and bool(message.parts) and isinstance(message.parts[0], ToolResult)


def decode_request(body: bytes, headers: Headers) -> Decoded:  # noqa: ARG001 (Chat needs no headers)
    """Decode a request body; raise `InvalidRequest` if it is invalid or cannot be served."""
    return decode_incrementally(_SPEC, body)


def _assemble(envelope: Decoded, history: DecodedHistory[DecodedMessage]) -> Decoded:
    instructions, messages, moved = _split_system(history.messages)
    request = msgspec.structs.replace(envelope.request, messages=messages, system=_system(instructions))
    notes = (*envelope.notes, *moved, *absolute_notes("messages", history))
    return Decoded(request, notes, envelope.echo)


def _decode_envelope(wire: Body, *_: object) -> Decoded:
    """Decode everything except the messages."""
    tool_set, choice, legacy = _tools(wire)
    thinking, unknown = _thinking(wire.reasoning_effort)
    request = Request(
        model=wire.model,
        messages=(),
        tools=tool_set.tools,
        server_tools=()
        if choice.mode == "none"
        else tool_set.server_tools + decode_search(wire.web_search_options),
        tool_choice=choice,
        thinking=thinking,
        sampling=_sampling(wire),
        output=_output(wire.response_format),
        stream=bool(wire.stream),
        session=wire.prompt_cache_key or "",
    )
    include_usage = wire.stream_options is not None and bool(wire.stream_options.include_usage)
    echo = Echo(include_usage=include_usage, legacy=legacy, custom=tool_set.custom)
    return Decoded(request, (*tool_set.notes, *unknown, *_dropped(wire)), echo)


def _refuse_unservable(wire: Body) -> None:
    if not wire.messages:
        raise InvalidRequest("at least one message is required", where="messages")
    if wire.n not in (None, 1):
        raise InvalidRequest("one request gets one answer here: ask again for another", where="n")
    for index, kind in enumerate(wire.modalities or ()):
        if kind != "text":
            raise InvalidRequest(f"answers are text only, not {kind}", where=f"modalities[{index}]")


def _message(raw: bytes, where: str) -> DecodedMessage:
    return decode_message(jsontext.decode(decode_wire_message, raw, where))


def _tools(wire: Body) -> tuple[ToolSet, ToolChoice, bool]:
    """Return the tools, the choice, and whether they use the deprecated `functions` and `function_call`."""
    tool_set = decode_tool_set(bytes(wire.tools), "tools")
    functions = decode_tool_set(bytes(wire.functions), "functions")
    if functions.tools and not tool_set.tools:
        return functions, decode_legacy_choice(wire.function_call), True
    if functions.tools:
        lost = Note("dropped", "functions", "tools are the newer form of them")
        tool_set = msgspec.structs.replace(tool_set, notes=(*tool_set.notes, lost))
    parallel = wire.parallel_tool_calls is not False
    return tool_set, decode_tool_choice(wire.tool_choice, parallel=parallel), False


def _split_system(
    messages: tuple[Message, ...],
) -> tuple[tuple[Message, ...], tuple[Message, ...], tuple[Note, ...]]:
    """Return the leading system messages, the other messages, and notes.

    Later system messages stay where they are. If there are only system messages, the last one becomes a user message,
    because Gemini requires one.
    """
    start = next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))
    moved: tuple[Note, ...] = ()
    if start == len(messages):
        start -= 1
        messages = (*messages[:start], Message(role="user", parts=messages[start].parts))
        why = "nobody says anything behind these instructions; they are sent as the user's words"
        moved = (Note("moved", f"messages[{start}]", why),)
    return messages[:start], messages[start:], moved


def _system(instructions: tuple[Message, ...]) -> tuple[Text, ...]:
    """Return the system prompt; the same object with every turn, because that is fast to compare."""
    if not instructions:
        return ()
    return derive(instructions[0], "system", instructions[1:], _join_texts, instructions)


def _join_texts(instructions: tuple[Message, ...]) -> tuple[Text, ...]:
    parts = (part for message in instructions for part in message.parts)
    return tuple(part for part in parts if isinstance(part, Text) and part.text)


def _thinking(word: str | None) -> tuple[Thinking, tuple[Note, ...]]:
    if not word:
        return Thinking(), ()
    if word == "none":
        return Thinking(mode="off"), ()
    effort = EFFORTS.get(word)
    if effort is None:
        return Thinking(), (Note("dropped", "reasoning_effort", f"{word!r} is not known"),)
    return Thinking(mode="on", effort=effort, show=True), ()


def _sampling(wire: Body) -> Sampling:
    stop = [wire.stop] if isinstance(wire.stop, str) else wire.stop or ()
    newer = wire.max_completion_tokens
    return Sampling(
        max_tokens=newer if newer is not None else wire.max_tokens,
        temperature=wire.temperature,
        top_p=wire.top_p,
        top_k=wire.top_k,
        seed=wire.seed,
        presence_penalty=wire.presence_penalty,
        frequency_penalty=wire.frequency_penalty,
        stop=tuple(stop),
    )


def _output(wire: WireFormat | None) -> OutputFormat | None:
    if wire is None or wire.type == "text":
        return None
    if wire.type == "json_object":
        return OutputFormat()
    if wire.type != "json_schema":
        known = "text, json_object, json_schema"
        raise InvalidRequest(f"{wire.type!r} is not one of {known}", where="response_format.type")
    where = "response_format.json_schema.schema"
    schema = jsontext.validate_text(bytes(wire.json_schema.schema) if wire.json_schema else b"", where)
    if not schema or schema == b"null":
        return OutputFormat()
    jsontext.decode(decode_schema, schema, where)
    return OutputFormat(schema=schema)


def _dropped(wire: Body) -> list[Note]:
    notes = [
        Note("dropped", field, why)
        for field, why in _DROPPED.items()
        if bytes(getattr(wire, field)) not in _WITHOUT_EFFECT
    ]
    options = wire.web_search_options
    if options is not None and options.search_context_size not in (None, "medium"):
        why = "Google decides by itself how much it reads"
        notes.append(Note("dropped", "web_search_options.search_context_size", why))
    return notes


_SPEC: BodySpec[Body, DecodedMessage, Decoded, Decoded] = BodySpec(
    name="chat",
    key="messages",
    tools=TOOLS_FIELD,
    parse=lambda body: jsontext.decode_leniently(decode_body, body),
    check=_refuse_unservable,
    elements=operator.attrgetter("messages"),
    decode_item=_message,
    merge_items=_merge_messages,
    is_annotated=operator.attrgetter("notes"),
    decode_envelope=_decode_envelope,
    assemble=_assemble,
)
