"""Decode a Responses request, including its `tool_choice`, to the neutral `Request`."""

from __future__ import annotations

import operator
from typing import Literal

import msgspec

from dragoman import jsontext
from dragoman.dialects.base import EFFORTS, Decoded, Headers
from dragoman.dialects.openai_responses.compaction import SUMMARY_PROMPT
from dragoman.dialects.openai_responses.encode import Echo, make_echo
from dragoman.dialects.openai_responses.items import DecodedItem, decode_item
from dragoman.dialects.openai_responses.merge_messages import merge_items, split_instructions
from dragoman.dialects.openai_responses.tool_search import found_remotely, search_tool
from dragoman.dialects.openai_responses.tools import (
    BUILT_IN,
    ToolSet,
    combine,
    decode_tool_set,
    find_name,
    force_chosen,
    is_hosted,
    names_in,
    reveal,
)
from dragoman.dialects.openai_responses.wire import (
    Body,
    WireChoice,
    WireFormat,
    WireReasoning,
    decode_body,
    decode_choice,
    decode_reasoning,
    decode_text,
)
from dragoman.dialects.openai_responses.wire import decode_item as decode_wire_item
from dragoman.errors import InvalidRequest
from dragoman.incremental.decode import TOOLS_FIELD, BodySpec, decode_incrementally, look_ahead
from dragoman.incremental.fold import derive
from dragoman.incremental.items import DecodedHistory, absolute_notes
from dragoman.ir import (
    Message,
    OutputFormat,
    RemoteMcpServer,
    Request,
    Sampling,
    ServerTool,
    Text,
    Thinking,
    ToolCall,
    ToolChoice,
    mcp_tool_name,
)
from dragoman.notes import Note

_WHERE = "tool_choice"
_MODES: dict[str, Literal["auto", "any", "none", "validated"]] = {
    "auto": "auto",
    "none": "none",
    "required": "any",
    "validated": "validated",
}

#: Server tools of OpenAI without an equivalent here: choosing one has no effect.
_UNSUPPORTED = frozenset({"file_search", "image_generation", "programmatic_tool_calling"})


def decode_tool_choice(raw: bytes, tool_set: ToolSet, *, parallel: bool) -> ToolChoice:
    """Decode the choice for function tools; raise `InvalidRequest` if it is not understood.

    Choosing a server tool leaves functions at `auto`; see `chosen_server_tools`.
    """
    wire = jsontext.decode(decode_choice, raw or b"null", _WHERE)
    if wire is None:
        return ToolChoice(parallel=parallel)
    if isinstance(wire, str):
        return ToolChoice(mode=_mode(wire), parallel=parallel)
    if wire.type == "allowed_tools":
        allowed = wire.allowed_tools or wire
        names = tuple(name for tool in allowed.tools or () for name in _chosen(tool, tool_set))
        mode = _mode(allowed.mode or "auto") if names else "none"
        return ToolChoice(mode=mode, names=names, parallel=parallel)
    names = _chosen(wire, tool_set)
    return ToolChoice(mode="any" if names else "auto", names=names, parallel=parallel)


def chosen_server_tools(raw: bytes, tool_set: ToolSet) -> tuple[ServerTool, ...]:
    """Return the tools to run for the client that the choice allows, and the search for deferred tools.

    The search stays with any choice: without it, deferred tools would be shown to the model.
    """
    chosen = force_chosen(tool_set.server_tools, jsontext.decode(decode_choice, raw or b"null", _WHERE))
    return chosen + searches_of(tool_set)


def searches_of(tool_set: ToolSet) -> tuple[ServerTool, ...]:
    """Return the server-side search for deferred tools, if the request has both."""
    return (search_tool(tool_set.searched),) if tool_set.searched and tool_set.has_deferred else ()


def _mode(word: str) -> Literal["auto", "any", "none", "validated"]:
    mode = _MODES.get(word)
    if mode is None:
        raise InvalidRequest(f"{word!r} is not one of {', '.join(_MODES)}", where=_WHERE)
    return mode


def _chosen(wire: WireChoice, tool_set: ToolSet) -> tuple[str, ...]:
    """Return the names of the chosen functions; none for a server tool."""
    kind, name = wire.type, (wire.function or wire).name
    if kind in ("function", "custom") and name:
        return (find_name(tool_set, name, wire.namespace),)
    if kind == "namespace" and name:
        return names_in(tool_set, name)
    if kind == "mcp" and any(remote.label == wire.server_label for remote in tool_set.remotes):
        return (mcp_tool_name(wire.server_label or "", name or "*"),)
    if kind in BUILT_IN:
        return (kind,) if kind in tool_set.client_tools else ()
    if is_hosted(kind) or kind in _UNSUPPORTED or kind.startswith("computer"):
        return ()
    raise InvalidRequest(f"a choice of type {kind!r} is not understood", where=f"{_WHERE}.type")


ENCRYPTED = "reasoning.encrypted_content"  # a value of `include`

#: Items that carry more than messages, with their indexes; see `DecodedHistory.annotated`.
_ExtraItems = tuple[tuple[int, DecodedItem], ...]


class _Changes(msgspec.Struct, frozen=True):
    """What the items change: all tools, including those that items bring, and the names of the loaded ones, in order.

    `settled` are the ids of the approval requests whose calls have run.
    """

    tool_set: ToolSet
    loaded: tuple[str, ...]
    extras: _ExtraItems
    settled: frozenset[str]


class _DecodedEnvelope(msgspec.Struct, frozen=True):
    """The decoded request without its messages.

    The system prompt is `instructions`, then leading developer messages, then `guides`. `settled` as in `_Changes`.
    """

    request: Request
    notes: tuple[Note, ...]
    echo: Echo
    instructions: tuple[Text, ...]
    guides: tuple[Text, ...]
    compacts: bool
    settled: frozenset[str]


def stands_alone(body: bytes) -> bool:
    """Return whether a request neither uses stored state nor asks to be stored; False for an invalid body."""
    try:
        return look_ahead(_SPEC, body, "alone", _is_alone)
    except InvalidRequest:
        return False


def _is_alone(wire: Body) -> bool:
    return wire.store is False and not wire.conversation_id and not wire.previous_response_id


def decode_request(body: bytes, headers: Headers) -> Decoded:
    """Decode a request body; raise `InvalidRequest` if it is invalid or cannot be served."""
    return decode_incrementally(_SPEC, body, headers.get("session_id"))


def _assemble(envelope: _DecodedEnvelope, history: DecodedHistory[DecodedItem]) -> Decoded:
    if envelope.settled:
        items = _without_settled(history.items, envelope.settled)
        history = DecodedHistory(items, merge_items((), (), items), history.annotated)
    leading, messages = split_instructions(history.messages, always=envelope.compacts)
    if envelope.compacts:
        messages += (Message(role="user", parts=(Text(text=SUMMARY_PROMPT),)),)
    request = msgspec.structs.replace(envelope.request, messages=messages, system=_system(envelope, leading))
    return Decoded(request, (*envelope.notes, *absolute_notes("input", history)), envelope.echo)


def _decode_envelope(wire: Body, _: ToolSet, changes: _Changes, named: str | None) -> _DecodedEnvelope:
    """Decode everything except the messages. `named` is the session id in the headers, if any."""
    tool_set, loaded, extras = changes.tool_set, changes.loaded, changes.extras
    choice = decode_tool_choice(
        bytes(wire.tool_choice), tool_set, parallel=wire.parallel_tool_calls is not False
    )
    server_tools = chosen_server_tools(bytes(wire.tool_choice), tool_set)
    tools, withheld = reveal(tool_set, {*loaded, *choice.names})
    reasoning = jsontext.decode(decode_reasoning, bytes(wire.reasoning) or b"null", "reasoning")
    thinking, unknown = _thinking(reasoning)
    output, lost = _output(wire)
    compacts = any(item.compacts for _, item in extras)
    remotes = _remotes(tool_set, extras)
    if compacts:
        choice, remotes, output = ToolChoice(mode="none"), (), None
        server_tools = searches_of(tool_set)
    instructions = (Text(text=wire.instructions),) if wire.instructions else ()
    request = Request(
        model=wire.model or "",
        messages=(),
        system=(*instructions, *tool_set.guides),
        tools=tools,
        found=tuple(filter(tool_set.may_wait, loaded)) if tool_set.searched else (),
        server_tools=server_tools,
        remotes=remotes,
        tool_choice=choice,
        thinking=thinking,
        sampling=Sampling(max_tokens=wire.max_output_tokens, temperature=wire.temperature, top_p=wire.top_p),
        output=output,
        stream=bool(wire.stream),
        session=wire.prompt_cache_key or wire.conversation_id or named or "",
    )
    carries = reasoning is not None or ENCRYPTED in (wire.include or ())
    notes = (*tool_set.notes, *withheld, *unknown, *lost, *_dropped_settings(wire))
    echo = make_echo(wire, tool_set, carries=carries, compacts=compacts)
    return _DecodedEnvelope(request, notes, echo, instructions, tool_set.guides, compacts, changes.settled)


def _system(envelope: _DecodedEnvelope, leading: Message | None) -> tuple[Text, ...]:
    """Return the system prompt; the same object with every turn, because that is fast to compare."""
    if leading is None:
        return envelope.request.system
    return derive(leading, "system", (envelope.instructions, envelope.guides), _join_texts, envelope, leading)


def _join_texts(envelope: _DecodedEnvelope, leading: Message) -> tuple[Text, ...]:
    texts = [part for part in leading.parts if isinstance(part, Text)]
    return (*envelope.instructions, *texts, *envelope.guides)


def _refuse_unservable(wire: Body) -> None:
    if wire.background:
        why = "answers in the background are not offered here: send the request without it"
        raise InvalidRequest(why, where="background")
    if bytes(wire.prompt) not in (b"", b"null"):
        why = "prompt templates are kept at OpenAI and cannot be read here: send instructions and input"
        raise InvalidRequest(why, where="prompt")


def _decode_text_input(wire: Body) -> tuple[DecodedItem, ...]:
    """Decode an input without items: text is one user message."""
    if isinstance(wire.input, str):
        return (DecodedItem(role="user", parts=(Text(text=wire.input),)),)
    raise InvalidRequest("at least one input item is required", where="input")


def _collect_changes(history: DecodedHistory[DecodedItem], declared: ToolSet) -> _Changes:
    items = history.items
    settled = frozenset(items[index].carried_out for index in history.annotated) - {""}
    if settled:
        items = _without_settled(items, settled)
    extras = tuple((index, items[index]) for index in history.annotated)
    tool_set, loaded = _available_tools(declared, items, extras)
    return _Changes(tool_set, tuple(loaded), extras, settled)


def _without_settled(items: tuple[DecodedItem, ...], settled: frozenset[str]) -> tuple[DecodedItem, ...]:
    """Empty the approval requests and responses of calls that have run: the call itself is in the history too."""
    return tuple(DecodedItem(role=item.role) if item.approval in settled else item for item in items)


def _item(raw: bytes, where: str) -> DecodedItem:
    return decode_item(jsontext.decode(decode_wire_item, raw, where), raw)


def _available_tools(
    declared: ToolSet, items: tuple[DecodedItem, ...], extras: _ExtraItems
) -> tuple[ToolSet, dict[str, None]]:
    """Return all tools, including those that items bring, and the names of the loaded ones, in order.

    Loaded are the tools that a search found and those that were called. If no tool is deferred, there are none.
    """
    tool_set = declared
    brought: dict[int, ToolSet] = {}
    for index, item in extras:
        if item.tools:
            brought[index] = decode_tool_set(item.tools, f"input[{index}].tools")
            more = msgspec.structs.replace(brought[index], remotes=()) if item.loads else brought[index]
            tool_set = combine(tool_set, more)
    loaded: dict[str, None] = {}
    for index, item in enumerate(items if tool_set.has_deferred else ()):
        if item.loads and index in brought:
            loaded |= dict.fromkeys((*brought[index].client_tools, *found_remotely(brought[index].remotes)))
        loaded |= {part.name: None for part in item.parts if isinstance(part, ToolCall)}
    return tool_set, loaded


def _remotes(tool_set: ToolSet, extras: _ExtraItems) -> tuple[RemoteMcpServer, ...]:
    """Return the MCP servers; `listed` is set for those whose tools the client already has in an item."""
    listed = {item.listed for _, item in extras}
    return tuple(
        msgspec.structs.replace(remote, listed=remote.label in listed) for remote in tool_set.remotes
    )


def _thinking(wire: WireReasoning | None) -> tuple[Thinking, list[Note]]:
    if wire is None:
        return Thinking(), []
    if wire.effort == "none":
        return Thinking(mode="off"), []
    effort = EFFORTS.get(wire.effort) if wire.effort else None
    notes: list[Note] = []
    if wire.effort and effort is None:
        notes.append(Note("dropped", "reasoning.effort", f"{wire.effort!r} is not known"))
    show = (wire.summary or wire.generate_summary or "none") != "none"
    return Thinking(mode="on", effort=effort, show=show), notes


def _output(wire: Body) -> tuple[OutputFormat | None, list[Note]]:
    text = jsontext.decode(decode_text, bytes(wire.text) or b"null", "text")
    if text is None:
        return None, []
    notes: list[Note] = []
    if text.verbosity not in (None, "medium"):
        notes.append(Note("dropped", "text.verbosity", "Gemini has no such setting"))
    wanted = text.format or WireFormat(type="text")
    if wanted.type == "json_schema":
        where = "text.format.schema"
        schema = jsontext.validate_text(bytes(wanted.schema), where)
        if schema:
            jsontext.decode(msgspec.json.decode, schema, where)
        return OutputFormat(schema=schema or None), notes
    if wanted.type == "json_object":
        return OutputFormat(), notes
    if wanted.type != "text":
        notes.append(Note("dropped", "text.format", f"{wanted.type!r} is not known"))
    return None, notes


def _dropped_settings(wire: Body) -> list[Note]:
    """Return notes about settings that have no equivalent."""
    unsupported = {
        "max_tool_calls": wire.max_tool_calls is not None,
        "top_logprobs": bool(wire.top_logprobs),
        "truncation": wire.truncation == "auto",
        "context_management": bytes(wire.context_management) not in (b"", b"null", b"[]"),
        "moderation": bytes(wire.moderation) not in (b"", b"null"),
    }
    return [
        Note("dropped", field, "there is no such setting here")
        for field, given in unsupported.items()
        if given
    ]


_SPEC: BodySpec[Body, DecodedItem, _DecodedEnvelope, Decoded] = BodySpec(
    name="responses",
    item_name="items",
    key="input",
    tools=TOOLS_FIELD,
    parse=lambda body: jsontext.decode_leniently(decode_body, body),
    check=_refuse_unservable,
    elements=lambda wire: () if isinstance(wire.input, str) else wire.input or (),
    decode_item=_item,
    decode_other=_decode_text_input,
    merge_items=merge_items,
    is_annotated=operator.attrgetter("tells"),
    decode_tools=lambda wire: decode_tool_set(bytes(wire.tools)),
    collect_changes=_collect_changes,
    decode_envelope=_decode_envelope,
    assemble=_assemble,
)
