"""Decode a Messages request to the neutral `Request`."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from itertools import chain

import msgspec

from dragoman import jsontext
from dragoman.dialects.anthropic.blocks import DecodedMessage, decode_message
from dragoman.dialects.anthropic.tools import (
    ToolSet,
    decode_tool_choice,
    decode_tool_set,
    extend,
    read_mcp_servers,
    reveal,
    server_tools_of,
)
from dragoman.dialects.anthropic.wire import Block, Body, OutputConfig, WireFormat, WireMetadata, decode_body
from dragoman.dialects.anthropic.wire import decode_message as decode_wire_message
from dragoman.dialects.anthropic.wire import decode_messages as decode_wire_messages
from dragoman.dialects.base import Decoded, Headers
from dragoman.dialects.thinking import decode_thinking
from dragoman.errors import InvalidRequest
from dragoman.incremental.decode import TOOLS_FIELD, BodySpec, decode_incrementally
from dragoman.incremental.envelope import VOLATILE_TEXT
from dragoman.incremental.items import DecodedHistory, absolute_notes
from dragoman.ir import Message, OutputFormat, Request, Sampling, Text, ToolCall

#: Begins a system block of Claude Code that changes with every request and would keep Google's prefix cache from
#: ever matching (known problem F6).
_BILLING_HEADER = "x-anthropic-billing-header:"


#: `cache_control` on the last block of a message. The match cannot be inside a string: in valid JSON, an unescaped
#: quote after a comma begins an object member.
_CACHE_POINT = re.compile(
    rb',\s?"cache_control":\s?\{"type":\s?"ephemeral"(?:,\s?"ttl":\s?"\w+")?\}(?=\}\]\}\Z)'
)
_MAX_CACHE_POINT_BYTES = 80
_ends_with_cache_point = operator.methodcaller("endswith", (b'"ephemeral"}}]}', b'"5m"}}]}', b'"1h"}}]}'))


def _without_cache_points(raws: list[bytes]) -> list[bytes]:
    """Return the messages without cache points, which clients move to a later message with every turn."""
    return [
        _without_cache_point(raw) if ends else raw
        for raw, ends in zip(raws, map(_ends_with_cache_point, raws), strict=True)
    ]


def _without_cache_point(raw: bytes) -> bytes:
    found = _CACHE_POINT.search(raw, max(0, len(raw) - _MAX_CACHE_POINT_BYTES))
    return raw[: found.start()] + raw[found.end() :] if found is not None else raw


#: The volatile text after the history: the billing header in the first system block, as Claude Code sends it.
_VOLATILE = re.compile(
    rb'(\s*\],\s?"system":\s?\[\{"type":\s?"text",\s?"text":\s?"%b)%b'
    % (_BILLING_HEADER.encode(), VOLATILE_TEXT)
)


def _merge_messages(
    before: tuple[Message, ...], _: Sequence[DecodedMessage], new: Sequence[DecodedMessage]
) -> tuple[Message, ...]:
    return (*before, *chain.from_iterable(map(_get_messages, new)))


_get_messages = operator.attrgetter("messages")


class _ToolChanges(msgspec.Struct, frozen=True):
    """How the messages change the tools of a request.

    `definitions` are tools that messages define. `loaded` are the names of tools that messages add or call, in
    order. `removed` are the names of tools that messages remove and do not add again.
    """

    definitions: tuple[bytes, ...] = ()
    loaded: tuple[str, ...] = ()
    removed: frozenset[str] = frozenset()


_UNCHANGED = _ToolChanges()


def decode_request(body: bytes, headers: Headers) -> Decoded:
    """Decode a request body; raise `InvalidRequest` if it is invalid or cannot be served."""
    return decode_incrementally(_SPEC, body, headers.get("x-claude-code-session-id"))


def _assemble(envelope: Decoded, history: DecodedHistory[DecodedMessage]) -> Decoded:
    request = msgspec.structs.replace(envelope.request, messages=history.messages)
    return Decoded(request, envelope.notes + absolute_notes("messages", history))


def _decode_envelope(wire: Body, declared: ToolSet, change: _ToolChanges, named: str | None) -> Decoded:
    """Decode everything except the messages. `named` is the session id in the headers, if any."""
    tool_set = extend(declared, change.definitions)
    choice = decode_tool_choice(wire.tool_choice, tool_set)
    tools, withheld = reveal(
        tool_set, {*change.loaded, *choice.names}, change.removed.difference(choice.names)
    )
    effort = wire.output_config.effort if wire.output_config is not None else None
    thinking, unknown = decode_thinking(wire.thinking, effort)
    request = Request(
        model=wire.model,
        messages=(),
        system=_system(wire.system),
        tools=tools,
        found=tuple(filter(tool_set.may_wait, change.loaded)) if tool_set.searches else (),
        server_tools=server_tools_of(tool_set, wire.tool_choice),
        remotes=read_mcp_servers(wire.mcp_servers, tool_set.toolsets),
        tool_choice=choice,
        thinking=thinking,
        sampling=Sampling(
            max_tokens=wire.max_tokens,
            temperature=wire.temperature,
            top_p=wire.top_p,
            top_k=wire.top_k,
            stop=tuple(wire.stop_sequences or ()),
        ),
        output=_output(wire.output_config, wire.output_format),
        stream=bool(wire.stream),
        session=_session(wire.metadata, named),
    )
    return Decoded(request, (*tool_set.notes, *withheld, *unknown))


def _message(raw: bytes, where: str) -> DecodedMessage:
    return decode_message(jsontext.decode(decode_wire_message, raw, where))


def _messages(raws: list[bytes]) -> list[DecodedMessage] | None:
    """Decode many messages at once, without replacing lone surrogate escapes; None if any is invalid.

    The JSON decoder rejects such escapes in strings, and `decode_message` replaces them in JSON that stays bytes.
    """
    try:
        text = jsontext.check_utf8(b"[%b]" % b",".join(raws))
        return list(map(decode_message, jsontext.decode(decode_wire_messages, text)))
    except InvalidRequest:
        return None


def _collect_tool_changes(history: DecodedHistory[DecodedMessage], declared: ToolSet) -> _ToolChanges:
    """Collect how the messages change the tools; tools that were called count as loaded."""
    if not history.annotated and not declared.deferred:  # the usual case
        return _UNCHANGED
    changes = [change for index in history.annotated for change in history.items[index].changes]
    definitions = tuple(change.definition for change in changes if change.definition)
    has_deferred = bool(extend(declared, definitions).deferred)
    loaded: dict[str, None] = {}
    removed: set[str] = set()
    for item in history.items if has_deferred or changes else ():
        for change in item.changes:
            if change.available:
                loaded[change.name] = None
                removed.discard(change.name)
            else:
                removed.add(change.name)
        if has_deferred:
            loaded |= dict.fromkeys(_called_names(item))
    return _ToolChanges(definitions, tuple(loaded), frozenset(removed))


def _called_names(item: DecodedMessage) -> list[str]:
    parts = (part for message in item.messages for part in message.parts)
    return [part.name for part in parts if isinstance(part, ToolCall)]


def _refuse_unservable(wire: Body) -> None:
    """Raise `InvalidRequest` for requests that cannot be served.

    With the code `thread_unsupported_request`, the SDK sends the whole conversation instead of a thread id.
    """
    if wire.thread is not None:
        raise InvalidRequest(
            "threads are not kept here: send the whole conversation",
            where="thread",
            code="thread_unsupported_request",
        )
    if not wire.messages:
        raise InvalidRequest("at least one message is required", where="messages")


def _system(system: str | list[Block] | None) -> tuple[Text, ...]:
    texts: list[Text] = []
    for index, block in enumerate(
        [Block(type="text", text=system)] if isinstance(system, str) else system or ()
    ):
        text = block.text
        if text is None and block.type != "text":
            raise InvalidRequest(f"{block.type!r} cannot stand here: use text", where=f"system[{index}]")
        if text and not text.startswith(_BILLING_HEADER):
            texts.append(Text(text=text))
    return tuple(texts)


def _output(config: OutputConfig | None, older: WireFormat | None) -> OutputFormat | None:
    wanted = config.format if config is not None and config.format is not None else older
    if wanted is None or wanted.type != "json_schema":
        return None
    where = "output_config.format.schema"
    schema = jsontext.validate_text(bytes(wanted.schema), where)
    if schema:
        jsontext.decode(msgspec.json.decode, schema, where)
    return OutputFormat(schema=schema or None)


def _session(metadata: WireMetadata | None, named: str | None) -> str:
    """Return the session id: from the header, or from the `user_id`.

    Claude Code sends a JSON object with a `session_id` there, or text that ends with `_session_` and the id. Any other
    `user_id` is the session id itself.
    """
    if named:
        return named
    user = (metadata.user_id or "") if metadata is not None else ""
    try:
        return _decode_user(user).session_id
    except (msgspec.DecodeError, RecursionError):
        return user.rpartition("_session_")[2]


class _UserId(msgspec.Struct):
    session_id: str


_decode_user = msgspec.json.Decoder(_UserId).decode


_SPEC: BodySpec[Body, DecodedMessage, Decoded, Decoded] = BodySpec(
    name="anthropic",
    key="messages",
    tools=TOOLS_FIELD,
    parse=lambda body: jsontext.decode_leniently(decode_body, body),
    check=_refuse_unservable,
    elements=operator.attrgetter("messages"),
    without_volatile=_without_cache_points,
    volatile=_VOLATILE,
    decode_item=_message,
    decode_items=_messages,
    merge_items=_merge_messages,
    is_annotated=operator.attrgetter("tells"),
    decode_tools=lambda wire: decode_tool_set(bytes(wire.tools)),
    collect_changes=_collect_tool_changes,
    decode_envelope=_decode_envelope,
    assemble=_assemble,
)
