"""A Messages request to the neutral one."""

from __future__ import annotations

import operator
import re
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
from dragoman.dialects.history import HISTORY_BYTES, placed_notes
from dragoman.dialects.skim import IN_TOOLS, Skimmer
from dragoman.dialects.thinking import decode_thinking
from dragoman.errors import InvalidRequest
from dragoman.ir import OutputFormat, Request, Sampling, Text, ToolCall
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


_MESSAGES: Memo[bytes, DecodedMessage] = Memo(HISTORY_BYTES, "anthropic messages")
_BODIES: Skimmer[Body] = Skimmer(
    "anthropic",
    lambda body: jsontext.decode_leniently(decode_body, body),
    key="messages",
    elements=operator.attrgetter("messages"),
    tools=IN_TOOLS,
    known_as=_without_cache_points,
)


def decode_request(body: bytes, headers: Headers) -> Decoded:
    skimmed = _BODIES.skim(body)
    wire = skimmed.wire
    _refuse_threads(wire)
    if not wire.messages:
        raise InvalidRequest("at least one message is required", where="messages")
    decoded = skimmed.pieces(_MESSAGES, "messages", _message, several=_messages)
    tool_set = extend(decode_tool_set(skimmed.tools), _definitions(decoded))
    choice = decode_tool_choice(wire.tool_choice, tool_set)
    loaded, removed = _tools_at_hand(decoded, tool_set)
    tools, withheld = reveal(tool_set, {*loaded, *choice.names}, removed - set(choice.names))
    effort = wire.output_config.effort if wire.output_config is not None else None
    thinking, unknown = decode_thinking(wire.thinking, effort)
    messages = tuple(chain.from_iterable(map(_SAID, decoded)))
    request = Request(
        model=wire.model,
        messages=messages,
        system=_system(wire.system),
        tools=tools,
        found=tuple(filter(tool_set.may_wait, loaded)) if tool_set.searches else (),
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
        session=_session(wire.metadata, headers),
    )
    return Decoded(
        request,
        (*tool_set.notes, *withheld, *unknown, *placed_notes("messages", decoded)),
    )


_SAID, _CHANGES = operator.attrgetter("messages"), operator.attrgetter("changes")


def _message(raw: bytes, where: str) -> DecodedMessage:
    return decode_message(jsontext.decode(decode_wire_message, raw, where))


def _messages(raws: list[bytes]) -> list[DecodedMessage] | None:
    """A whole history at once. It is not searched for half characters: what is not passed on unread fails with one."""
    try:
        text = jsontext.as_text(b"[%b]" % b",".join(raws))
        return list(map(decode_message, jsontext.decode(decode_wire_messages, text)))
    except InvalidRequest:
        return None


def _definitions(decoded: list[DecodedMessage]) -> list[bytes]:
    return [change.definition for change in chain.from_iterable(map(_CHANGES, decoded)) if change.definition]


def _tools_at_hand(decoded: list[DecodedMessage], tool_set: ToolSet) -> tuple[dict[str, None], set[str]]:
    """Tools the conversation has loaded or already called, in that order, and those it has taken away since."""
    loaded: dict[str, None] = {}
    removed: set[str] = set()
    if not tool_set.deferred and not any(map(_CHANGES, decoded)):  # nearly always
        return loaded, removed
    for item in decoded:
        for change in item.changes:
            if change.available:
                loaded[change.name] = None
                removed.discard(change.name)
            else:
                removed.add(change.name)
        if tool_set.deferred:
            loaded |= dict.fromkeys(_called(item))
    return loaded, removed


def _called(item: DecodedMessage) -> list[str]:
    parts = (part for message in item.messages for part in message.parts)
    return [part.name for part in parts if isinstance(part, ToolCall)]


def _refuse_threads(wire: Body) -> None:
    """Server-side threads need a server that remembers; told so, the SDK sends the whole conversation."""
    if wire.thread is not None:
        raise InvalidRequest(
            "threads are not kept here: send the whole conversation",
            where="thread",
            code="thread_unsupported_request",
        )


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


def _session(metadata: WireMetadata | None, headers: Headers) -> str:
    named = headers.get("x-claude-code-session-id")
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
