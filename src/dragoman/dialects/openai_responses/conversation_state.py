"""Store and restore conversations: pure functions on the JSON of bodies and items, without decoding their content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.openai_responses.tools import without_credentials
from dragoman.dialects.openai_responses.wire import ConversationId, Item, decode_item

Fields = dict[str, msgspec.Raw]

_PREFIX: dict[str, str] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "tool_search_call": "tsc",
    "tool_search_output": "tso",
    "additional_tools": "at",
    "compaction": "cmp",
}
_decode_fields = msgspec.json.Decoder(Fields).decode
_decode_input = msgspec.json.Decoder(str | list[msgspec.Raw] | None).decode
_json = msgspec.json.Encoder().encode


class Inherited(msgspec.Struct, frozen=True, kw_only=True):
    """Fields that a follow-up request may omit because the session has them; each is JSON text, or empty."""

    model: bytes = b""
    tools: bytes = b""
    tool_choice: bytes = b""
    instructions: bytes = b""


class Links(msgspec.Struct, kw_only=True):
    """The fields of a body that refer to a session."""

    previous_response_id: str | None = None
    conversation: str | ConversationId | None = None
    store: bool | None = None

    @property
    def conversation_id(self) -> str | None:
        return self.conversation.id if isinstance(self.conversation, ConversationId) else self.conversation


_decode_links = msgspec.json.Decoder(Links).decode


def links_of(body: bytes) -> Links:
    return jsontext.decode_leniently(_decode_links, body)


def inheritable(body: bytes) -> Inherited:
    """Return the fields that later requests of the same session may inherit from this one."""
    fields = _fields(body)
    given = {name: _given(fields, name) for name in Inherited.__struct_fields__}
    return Inherited(**{**given, "tools": _without_credentials(given["tools"])})


def _without_credentials(tools: bytes) -> bytes:
    """Remove the credentials of MCP servers, which clients send with every request and which are never stored."""
    if b"mcp" not in tools:
        return tools
    value = jsontext.decode(msgspec.json.decode, tools, "tools")
    return _json([without_credentials(tool) for tool in value]) if isinstance(value, list) else tools


def forces_a_call(tool_choice: bytes) -> bool:
    """Return whether a choice forces a tool call.

    Such a choice must not be inherited: with it, the model could never answer with text.
    """
    choice = jsontext.decode(msgspec.json.decode, tool_choice or b"null", "tool_choice")
    if isinstance(choice, dict):
        return choice.get("type") != "allowed_tools" or choice.get("mode") == "required"
    return bool(choice == "required")


def input_items(body: bytes, token: str, *, first: int = 0) -> tuple[bytes, ...]:
    """Return the input items of a body from index `first` on, each with a type and an id.

    `token` makes the new ids unique.
    """
    items = enumerate(_input(_fields(body)))
    return tuple(_identified(raw, token, index) for index, raw in islice(items, first, None))


def output_items(response: bytes) -> tuple[bytes, ...]:
    """Return the output items of a complete answer."""
    return tuple(map(bytes, msgspec.json.decode(response, type=_Output).output))


class _Output(msgspec.Struct):
    output: list[msgspec.Raw]


def references(body: bytes) -> tuple[str, ...]:
    """Return the ids in the `item_reference` items of a body."""
    items = (jsontext.decode(decode_item, raw, "input") for raw in _input(_fields(body)))
    return tuple(item.id or "" for item in items if item.kind == "item_reference")


def expand(
    body: bytes,
    earlier_items: Sequence[bytes] = (),
    inherited: Inherited = Inherited(),  # noqa: B008 (frozen)
    found: Mapping[str, bytes] | None = None,
) -> bytes:
    """Return the body as if the client had sent everything: first the session's items, then its own.

    A reference to one of `earlier_items` is removed. A reference to an item in `found` is replaced by the item. Any
    other reference stays, and `decode_request` raises an error with its path.
    """
    fields = _fields(body)
    known = {item.id for item in map(_decode_head, earlier_items) if item.id}
    own = [item for raw in _input(fields) for item in _resolved(raw, known, found or {})]
    whole: dict[str, Any] = {**fields, "input": list(map(msgspec.Raw, (*earlier_items, *own)))}
    for name in Inherited.__struct_fields__:
        value: bytes = getattr(inherited, name)
        if value and not _given(fields, name):
            whole[name] = msgspec.Raw(value)
    return _json(whole)


def storable_items(items: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the items to store: all but compaction triggers, which would repeat with every follow-up."""
    return tuple(item for item in items if _decode_head(item).type != "compaction_trigger")


def since_compaction(items: Sequence[bytes]) -> list[bytes]:
    """Return the last compaction and the items after it, which is all that the model needs; else all items."""
    marked = (index for index in range(len(items) - 1, -1, -1) if b'"compaction"' in items[index])
    last = next((index for index in marked if decode_item(items[index]).kind == "compaction"), 0)
    return list(items[last:])


def unanswerable(items: Sequence[bytes], earlier: Sequence[bytes]) -> str:
    """Return the first call id in `items` that has an output but no call, here or earlier; else empty."""
    called = {item.call_id for item in map(_decode_head, (*earlier, *items)) if item.type.endswith("_call")}
    answered = (item.call_id for item in map(_decode_head, items) if item.type.endswith("_call_output"))
    return next((call_id for call_id in answered if call_id and call_id not in called), "")


class _Head(msgspec.Struct):
    """The few fields to decode of items from `input_items`, which may be many and long."""

    type: str = ""
    id: str | None = None
    call_id: str | None = None


_decode_head = msgspec.json.Decoder(_Head).decode


def encode_list(items: Sequence[bytes], *, has_more: bool = False) -> bytes:
    """Encode a list of items, as the answer of `GET /responses/{id}/input_items`."""
    ids = [_decode_head(item).id for item in items]
    ends = {"first_id": ids[0] if ids else None, "last_id": ids[-1] if ids else None}
    return _json({"object": "list", "data": list(map(msgspec.Raw, items)), **ends, "has_more": has_more})


def _fields(body: bytes) -> Fields:
    return jsontext.decode_leniently(_decode_fields, body)


def _given(fields: Fields, name: str) -> bytes:
    raw = bytes(fields.get(name, b""))
    return b"" if raw == b"null" else raw


def _input(fields: Fields) -> list[bytes]:
    given = jsontext.decode(_decode_input, _given(fields, "input") or b"null", "input")
    if isinstance(given, str):
        content = [{"type": "input_text", "text": given}]
        return [_json({"type": "message", "role": "user", "content": content})]
    return [bytes(raw) for raw in given or ()]


def _resolved(raw: bytes, known: set[str], found: Mapping[str, bytes]) -> tuple[bytes, ...]:
    item = jsontext.decode(decode_item, raw, "input")
    if item.kind != "item_reference" or not item.id:
        return (raw,)
    if item.id in known:
        return ()
    return (found.get(item.id, raw),)


def _identified(raw: bytes, token: str, index: int) -> bytes:
    item: Item = jsontext.decode(decode_item, raw, f"input[{index}]")
    if item.id and item.type:
        return raw
    fields = jsontext.decode(_decode_fields, raw, f"input[{index}]")
    identity = item.id or f"{_PREFIX.get(item.kind, 'item')}_{token}_in{index}"
    return _json({**fields, "type": item.kind, "id": identity})
