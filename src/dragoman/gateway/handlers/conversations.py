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

_NAME = dialect.name
_MAX_ITEMS = 20


class _Body(msgspec.Struct):
    metadata: dict[str, str] | None = None
    items: msgspec.Raw = msgspec.Raw(b"null")


_decode_body = msgspec.json.Decoder(_Body).decode


async def create_conversation(request: RequestContext, response: ResponseWriter) -> None:
    body = jsontext.decode_leniently(_decode_body, request.body or b"{}")
    conversation = Conversation(
        name=f"{GENERATED_PREFIX}{new_id()}",
        scope=request.caller.scope,
        data=msgspec.json.encode(body.metadata or {}),
        created_s=request.created_s,
    )
    items = _decode_items(body)
    await require_store(request.gateway.store.turns.put_conversation(conversation))
    if items:
        await _store_items(request, conversation.name, items)
    await _reply(response, _encode_conversation(conversation))


async def get_conversation(request: RequestContext, response: ResponseWriter) -> None:
    await _reply(response, _encode_conversation(await _require_conversation(request)))


async def update_conversation(request: RequestContext, response: ResponseWriter) -> None:
    body = jsontext.decode_leniently(_decode_body, request.body)
    conversation = await _require_conversation(request)
    conversation = msgspec.structs.replace(conversation, data=msgspec.json.encode(body.metadata or {}))
    await require_store(request.gateway.store.turns.put_conversation(conversation))
    await _reply(response, _encode_conversation(conversation))


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
    page, has_more = paginate(await _read_items(request), request.query)
    await response.reply(Reply(200, encode_list(page, has_more=has_more), JSON_HEADERS))


async def get_item(request: RequestContext, response: ResponseWriter) -> None:
    await response.reply(
        Reply(200, _find_item(await _read_items(request), request.path_params["item"]), JSON_HEADERS)
    )


async def delete_item(request: RequestContext, response: ResponseWriter) -> None:
    conversation = await _require_conversation(request)
    async with open_conversation(request, conversation=conversation.name) as history:
        history.check_dialect(_NAME)
        _find_item(history.items, request.path_params["item"])
        await history.save(f"edit_{new_id()}", TurnData(dialect=_NAME, removed=[request.path_params["item"]]))
    await _reply(response, _encode_conversation(conversation))


async def _store_items(request: RequestContext, name: str, items: tuple[bytes, ...]) -> None:
    async with open_conversation(request, conversation=name) as history:
        history.check_dialect(_NAME)
        turn = TurnData(dialect=_NAME, items=list(map(msgspec.Raw, items)), input_count=len(items))
        await history.save(f"edit_{new_id()}", turn)


async def _read_items(request: RequestContext) -> list[bytes]:
    conversation = await _require_conversation(request)
    history = await read_conversation(request, conversation=conversation.name)
    history.check_dialect(_NAME)
    return history.items


def _decode_items(body: _Body) -> tuple[bytes, ...]:
    """Return the items of a body; raise InvalidRequest for items that later requests could not decode."""
    raw_items = bytes(body.items)
    if raw_items in (b"null", b"[]"):
        return ()
    request_body = b'{"input":%b}' % raw_items
    try:
        items = input_items(request_body, new_id())
        dialect.decode_request(request_body, {})
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


def _find_item(items: list[bytes], item_id: str) -> bytes:
    for item in items:
        if decode_item_id(item) == item_id:
            return item
    raise not_found("Item", item_id)


async def _require_conversation(request: RequestContext) -> Conversation:
    name = request.path_params["id"]
    conversation = await require_store(request.gateway.store.turns.conversation(request.caller.scope, name))
    if conversation is None:
        raise not_found("Conversation", name)
    return conversation


def _encode_conversation(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.name,
        "object": "conversation",
        "created_at": conversation.created_s,
        "metadata": msgspec.Raw(conversation.data),
    }


async def _reply(response: ResponseWriter, body: dict[str, Any]) -> None:
    await response.reply(Reply(200, msgspec.json.encode(body), JSON_HEADERS))
