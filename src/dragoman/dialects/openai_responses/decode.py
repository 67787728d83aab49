"""A Responses request to the neutral one."""

from __future__ import annotations

import operator
from itertools import groupby, takewhile

import msgspec

from dragoman import jsontext
from dragoman.dialects.base import EFFORTS, Decoded, Headers
from dragoman.dialects.history import HISTORY_BYTES, placed_notes, read_pieces
from dragoman.dialects.openai_responses.choice import decode_tool_choice
from dragoman.dialects.openai_responses.compaction import WISH
from dragoman.dialects.openai_responses.echo import make_echo
from dragoman.dialects.openai_responses.items import DecodedItem, decode_item
from dragoman.dialects.openai_responses.tools import ToolSet, combine, decode_tool_set, reveal
from dragoman.dialects.openai_responses.wire import (
    Body,
    WireFormat,
    WireReasoning,
    decode_body,
    decode_reasoning,
    decode_text,
)
from dragoman.dialects.openai_responses.wire import decode_item as decode_wire_item
from dragoman.errors import InvalidRequest
from dragoman.ir import (
    Message,
    OutputFormat,
    Request,
    Sampling,
    Text,
    Thinking,
    ToolCall,
    ToolChoice,
    place_signatures,
)
from dragoman.memo import Memo
from dragoman.notes import Note

ENCRYPTED = "reasoning.encrypted_content"

_ITEMS: Memo[bytes, DecodedItem] = Memo(HISTORY_BYTES)


def decode_request(body: bytes, headers: Headers) -> Decoded:
    wire = jsontext.decode_leniently(decode_body, body)
    _refuse(wire)
    items = _decode_input(wire)
    tool_set, loaded = _tools_at_hand(bytes(wire.tools), items)
    choice = decode_tool_choice(
        bytes(wire.tool_choice), tool_set, parallel=wire.parallel_tool_calls is not False
    )
    tools, withheld = reveal(tool_set, loaded | set(choice.names))
    reasoning = jsontext.decode(decode_reasoning, bytes(wire.reasoning) or b"null", "reasoning")
    thinking, unknown = _thinking(reasoning)
    output, lost = _output(wire)
    compacts = any(item.compacts for item in items)
    if compacts:
        choice, output = ToolChoice(mode="none"), None
    system, messages = _conversation(items, compacts)
    instructions = (Text(text=wire.instructions),) if wire.instructions else ()
    request = Request(
        model=wire.model or "",
        messages=messages,
        system=(*instructions, *system, *tool_set.guides),
        tools=tools,
        web_search=tool_set.web_search,
        tool_choice=choice,
        thinking=thinking,
        sampling=Sampling(max_tokens=wire.max_output_tokens, temperature=wire.temperature, top_p=wire.top_p),
        output=output,
        stream=bool(wire.stream),
        session=wire.prompt_cache_key or wire.conversation_id or headers.get("session_id") or "",
    )
    carries = reasoning is not None or ENCRYPTED in (wire.include or ())
    notes = (
        *tool_set.notes,
        *withheld,
        *unknown,
        *lost,
        *_untaken(wire),
        *placed_notes("input", items),
    )
    return Decoded(request, notes, make_echo(wire, tool_set, carries=carries, compacts=compacts))


def _refuse(wire: Body) -> None:
    if wire.background:
        why = "answers in the background are not offered here: send the request without it"
        raise InvalidRequest(why, where="background")
    if bytes(wire.prompt) not in (b"", b"null"):
        why = "prompt templates are kept at OpenAI and cannot be read here: send instructions and input"
        raise InvalidRequest(why, where="prompt")


def _decode_input(wire: Body) -> list[DecodedItem]:
    if isinstance(wire.input, str):
        return [DecodedItem(role="user", parts=(Text(text=wire.input),))]
    if not wire.input:
        raise InvalidRequest("at least one input item is required", where="input")
    return read_pieces(_ITEMS, "input", wire.input, _item)


def _item(raw: bytes, where: str) -> DecodedItem:
    return decode_item(jsontext.decode(decode_wire_item, raw, where), raw)


def _tools_at_hand(raw: bytes, items: list[DecodedItem]) -> tuple[ToolSet, set[str]]:
    """All tools, also those the conversation brought, and the names of the ones it has loaded or called."""
    tool_set = decode_tool_set(raw)
    loaded: set[str] = set()
    for index, item in enumerate(items):
        if item.tools:
            more = decode_tool_set(item.tools, f"input[{index}].tools")
            tool_set = combine(tool_set, more)
            if item.loads:
                loaded |= more.faces.keys()
    if tool_set.deferred:
        loaded |= {part.name for item in items for part in item.parts if isinstance(part, ToolCall)}
    return tool_set, loaded


def _conversation(items: list[DecodedItem], compacts: bool) -> tuple[tuple[Text, ...], tuple[Message, ...]]:
    """What the developer says before anybody else is the system's; the rest keeps its place."""
    spoken = [item for item in items if item.speaks]
    leading = list(takewhile(_is_instruction, spoken))
    if len(leading) == len(spoken) and not compacts:
        leading = []
    system = tuple(part for item in leading for part in item.parts if isinstance(part, Text))
    runs = groupby(spoken[len(leading) :], key=operator.attrgetter("voice"))
    messages = [_message(tuple(run)) for _, run in runs]
    if compacts:
        messages.append(Message(role="user", parts=(Text(text=WISH),)))
    return system, tuple(messages)


def _is_instruction(item: DecodedItem) -> bool:
    return item.role == "system" and all(isinstance(part, Text) for part in item.parts)


def _message(run: tuple[DecodedItem, ...]) -> Message:
    """The same items come back with every turn: the very same message is made of them."""
    first = run[0]
    noted: tuple[tuple[DecodedItem, ...], Message] | None = first.notebook.get("message")
    if noted is None or len(noted[0]) != len(run) or not all(map(operator.is_, noted[0], run)):
        noted = first.notebook["message"] = run, _join(run)
    return noted[1]


def _join(run: tuple[DecodedItem, ...]) -> Message:
    parts = [part for item in run for part in item.parts]
    sealed = [sealed for item in run for sealed in item.sealed]
    return Message(role=run[0].role, parts=place_signatures(parts, sealed))


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
        schema = jsontext.checked(bytes(wanted.schema), where)
        if schema:
            jsontext.decode(msgspec.json.decode, schema, where)
        return OutputFormat(schema=schema or None), notes
    if wanted.type == "json_object":
        return OutputFormat(), notes
    if wanted.type != "text":
        notes.append(Note("dropped", "text.format", f"{wanted.type!r} is not known"))
    return None, notes


def _untaken(wire: Body) -> list[Note]:
    """Tuning that Gemini does not know."""
    untaken = {
        "max_tool_calls": wire.max_tool_calls is not None,
        "top_logprobs": bool(wire.top_logprobs),
        "truncation": wire.truncation == "auto",
        "context_management": bytes(wire.context_management) not in (b"", b"null", b"[]"),
        "moderation": bytes(wire.moderation) not in (b"", b"null"),
    }
    return [
        Note("dropped", field, "there is no such setting here") for field, given in untaken.items() if given
    ]
