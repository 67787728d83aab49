"""`/v1/conversations` of OpenAI's API: stored items that a client can read and edit between requests.

https://platform.openai.com/docs/api-reference/conversations
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects import openai_responses as dialect
from dragoman.dialects.base import Reply
from dragoman.dialects.openai_responses.conversation_state import encode_list, input_items, storable_items
from dragoman.errors import InvalidRequest
from dragoman.gateway.conversation import (
    GENERATED_PREFIX,
    TurnData,
    decode_item_id,
    not_found,
    open_conversation,
    read_conversation,
)
from dragoman.gateway.handlers.pagination import paginate
from dragoman.gateway.request import RequestContext
from dragoman.gateway.response_writer import JSON_HEADERS, ResponseWriter
from dragoman.gateway.store_errors import require_store
from dragoman.ids import new_id
from dragoman.store import Conversation

_NAME = dialect.ResponsesClient.name
_MAX_ITEMS = 20


class _Body(msgspec.Struct):
    metadata: dict[str, str] | None = None
    items: msgspec.Raw = msgspec.Raw(b"null")


_decode_body = msgspec.json.Decoder(_Body).decode


async def create_conversation(request: RequestContext, response: ResponseWriter) -> None:
    body = jsontext.decode_leniently(_decode_body, request.body or b"{}")
    found = Conversation(
        name=f"{GENERATED_PREFIX}{new_id()}",
        scope=request.caller.scope,
        data=msgspec.json.encode(body.metadata or {}),
        created_s=request.created_s,
    )
    items = _decode_items(body)
    await require_store(request.gateway.store.turns.put_conversation(found))
    if items:
        await _store_items(request, found.name, items)
    await _reply(response, _encode_conversation(found))


async def get_conversation(request: RequestContext, response: ResponseWriter) -> None:
    await _reply(response, _encode_conversation(await _require_conversation(request)))


async def update_conversation(request: RequestContext, response: ResponseWriter) -> None:
    body = jsontext.decode_leniently(_decode_body, request.body)
    found = await _require_conversation(request)
    found = msgspec.structs.replace(found, data=msgspec.json.encode(body.metadata or {}))
    await require_store(request.gateway.store.turns.put_conversation(found))
    await _reply(response, _encode_conversation(found))


async def delete_conversation(request: RequestContext, response: ResponseWriter) -> None:
    name = request.path_params["id"]
    if not await require_store(request.gateway.store.turns.delete_conversation(request.caller.scope, name)):
        raise not_found("Conversation", name)
    await _reply(response, {"id": name, "object": "conversation.deleted", "deleted": True})


async def add_items(request: RequestContext, response: ResponseWriter) -> None:
    await _require_conversation(request)
    items = _decode_items(jsontext.decode_leniently(_decode_body, request.body))
    if not items:
        raise InvalidRequest("there are no items to add", where="items")
    await _store_items(request, request.path_params["id"], items)
    await response.reply(Reply(200, encode_list(items), JSON_HEADERS))


async def list_items(request: RequestContext, response: ResponseWriter) -> None:
    shown, more = paginate(await _read_items(request), request.query)
    await response.reply(Reply(200, encode_list(shown, has_more=more), JSON_HEADERS))


async def get_item(request: RequestContext, response: ResponseWriter) -> None:
    await response.reply(
        Reply(200, _find_item(await _read_items(request), request.path_params["item"]), JSON_HEADERS)
    )


async def delete_item(request: RequestContext, response: ResponseWriter) -> None:
    found = await _require_conversation(request)
    async with open_conversation(request, conversation=found.name) as before:
        before.check_dialect(_NAME)
        _find_item(before.items, request.path_params["item"])
        await before.save(f"edit_{new_id()}", TurnData(dialect=_NAME, removed=[request.path_params["item"]]))
    await _reply(response, _encode_conversation(found))


async def _store_items(request: RequestContext, name: str, items: tuple[bytes, ...]) -> None:
    async with open_conversation(request, conversation=name) as before:
        before.check_dialect(_NAME)
        kept = TurnData(dialect=_NAME, items=list(map(msgspec.Raw, items)), input_count=len(items))
        await before.save(f"edit_{new_id()}", kept)


async def _read_items(request: RequestContext) -> list[bytes]:
    found = await _require_conversation(request)
    before = await read_conversation(request, conversation=found.name)
    before.check_dialect(_NAME)
    return before.items


def _decode_items(body: _Body) -> tuple[bytes, ...]:
    """Return the items of a body; raise InvalidRequest for items that later requests could not decode."""
    given = bytes(body.items)
    if given in (b"null", b"[]"):
        return ()
    asked = b'{"input":%b}' % given
    try:
        items = input_items(asked, new_id())
        dialect.decode_request(asked, {})
    except InvalidRequest as error:
        error.where = error.where.replace("input", "items", 1)
        raise
    if len(items) > _MAX_ITEMS:
        raise InvalidRequest(f"at most {_MAX_ITEMS} items at a time", where="items")
    if len(storable_items(items)) < len(items):
        raise InvalidRequest(
            "a compaction is asked for in a request, not kept in a conversation", where="items"
        )
    return items


def _find_item(items: list[bytes], identity: str) -> bytes:
    for item in items:
        if decode_item_id(item) == identity:
            return item
    raise not_found("Item", identity)


async def _require_conversation(request: RequestContext) -> Conversation:
    name = request.path_params["id"]
    found = await require_store(request.gateway.store.turns.conversation(request.caller.scope, name))
    if found is None:
        raise not_found("Conversation", name)
    return found


def _encode_conversation(found: Conversation) -> dict[str, Any]:
    return {
        "id": found.name,
        "object": "conversation",
        "created_at": found.created_s,
        "metadata": msgspec.Raw(found.data),
    }


async def _reply(response: ResponseWriter, body: dict[str, Any]) -> None:
    await response.reply(Reply(200, msgspec.json.encode(body), JSON_HEADERS))
