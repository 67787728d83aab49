"""`/v1/responses` of OpenAI's API: responses that are stored, read, continued, compacted and deleted.

https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dragoman.dialects import openai_responses as dialect
from dragoman.dialects.base import Reply
from dragoman.dialects.openai_responses import CompactClient
from dragoman.dialects.openai_responses.conversation_state import (
    Inherited,
    Links,
    encode_list,
    expand,
    forces_a_call,
    inheritable,
    input_items,
    links_of,
    output_items,
    references,
    since_compaction,
    storable_items,
    unanswerable,
)
from dragoman.errors import InvalidRequest
from dragoman.gateway.conversation import (
    ConversationHistory,
    TurnData,
    decode_item_id,
    decode_turn_data,
    not_found,
    open_conversation,
    read_conversation,
)
from dragoman.gateway.handlers.generate import answer_exchange, count_tokens
from dragoman.gateway.handlers.pagination import paginate
from dragoman.gateway.request import RequestContext
from dragoman.gateway.response_writer import JSON_HEADERS, ResponseWriter
from dragoman.gateway.store_errors import require_store
from dragoman.ids import new_id
from dragoman.store import ConversationTurn
from dragoman.translation.exchange import Exchange

_NAME = dialect.name


async def create_response(request: RequestContext, response: ResponseWriter) -> None:
    """Answer a request, and store the response unless `store` is false and it is in no conversation."""
    exchange = _decode_stateless(request)
    if exchange is not None:
        await answer_exchange(request, exchange, response)
    else:
        await _create_in_conversation(request, response)


def _decode_stateless(request: RequestContext) -> Exchange | None:
    """Decode a request that needs no stored state, as all of Codex's; return None for any other."""
    if not dialect.stands_alone(request.body):
        return None
    exchange = request.new_exchange()
    try:
        exchange.decode(request.body, request.headers)
    except InvalidRequest:  # it may reference stored items; if it does not, the second try raises again
        return None
    return exchange


async def _create_in_conversation(request: RequestContext, response: ResponseWriter) -> None:
    links = links_of(request.body)
    async with open_conversation(request, **_conversation_arguments(links)) as history:
        settings = inheritable(request.body)
        is_stored = links.store is not False or bool(links.conversation_id)
        exchange = request.new_exchange(keep_events=is_stored)
        body, new_items = await _expand_body(request, history, exchange.answer_id.rpartition("_")[2])
        exchange.decode(body, request.headers)

        async def save_turn(answered: Exchange) -> None:
            response_body = answered.whole_body()
            tool_choice = b"" if forces_a_call(settings.tool_choice) else settings.tool_choice
            stored_items = storable_items(new_items)
            turn = TurnData(
                dialect=_NAME,
                items=[*map(msgspec.Raw, stored_items), *map(msgspec.Raw, output_items(response_body))],
                model=history.changed_setting("model", settings.model),
                tools=history.changed_setting("tools", settings.tools),
                tool_choice=history.changed_setting("tool_choice", tool_choice),
                input_count=len(stored_items),
            )
            await history.save(answered.answer_id, turn, response_body)

        await answer_exchange(request, exchange, response, save_turn if is_stored else None)


async def compact_response(request: RequestContext, response: ResponseWriter) -> None:
    """Answer with a summary of the conversation, which the client sends back later; nothing is stored."""
    body, _ = await _expand_body(
        request, await read_conversation(request, **_conversation_arguments(links_of(request.body)))
    )
    request.dialect = CompactClient(new_id())
    exchange = request.new_exchange()
    exchange.decode(body, request.headers)
    await answer_exchange(request, exchange, response)


async def count_input_tokens(request: RequestContext, response: ResponseWriter) -> None:
    request.body, _ = await _expand_body(
        request, await read_conversation(request, **_conversation_arguments(links_of(request.body)))
    )
    await count_tokens(request, response)


async def get_response(request: RequestContext, response: ResponseWriter) -> None:
    if request.query.get("stream") == "true":
        raise InvalidRequest("a kept answer is not streamed again: ask for it without stream", where="stream")
    turn = await _require_turn(request)
    await response.reply(Reply(200, turn.answer, JSON_HEADERS))


async def delete_response(request: RequestContext, response: ResponseWriter) -> None:
    """Delete a stored response; items that belong to a conversation stay in it."""
    turn = await _require_turn(request)
    in_conversation = decode_turn_data(turn.data).in_conversation
    await require_store(request.gateway.store.turns.delete(turn.scope, turn.id, keep_turn=in_conversation))
    body = {"id": turn.id, "object": "response", "deleted": True}
    await response.reply(Reply(200, msgspec.json.encode(body), JSON_HEADERS))


async def cancel_response(request: RequestContext, response: ResponseWriter) -> None:
    """Raise InvalidRequest: there are no background responses."""
    await _require_turn(request)
    raise InvalidRequest("only background responses can be cancelled; close the connection to stop this one")


async def list_input_items(request: RequestContext, response: ResponseWriter) -> None:
    turn = decode_turn_data((await _require_turn(request)).data)
    items = [bytes(item) for item in turn.items[: turn.input_count]]
    page, has_more = paginate(items, request.query)
    await response.reply(Reply(200, encode_list(page, has_more=has_more), JSON_HEADERS))


async def upgrade_required(request: RequestContext, response: ResponseWriter) -> None:
    """Reply 426: Codex tries a WebSocket first, and falls back to HTTP at once after this status."""
    message = "streams are served over HTTP: POST here with stream true"
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}
    headers = (*JSON_HEADERS, ("upgrade", "HTTP/1.1"))
    await response.reply(Reply(426, msgspec.json.encode(body), headers))


def _conversation_arguments(links: Links) -> dict[str, str]:
    """Return the arguments for `open_conversation` and `read_conversation`."""
    conversation, previous = links.conversation_id or "", links.previous_response_id or ""
    if conversation and previous:
        raise InvalidRequest("name a conversation or a previous response, not both", where="conversation")
    return {"conversation": conversation, "previous": previous}


async def _expand_body(
    request: RequestContext, history: ConversationHistory, token: str = ""
) -> tuple[bytes, tuple[bytes, ...]]:
    """Return the body with the stored items of the session inserted, and the items that are new in it.

    The body is unchanged if nothing is stored. The ids of new items contain `token`, the token of the
    response that they are stored with.
    """
    token = token or new_id()
    item_ids = references(request.body)
    if not history.turns and not item_ids:
        return request.body, input_items(request.body, token)
    history.check_dialect(_NAME)
    earlier = since_compaction(history.items)
    inherited = Inherited(
        **{name: history.inherited_setting(name) for name in ("model", "tools", "tool_choice")}
    )
    body = expand(request.body, earlier, inherited, await _read_items(request, item_ids))
    new_items = input_items(body, token, first=len(earlier))
    unknown = unanswerable(new_items, earlier) if history.turns else ""
    if unknown:
        raise InvalidRequest(f"no tool call of this conversation has the call_id {unknown!r}", where="input")
    return body, new_items


async def _read_items(request: RequestContext, item_ids: tuple[str, ...]) -> Mapping[str, bytes]:
    """Return the referenced items of stored responses by id; an item's id contains its response's token."""
    items: dict[str, bytes] = {}
    for answer_id in dict.fromkeys(map(_answer_id, item_ids)):
        turn = await _read_turn(request, answer_id)
        if turn is not None:
            items |= {decode_item_id(item): item for item in map(bytes, decode_turn_data(turn.data).items)}
    return items


def _answer_id(item_id: str) -> str:
    """Return the id of an item's response: `fc_TOKEN_0` belongs to `resp_TOKEN`."""
    pieces = item_id.split("_")
    return f"{dialect.message_prefix}_{pieces[1]}" if len(pieces) == 3 else ""


async def _read_turn(request: RequestContext, turn_id: str) -> ConversationTurn | None:
    return await require_store(request.gateway.store.turns.turn(request.caller.scope, turn_id))


async def _require_turn(request: RequestContext) -> ConversationTurn:
    turn_id = request.path_params["id"]
    turn = await _read_turn(request, turn_id)
    if turn is None or not turn.answer:
        raise not_found("Response", turn_id)
    return turn
