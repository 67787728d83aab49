"""A Messages request to the neutral one."""

from __future__ import annotations

import msgspec

from dragoman import jsontext
from dragoman.dialects.anthropic.blocks import DecodedMessage, decode_message
from dragoman.dialects.anthropic.tools import ToolSet, decode_tool_choice, decode_tool_set, extend, reveal
from dragoman.dialects.anthropic.wire import (
    Block,
    Body,
    OutputConfig,
    WireFormat,
    WireMetadata,
    WireThinking,
    decode_body,
)
from dragoman.dialects.anthropic.wire import decode_message as decode_wire_message
from dragoman.dialects.base import EFFORTS, Decoded, Headers
from dragoman.dialects.history import HISTORY_BYTES, placed_notes, read_pieces
from dragoman.errors import InvalidRequest
from dragoman.ir import OutputFormat, Request, Sampling, Text, Thinking, ToolCall
from dragoman.memo import Memo
from dragoman.notes import Note

#: Changes with every request and would keep Google's prefix cache from ever matching (pain F6).
_BILLING_HEADER = "x-anthropic-billing-header:"


_THINKS = frozenset({"enabled", "adaptive", "between_tools"})

_MESSAGES: Memo[bytes, DecodedMessage] = Memo(HISTORY_BYTES)


def decode_request(body: bytes, headers: Headers) -> Decoded:
    wire = jsontext.decode_leniently(decode_body, body)
    _refuse_threads(wire)
    if not wire.messages:
        raise InvalidRequest("at least one message is required", where="messages")
    decoded = read_pieces(_MESSAGES, "messages", wire.messages, _message)
    tool_set = extend(decode_tool_set(bytes(wire.tools)), _definitions(decoded))
    choice = decode_tool_choice(wire.tool_choice, tool_set)
    loaded, removed = _tools_at_hand(decoded, tool_set)
    tools, withheld = reveal(tool_set, loaded | set(choice.names), removed - set(choice.names))
    thinking, unknown = _thinking(wire.thinking, wire.output_config)
    messages = tuple(message for item in decoded for message in item.messages)
    request = Request(
        model=wire.model,
        messages=messages,
        system=_system(wire.system),
        tools=tools,
        web_search=tool_set.web_search,
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


def _message(raw: bytes, where: str) -> DecodedMessage:
    return decode_message(jsontext.decode(decode_wire_message, raw, where))


def _definitions(decoded: list[DecodedMessage]) -> list[bytes]:
    return [change.definition for item in decoded for change in item.changes if change.definition]


def _tools_at_hand(decoded: list[DecodedMessage], tool_set: ToolSet) -> tuple[set[str], set[str]]:
    """Tools the conversation has loaded or already called, and those it has taken away since."""
    loaded = _called(decoded) if tool_set.deferred else set()
    removed: set[str] = set()
    for change in (change for item in decoded for change in item.changes):
        if change.available:
            loaded.add(change.name)
            removed.discard(change.name)
        else:
            removed.add(change.name)
    return loaded, removed


def _called(decoded: list[DecodedMessage]) -> set[str]:
    parts = (part for item in decoded for message in item.messages for part in message.parts)
    return {part.name for part in parts if isinstance(part, ToolCall)}


def _refuse_threads(wire: Body) -> None:
    """Server-side threads need a server that remembers; told so, the SDK sends the whole conversation."""
    if wire.thread is not None:
        raise InvalidRequest(
            "threads are not kept here: send the whole conversation",
            where="thread",
            code="thread_unsupported_request",
        )


def _system(system: str | list[Block] | None) -> tuple[Text, ...]:
    blocks = [Block(type="text", text=system)] if isinstance(system, str) else system or []
    texts = [_system_text(block, index) for index, block in enumerate(blocks)]
    return tuple(Text(text=text) for text in texts if text and not text.startswith(_BILLING_HEADER))


def _system_text(block: Block, index: int) -> str:
    if block.text is None and block.type != "text":
        raise InvalidRequest(f"{block.type!r} cannot stand here: use text", where=f"system[{index}]")
    return block.text or ""


def _thinking(wire: WireThinking | None, output: OutputConfig | None) -> tuple[Thinking, list[Note]]:
    word = output.effort if output is not None else None
    effort = EFFORTS.get(word) if word else None
    notes = [Note("dropped", "output_config.effort", f"{word!r} is not known")] if word and not effort else []
    if wire is None:
        return Thinking(effort=effort), notes
    if wire.type == "disabled":
        return Thinking(mode="off"), notes
    if wire.type not in _THINKS:
        return Thinking(effort=effort), [*notes, Note("dropped", "thinking", f"{wire.type!r} is not known")]
    budget = wire.budget_tokens if wire.type == "enabled" and effort is None else None
    show = wire.display != "omitted"
    return Thinking(mode="on", budget_tokens=budget or None, effort=effort, show=show), notes


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
        return msgspec.json.decode(user, type=_UserId).session_id
    except (msgspec.DecodeError, RecursionError):
        return user.rpartition("_session_")[2]


class _UserId(msgspec.Struct):
    session_id: str
