"""A Messages request to the neutral one."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from itertools import chain

import msgspec

from dragoman import jsontext
from dragoman.dialects.anthropic.blocks import DecodedMessage, decode_message
from dragoman.dialects.anthropic.remote import read_remotes
from dragoman.dialects.anthropic.tools import (
    ToolSet,
    decode_tool_choice,
    decode_tool_set,
    extend,
    reveal,
    server_tools_of,
)
from dragoman.dialects.anthropic.wire import (
    Block,
    Body,
    OutputConfig,
    WireFormat,
    WireMetadata,
    decode_body,
)
from dragoman.dialects.anthropic.wire import decode_message as decode_wire_message
from dragoman.dialects.anthropic.wire import decode_messages as decode_wire_messages
from dragoman.dialects.base import Decoded, Headers
from dragoman.dialects.frames import IDLE_WORDS
from dragoman.dialects.history import HISTORY_BYTES, History, placed_notes
from dragoman.dialects.skim import IN_TOOLS, Skimmer
from dragoman.dialects.thinking import decode_thinking
from dragoman.errors import InvalidRequest
from dragoman.ir import Message, OutputFormat, Request, Sampling, Text, ToolCall
from dragoman.memo import Memo

#: Changes with every request and would keep Google's prefix cache from ever matching (pain F6).
_BILLING_HEADER = "x-anthropic-billing-header:"


#: At the end of a message, on its last block. Of valid JSON an unescaped quote behind a comma begins a member.
_CACHE_POINT = re.compile(
    rb',\s?"cache_control":\s?\{"type":\s?"ephemeral"(?:,\s?"ttl":\s?"\w+")?\}(?=\}\]\}\Z)'
)
_LONGEST_POINT = 80
_ENDS_WITH_POINT = operator.methodcaller("endswith", (b'"ephemeral"}}]}', b'"5m"}}]}', b'"1h"}}]}'))


def _without_cache_points(raws: list[bytes]) -> list[bytes]:
    """A point moves on with every turn, and the message stays the same."""
    return [
        _without_cache_point(raw) if ends else raw
        for raw, ends in zip(raws, map(_ENDS_WITH_POINT, raws), strict=True)
    ]


def _without_cache_point(raw: bytes) -> bytes:
    found = _CACHE_POINT.search(raw, max(0, len(raw) - _LONGEST_POINT))
    return raw[: found.start()] + raw[found.end() :] if found is not None else raw


#: In the first block of the system's, as Claude Code sends it.
_IDLE = re.compile(
    rb'(\s*\],\s?"system":\s?\[\{"type":\s?"text",\s?"text":\s?"%b)%b'
    % (_BILLING_HEADER.encode(), IDLE_WORDS)
)


def _said(
    before: tuple[Message, ...], _: Sequence[DecodedMessage], new: Sequence[DecodedMessage]
) -> tuple[Message, ...]:
    return (*before, *chain.from_iterable(map(_SAID, new)))


_SAID = operator.attrgetter("messages")
_MESSAGES: Memo[bytes, DecodedMessage] = Memo(HISTORY_BYTES, "anthropic messages")
_BODIES: Skimmer[Body, DecodedMessage] = Skimmer(
    "anthropic",
    lambda body: jsontext.decode_leniently(decode_body, body),
    key="messages",
    elements=operator.attrgetter("messages"),
    tools=IN_TOOLS,
    known_as=_without_cache_points,
    idle=_IDLE,
    said=_said,
    tells=operator.attrgetter("tells"),
)


class _Change(msgspec.Struct, frozen=True):
    """How the conversation has changed its tools: what it defined, and what it `loaded` and `removed` since."""

    definitions: tuple[bytes, ...] = ()
    loaded: tuple[str, ...] = ()
    removed: frozenset[str] = frozenset()


_UNCHANGED = _Change()


def decode_request(body: bytes, headers: Headers) -> Decoded:
    skimmed = _BODIES.skim(body)
    if not skimmed.is_framed:
        _refuse_unservable(skimmed.wire)
    history = skimmed.history(_MESSAGES, "messages", _message, several=_messages)
    declared = skimmed.note("tools", None, lambda: decode_tool_set(skimmed.tools))
    change = _change_of_tools(history, declared)
    named = headers.get("x-claude-code-session-id")
    frame = skimmed.note(
        "frame", (named, change), lambda: _decode_frame(skimmed.wire, declared, change, named)
    )
    request = msgspec.structs.replace(frame.request, messages=history.said)
    return Decoded(request, frame.notes + placed_notes("messages", history.pieces, history.telling))


def _decode_frame(wire: Body, declared: ToolSet, change: _Change, named: str | None) -> Decoded:
    """Everything but the messages."""
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
        remotes=read_remotes(wire.mcp_servers, tool_set.toolsets),
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
    """A whole history at once. It is not searched for half characters: what is not passed on unread fails with one."""
    try:
        text = jsontext.as_text(b"[%b]" % b",".join(raws))
        return list(map(decode_message, jsontext.decode(decode_wire_messages, text)))
    except InvalidRequest:
        return None


def _change_of_tools(history: History[DecodedMessage], declared: ToolSet) -> _Change:
    """Tools that were loaded or already called, in that order, and those that were taken away since."""
    if not history.telling and not declared.deferred:  # nearly always
        return _UNCHANGED
    changes = [change for index in history.telling for change in history.pieces[index].changes]
    definitions = tuple(change.definition for change in changes if change.definition)
    has_deferred = bool(extend(declared, definitions).deferred)
    loaded: dict[str, None] = {}
    removed: set[str] = set()
    for item in history.pieces if has_deferred or changes else ():
        for change in item.changes:
            if change.available:
                loaded[change.name] = None
                removed.discard(change.name)
            else:
                removed.add(change.name)
        if has_deferred:
            loaded |= dict.fromkeys(_called(item))
    return _Change(definitions, tuple(loaded), frozenset(removed))


def _called(item: DecodedMessage) -> list[str]:
    parts = (part for message in item.messages for part in message.parts)
    return [part.name for part in parts if isinstance(part, ToolCall)]


def _refuse_unservable(wire: Body) -> None:
    """Server-side threads need a server that remembers; told so, the SDK sends the whole conversation."""
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
    schema = jsontext.checked(bytes(wanted.schema), where)
    if schema:
        jsontext.decode(msgspec.json.decode, schema, where)
    return OutputFormat(schema=schema or None)


def _session(metadata: WireMetadata | None, named: str | None) -> str:
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
