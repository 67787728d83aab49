"""Decode a request with a `conversationState` into a neutral request.

`additionalModelRequestFields` holds thinking and sampling in the format of Anthropic's or OpenAI's API.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence

import msgspec

from dragoman import jsontext
from dragoman.dialects.amazonq.editor_state import editor_state_messages
from dragoman.dialects.amazonq.messages import CONTEXT, USER, DecodedMessage, decode_message
from dragoman.dialects.amazonq.tools import decode_tools
from dragoman.dialects.amazonq.wire import (
    Body,
    ModelFields,
    decode_body,
    decode_chat_message,
    decode_model_fields,
    decode_object,
)
from dragoman.dialects.base import Decoded, HeaderList
from dragoman.dialects.thinking import decode_thinking
from dragoman.errors import InvalidRequest
from dragoman.incremental.decode import BodySpec, decode_incrementally
from dragoman.incremental.items import DecodedHistory, absolute_notes, decode_at
from dragoman.ir import Message, Request, Sampling, Text, Thinking
from dragoman.notes import Note

_PLACE = "additionalModelRequestFields"
_KNOWN = frozenset(ModelFields.__struct_fields__)


class ModelSettings(msgspec.Struct, frozen=True):
    thinking: Thinking = Thinking()
    sampling: Sampling = Sampling()
    notes: tuple[Note, ...] = ()


def decode_model_settings(raw: bytes) -> ModelSettings:
    wire = jsontext.decode(decode_model_fields, raw or b"null", _PLACE)
    if wire is None:
        return ModelSettings()
    names = jsontext.decode(decode_object, raw, _PLACE) or {}
    thinking, notes = _thinking(wire)
    dropped = [
        Note("dropped", f"{_PLACE}.{name}", "Gemini has no such setting")
        for name, value in names.items()
        if name not in _KNOWN and bytes(value) != b"null"
    ]
    sampling = Sampling(
        max_tokens=wire.max_tokens,
        temperature=wire.temperature,
        top_p=wire.top_p,
        top_k=wire.top_k,
        stop=tuple(wire.stop_sequences or ()),
    )
    return ModelSettings(thinking, sampling, (*notes, *dropped))


def _thinking(wire: ModelFields) -> tuple[Thinking, list[Note]]:
    """Decode thinking; `reasoning` alone, as OpenAI's models use it, also turns thinking on."""
    reasoning = wire.reasoning.effort if wire.reasoning is not None else None
    if reasoning == "none":
        return Thinking(mode="off"), []
    effort = wire.output_config.effort if wire.output_config is not None else wire.effort
    thinking, notes = decode_thinking(wire.thinking, reasoning or effort, f"{_PLACE}.")
    if reasoning and thinking.mode == "default":
        thinking = msgspec.structs.replace(thinking, mode="on", show=True)
    return thinking, notes


_HISTORY = "conversationState.history"
_CURRENT = "conversationState.currentMessage"


def _with_editor_state(
    before: tuple[Message, ...], earlier: Sequence[DecodedMessage], new: Sequence[DecodedMessage]
) -> tuple[Message, ...]:
    """Append the `new` messages to those `before`, with a system message wherever the states change.

    `earlier` are the decoded messages that `before` was made of.
    """
    told: dict[str, str] = {}
    for states in filter(None, map(_STATES, earlier)):
        told.update(states)
    messages = list(before)
    for piece in new:
        messages += piece.messages
        if piece.states:
            messages += editor_state_messages(piece.states, told)
            told.update(piece.states)
    return tuple(messages)


_STATES = operator.attrgetter("states")
_HEADER_WORD = re.compile(r"[\x21-\x7e]{1,256}")


class Echo(msgspec.Struct, frozen=True):
    """Values for the answer: the conversation id, and whether the client expects Kiro's exception names."""

    conversation_id: str = ""
    kiro: bool = False


_Envelope = tuple[Body, DecodedMessage, Echo]


def decode_request(body: bytes, echo: Echo) -> Decoded:
    """Decode a request; `echo.conversation_id` is used if the client has not named the conversation."""
    return decode_incrementally(_SPEC, body, echo)


def _refuse_dry_run(wire: Body) -> None:
    if wire.dry_run:
        raise InvalidRequest("a dry run is not offered here", where="dryRun")


def _decode_envelope(wire: Body, _tools: object, _changes: object, echo: Echo) -> _Envelope:
    """Decode the current message. The rest stays as it is: this envelope never comes again."""
    current = decode_at(_CURRENT, bytes(wire.conversation_state.current_message), _message)
    return wire, current, echo


def _assemble(envelope: _Envelope, history: DecodedHistory[DecodedMessage]) -> Decoded:
    wire, current, echo = envelope
    messages = _with_editor_state(history.messages, history.items, (current,))
    if not messages:
        raise InvalidRequest("there is nothing in this message", where=f"{_CURRENT}{USER}.content")
    tuning = decode_model_settings(bytes(wire.additional_model_request_fields))
    name = wire.conversation_state.conversation_id or echo.conversation_id
    request = Request(
        model=current.model,
        messages=messages,
        system=(Text(text=wire.system_prompt),) if wire.system_prompt else (),
        tools=decode_tools(current.tools, f"{_CURRENT}{CONTEXT}.tools"),
        thinking=tuning.thinking,
        sampling=tuning.sampling,
        stream=True,
        session=name,
    )
    notes = (
        *tuning.notes,
        *absolute_notes(_HISTORY, history),
        *_ignored_tools(history),
        *(Note(note.kind, _CURRENT + note.where, note.why) for note in current.notes),
    )
    return Decoded(request, notes, msgspec.structs.replace(echo, conversation_id=name), _headers(name))


def _message(raw: bytes, where: str) -> DecodedMessage:
    return decode_message(jsontext.decode(decode_chat_message, raw, where))


def _ignored_tools(history: DecodedHistory[DecodedMessage]) -> list[Note]:
    return [
        Note("dropped", f"{_HISTORY}[{index}]{CONTEXT}.tools", "the tools of the current message count")
        for index in history.annotated
        if history.items[index].tools
    ]


def _headers(name: str) -> HeaderList:
    return (("x-amzn-codewhisperer-conversation-id", name),) if _HEADER_WORD.fullmatch(name) else ()


_SPEC: BodySpec[Body, DecodedMessage, _Envelope, Decoded] = BodySpec(
    name="amazonq",
    key="history",
    path=_HISTORY,
    has_stable_envelope=False,
    parse=lambda body: jsontext.decode_leniently(decode_body, body),
    check=_refuse_dry_run,
    elements=lambda wire: wire.conversation_state.history or (),
    decode_item=_message,
    merge_items=_with_editor_state,
    is_annotated=lambda decoded: decoded.notes or decoded.tools,
    decode_envelope=_decode_envelope,
    assemble=_assemble,
)
