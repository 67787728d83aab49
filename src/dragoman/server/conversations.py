"""`/v1/conversations` of OpenAI's API: stored items that a client can read and edit between requests.

https://platform.openai.com/docs/api-reference/conversations
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects import openai_responses as dialect
from dragoman.dialects.base import Reply
from dragoman.dialects.openai_responses.session import encode_list, input_items, lasting
from dragoman.errors import InvalidRequest
from dragoman.server.converse import Call
from dragoman.server.http import JSON_HEADERS, Outlet
from dragoman.server.pages import page_of
from dragoman.server.reach import reach
from dragoman.server.sessions import MADE_HERE, Kept, id_of, look, not_found, session
from dragoman.store import Conversation
from dragoman.tokens import new_token

_MOST_ITEMS = 20


class _Body(msgspec.Struct):
    metadata: dict[str, str] | None = None
    items: msgspec.Raw = msgspec.Raw(b"null")


_decode_body = msgspec.json.Decoder(_Body).decode


async def create_conversation(call: Call, outlet: Outlet) -> None:
    body = jsontext.decode_leniently(_decode_body, call.body or b"{}")
    found = Conversation(
        name=f"{MADE_HERE}{new_token()}",
        scope=call.caller.scope,
        data=msgspec.json.encode(body.metadata or {}),
        created_s=call.created_s,
    )
    items = _items(body)
    await reach(call.gateway.store.turns.put_conversation(found))
    if items:
        await _add(call, found.name, items)
    await _reply(outlet, _shown(found))


async def get_conversation(call: Call, outlet: Outlet) -> None:
    await _reply(outlet, _shown(await _found(call)))


async def update_conversation(call: Call, outlet: Outlet) -> None:
    body = jsontext.decode_leniently(_decode_body, call.body)
    found = await _found(call)
    found = msgspec.structs.replace(found, data=msgspec.json.encode(body.metadata or {}))
    await reach(call.gateway.store.turns.put_conversation(found))
    await _reply(outlet, _shown(found))


async def delete_conversation(call: Call, outlet: Outlet) -> None:
    name = call.names["id"]
    if not await reach(call.gateway.store.turns.delete_conversation(call.caller.scope, name)):
        raise not_found("Conversation", name)
    await _reply(outlet, {"id": name, "object": "conversation.deleted", "deleted": True})


async def add_items(call: Call, outlet: Outlet) -> None:
    await _found(call)
    items = _items(jsontext.decode_leniently(_decode_body, call.body))
    if not items:
        raise InvalidRequest("there are no items to add", where="items")
    await _add(call, call.names["id"], items)
    await outlet.reply(Reply(200, encode_list(items), JSON_HEADERS))


async def list_items(call: Call, outlet: Outlet) -> None:
    shown, more = page_of(await _all(call), call.query)
    await outlet.reply(Reply(200, encode_list(shown, has_more=more), JSON_HEADERS))


async def get_item(call: Call, outlet: Outlet) -> None:
    await outlet.reply(Reply(200, _pick(await _all(call), call.names["item"]), JSON_HEADERS))


async def delete_item(call: Call, outlet: Outlet) -> None:
    found = await _found(call)
    async with session(call, conversation=found.name) as before:
        before.speaks(dialect.name)
        _pick(before.items, call.names["item"])
        await before.save(f"edit_{new_token()}", Kept(dialect=dialect.name, removed=[call.names["item"]]))
    await _reply(outlet, _shown(found))


async def _add(call: Call, name: str, items: tuple[bytes, ...]) -> None:
    async with session(call, conversation=name) as before:
        before.speaks(dialect.name)
        kept = Kept(dialect=dialect.name, items=list(map(msgspec.Raw, items)), input_count=len(items))
        await before.save(f"edit_{new_token()}", kept)


async def _all(call: Call) -> list[bytes]:
    found = await _found(call)
    before = await look(call, conversation=found.name)
    before.speaks(dialect.name)
    return before.items


def _items(body: _Body) -> tuple[bytes, ...]:
    """Return the items of a body; raise InvalidRequest for items that later requests could not decode."""
    given = bytes(body.items)
    if given in (b"null", b"[]"):
        return ()
    asked = b'{"input":%b}' % given
    try:
        items = input_items(asked, new_token())
        dialect.decode_request(asked, {})
    except InvalidRequest as error:
        error.where = error.where.replace("input", "items", 1)
        raise
    if len(items) > _MOST_ITEMS:
        raise InvalidRequest(f"at most {_MOST_ITEMS} items at a time", where="items")
    if len(lasting(items)) < len(items):
        raise InvalidRequest(
            "a compaction is asked for in a request, not kept in a conversation", where="items"
        )
    return items


def _pick(items: list[bytes], identity: str) -> bytes:
    for item in items:
        if id_of(item) == identity:
            return item
    raise not_found("Item", identity)


async def _found(call: Call) -> Conversation:
    name = call.names["id"]
    found = await reach(call.gateway.store.turns.conversation(call.caller.scope, name))
    if found is None:
        raise not_found("Conversation", name)
    return found


def _shown(found: Conversation) -> dict[str, Any]:
    return {
        "id": found.name,
        "object": "conversation",
        "created_at": found.created_s,
        "metadata": msgspec.Raw(found.data),
    }


async def _reply(outlet: Outlet, body: dict[str, Any]) -> None:
    await outlet.reply(Reply(200, msgspec.json.encode(body), JSON_HEADERS))
