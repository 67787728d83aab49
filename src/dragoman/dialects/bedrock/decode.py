"""Decode a Converse request into a neutral request.

The body of CountTokens wraps a Converse or an InvokeModel request.
"""

from __future__ import annotations

import base64
import operator

import msgspec

from dragoman import jsontext
from dragoman.dialects.base import ClientDialect, Decoded, Headers
from dragoman.dialects.bedrock.blocks import DecodedMessage, ToolChange, decode_message, read_guarded
from dragoman.dialects.bedrock.encode import Echo
from dragoman.dialects.bedrock.invoke import decode_invoked
from dragoman.dialects.bedrock.model_fields import (
    decode_fields,
    decode_output,
    decode_sampling,
    decode_thinking,
)
from dragoman.dialects.bedrock.tools import AnthropicChoice, decode_tool_choice, decode_tool_set
from dragoman.dialects.bedrock.wire import (
    Body,
    InferenceConfig,
    OneOf,
    OutputConfig,
    ToolConfig,
    decode_body,
    decode_count,
    member,
    read_text,
)
from dragoman.dialects.bedrock.wire import decode_invoked as decode_wire_invoked
from dragoman.dialects.bedrock.wire import decode_message as decode_wire_message
from dragoman.errors import InvalidRequest
from dragoman.incremental.decode import BodySpec, decode_incrementally
from dragoman.incremental.items import DecodedHistory, absolute_notes
from dragoman.ir import Request, Text, Tool
from dragoman.notes import Note

#: Settings that are dropped: field -> name on the wire and the reason.
_DROPPED: dict[str, tuple[str, str]] = {
    "guardrail_config": ("guardrailConfig", "Bedrock's guardrails do not run here"),
    "performance_config": ("performanceConfig", "there is one speed here"),
    "request_metadata": ("requestMetadata", "Gemini is not told who asks"),
    "service_tier": ("serviceTier", "there is one tier here"),
}
_EMPTY = frozenset({b"", b"null", b"{}"})

#: Paths in `additionalModelResponseFieldPaths` that ask for the number of thinking tokens.
_THOUGHT_TOKENS = frozenset(
    {"/usage", "/usage/output_tokens_details", "/usage/output_tokens_details/thinking_tokens"}
)


def decode_request(body: bytes, model: str, *, stream: bool) -> Decoded:
    """Decode a request; `model` comes from the URL, and the body's `modelId` is used if it is empty."""
    return decode_incrementally(_SPEC, body, (model, stream))


def _assemble(envelope: Decoded, history: DecodedHistory[DecodedMessage]) -> Decoded:
    request = msgspec.structs.replace(envelope.request, messages=history.messages)
    return Decoded(request, (*envelope.notes, *absolute_notes("messages", history)), envelope.echo)


def _collect_changes(history: DecodedHistory[DecodedMessage], _: object) -> tuple[ToolChange, ...]:
    return tuple(change for index in history.annotated for change in history.items[index].changes)


def _decode_envelope(
    wire: Body, _: object, changes: tuple[ToolChange, ...], url: tuple[str, bool]
) -> Decoded:
    """Decode everything except the messages; the URL names the model and whether the answer is a stream."""
    model, stream = url
    notes: list[Note] = []
    fields, unknown = decode_fields(bytes(wire.additional_model_request_fields))
    output = wire.output_config or OutputConfig()
    config = wire.tool_config or ToolConfig()
    tool_set = decode_tool_set(bytes(config.tools))
    choice = decode_tool_choice(config.tool_choice, fields.tool_choice or AnthropicChoice(), tool_set)
    thinking, thinking_notes = decode_thinking(fields, output)
    request = Request(
        model=model or wire.model_id or "",
        messages=(),
        system=_system(wire.system or [], notes),
        tools=_available(tool_set.tools, changes, frozenset(choice.tools.names)),
        server_tools=choice.server_tools,
        tool_choice=choice.tools,
        thinking=thinking,
        sampling=decode_sampling(wire.inference_config or InferenceConfig(), fields),
        output=decode_output(output, fields),
        stream=stream,
    )
    echo = _echo(wire.additional_model_response_field_paths or [], notes)
    return Decoded(request, (*tool_set.notes, *unknown, *thinking_notes, *_dropped(wire), *notes), echo)


def _refuse_unservable(wire: Body) -> None:
    if wire.prompt_variables:
        raise InvalidRequest("prompts are not kept here: send the messages", where="promptVariables")
    if not wire.messages:
        raise InvalidRequest("at least one message is required", where="messages")


def _message(raw: bytes, where: str) -> DecodedMessage:
    return decode_message(jsontext.decode(decode_wire_message, raw, where))


def _system(blocks: list[OneOf], notes: list[Note]) -> tuple[Text, ...]:
    texts: list[Text] = []
    for index, block in enumerate(blocks):
        where = f"system[{index}]"
        kind, raw = member(block, where)
        if kind == "text":
            texts.append(Text(text=read_text(raw, f"{where}.text")))
        elif kind == "guardContent":
            texts += _guarded_text(raw, f"{where}.{kind}", notes)
        elif kind != "cachePoint":  # Gemini caches implicitly
            raise InvalidRequest(f"{kind!r} cannot stand here: use text", where=where)
    return tuple(text for text in texts if text.text)


def _guarded_text(raw: msgspec.Raw, where: str, notes: list[Note]) -> list[Text]:
    texts = [part for part in read_guarded(raw, where, notes) if isinstance(part, Text)]
    if not texts:
        raise InvalidRequest("the system's instructions are text", where=where)
    return texts


def _available(
    tools: tuple[Tool, ...], changes: tuple[ToolChange, ...], chosen: frozenset[str]
) -> tuple[Tool, ...]:
    """Return the tools without those that the messages removed; a tool that is chosen by name stays."""
    removed: set[str] = set()
    for change in changes:
        if change.available:
            removed.discard(change.name)
        else:
            removed.add(change.name)
    removed -= chosen
    return tuple(tool for tool in tools if tool.name not in removed) if removed else tools


def _echo(paths: list[str], notes: list[Note]) -> Echo:
    for index, path in enumerate(paths):
        if path not in _THOUGHT_TOKENS:
            where = f"additionalModelResponseFieldPaths[{index}]"
            notes.append(Note("dropped", where, "Gemini's answer has no such field"))
    return Echo(thought_tokens=not _THOUGHT_TOKENS.isdisjoint(paths))


def _dropped(wire: Body) -> list[Note]:
    return [
        Note("dropped", name, why)
        for field, (name, why) in _DROPPED.items()
        if bytes(getattr(wire, field)) not in _EMPTY
    ]


def decode_count_request(body: bytes, headers: Headers, model: str, inner: ClientDialect) -> Decoded:
    """Decode the wrapped request; `inner` decodes the body of InvokeModel.

    Raise `InvalidRequest` with the place inside the wrapper.
    """
    kind, raw = member(jsontext.decode_leniently(decode_count, body).input, "input")
    where = f"input.{kind}"
    if kind not in ("converse", "invokeModel"):
        raise InvalidRequest(f"{kind!r} is not understood: use converse or invokeModel", where=where)
    try:
        if kind == "converse":
            return decode_request(bytes(raw), model, stream=False)
        invoked = jsontext.decode(decode_wire_invoked, raw, "")
        where = f"{where}.body"
        return decode_invoked(inner, _from_base64(invoked.body), headers, model, stream=False)
    except InvalidRequest as error:
        error.where = f"{where}.{error.where}" if error.where else where
        raise


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise InvalidRequest("this is not base64") from None


_MESSAGE = operator.attrgetter("message")
_SPEC: BodySpec[Body, DecodedMessage, Decoded, Decoded] = BodySpec(
    name="bedrock",
    key="messages",
    parse=lambda body: jsontext.decode_leniently(decode_body, body),
    check=_refuse_unservable,
    elements=lambda wire: wire.messages or (),
    decode_item=_message,
    merge_items=lambda before, _, new: (*before, *map(_MESSAGE, new)),
    is_annotated=lambda decoded: decoded.changes or decoded.notes,
    collect_changes=_collect_changes,
    decode_envelope=_decode_envelope,
    assemble=_assemble,
)
