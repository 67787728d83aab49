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
from dragoman.gateway.asgi import JSON_HEADERS, ResponseWriter
from dragoman.gateway.conversation import (
    ConversationHistory,
    TurnData,
    decode_item_id,
    decode_turn_data,
    not_found,
    open_conversation,
    read_conversation,
)
from dragoman.gateway.handlers.generate import RequestContext, answer_exchange, count_tokens
from dragoman.gateway.handlers.pagination import paginate
from dragoman.gateway.store_errors import require_store
from dragoman.ids import new_id
from dragoman.store import ConversationTurn
from dragoman.translation.exchange import Exchange

_NAME = dialect.name


async def create_response(call: RequestContext, outlet: ResponseWriter) -> None:
    """Answer a request, and store the response unless `store` is false and it is in no conversation."""
    exchange = _decode_stateless(call)
    if exchange is not None:
        await answer_exchange(call, exchange, outlet)
    else:
        await _create_in_conversation(call, outlet)


def _decode_stateless(call: RequestContext) -> Exchange | None:
    """Decode a request that needs no stored state, as all of Codex's; return None for any other."""
    if not dialect.stands_alone(call.body):
        return None
    exchange = call.new_exchange()
    try:
        exchange.decode(call.body, call.headers)
    except InvalidRequest:  # it may reference stored items; if it does not, the second try raises again
        return None
    return exchange


async def _create_in_conversation(call: RequestContext, outlet: ResponseWriter) -> None:
    links = links_of(call.body)
    async with open_conversation(call, **_conversation_arguments(links)) as before:
        told = inheritable(call.body)
        keeps = links.store is not False or bool(links.conversation_id)
        exchange = call.new_exchange(keep=keeps)
        body, asked = await _expand_body(call, before, exchange.answer_id.rpartition("_")[2])
        exchange.decode(body, call.headers)

        async def keep(answered: Exchange) -> None:
            response = answered.whole_body()
            choice = b"" if forces_a_call(told.tool_choice) else told.tool_choice
            said = storable_items(asked)
            kept = TurnData(
                dialect=_NAME,
                items=[*map(msgspec.Raw, said), *map(msgspec.Raw, output_items(response))],
                model=before.changed_setting("model", told.model),
                tools=before.changed_setting("tools", told.tools),
                tool_choice=before.changed_setting("tool_choice", choice),
                input_count=len(said),
            )
            await before.save(answered.answer_id, kept, response)

        await answer_exchange(call, exchange, outlet, keep if keeps else None)


async def compact_response(call: RequestContext, outlet: ResponseWriter) -> None:
    """Answer with a summary of the conversation, which the client sends back later; nothing is stored."""
    body, _ = await _expand_body(
        call, await read_conversation(call, **_conversation_arguments(links_of(call.body)))
    )
    call.dialect = CompactClient(new_id())
    exchange = call.new_exchange()
    exchange.decode(body, call.headers)
    await answer_exchange(call, exchange, outlet)


async def count_input_tokens(call: RequestContext, outlet: ResponseWriter) -> None:
    call.body, _ = await _expand_body(
        call, await read_conversation(call, **_conversation_arguments(links_of(call.body)))
    )
    await count_tokens(call, outlet)


async def get_response(call: RequestContext, outlet: ResponseWriter) -> None:
    if call.query.get("stream") == "true":
        raise InvalidRequest("a kept answer is not streamed again: ask for it without stream", where="stream")
    turn = await _require_turn(call)
    await outlet.reply(Reply(200, turn.answer, JSON_HEADERS))


async def delete_response(call: RequestContext, outlet: ResponseWriter) -> None:
    """Delete a stored response; items that belong to a conversation stay in it."""
    turn = await _require_turn(call)
    in_conversation = decode_turn_data(turn.data).in_conversation
    await require_store(call.gateway.store.turns.delete(turn.scope, turn.id, keep_turn=in_conversation))
    body = {"id": turn.id, "object": "response", "deleted": True}
    await outlet.reply(Reply(200, msgspec.json.encode(body), JSON_HEADERS))


async def cancel_response(call: RequestContext, outlet: ResponseWriter) -> None:
    """Raise InvalidRequest: there are no background responses."""
    await _require_turn(call)
    raise InvalidRequest("only background responses can be cancelled; close the connection to stop this one")


async def list_input_items(call: RequestContext, outlet: ResponseWriter) -> None:
    kept = decode_turn_data((await _require_turn(call)).data)
    items = [bytes(item) for item in kept.items[: kept.input_count]]
    shown, more = paginate(items, call.query)
    await outlet.reply(Reply(200, encode_list(shown, has_more=more), JSON_HEADERS))


async def upgrade_required(call: RequestContext, outlet: ResponseWriter) -> None:
    """Reply 426: Codex tries a WebSocket first, and falls back to HTTP at once after this status."""
    message = "streams are served over HTTP: POST here with stream true"
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}
    headers = (*JSON_HEADERS, ("upgrade", "HTTP/1.1"))
    await outlet.reply(Reply(426, msgspec.json.encode(body), headers))


def _conversation_arguments(links: Links) -> dict[str, str]:
    """Return the arguments for `open_conversation` and `read_conversation`."""
    conversation, previous = links.conversation_id or "", links.previous_response_id or ""
    if conversation and previous:
        raise InvalidRequest("name a conversation or a previous response, not both", where="conversation")
    return {"conversation": conversation, "previous": previous}


async def _expand_body(
    call: RequestContext, before: ConversationHistory, token: str = ""
) -> tuple[bytes, tuple[bytes, ...]]:
    """Return the body with the stored items of the session inserted, and the items that are new in it.

    The body is unchanged if nothing is stored. The ids of new items contain `token`, the token of the
    response that they are stored with.
    """
    token = token or new_id()
    wanted = references(call.body)
    if not before.turns and not wanted:
        return call.body, input_items(call.body, token)
    before.check_dialect(_NAME)
    earlier = since_compaction(before.items)
    inherited = Inherited(
        **{name: before.inherited_setting(name) for name in ("model", "tools", "tool_choice")}
    )
    body = expand(call.body, earlier, inherited, await _read_items(call, wanted))
    asked = input_items(body, token, first=len(earlier))
    unknown = unanswerable(asked, earlier) if before.turns else ""
    if unknown:
        raise InvalidRequest(f"no tool call of this conversation has the call_id {unknown!r}", where="input")
    return body, asked


async def _read_items(call: RequestContext, wanted: tuple[str, ...]) -> Mapping[str, bytes]:
    """Return the referenced items of stored responses by id; an item's id contains its response's token."""
    found: dict[str, bytes] = {}
    for answer_id in dict.fromkeys(map(_answer_id, wanted)):
        turn = await _read_turn(call, answer_id)
        if turn is not None:
            found |= {decode_item_id(item): item for item in map(bytes, decode_turn_data(turn.data).items)}
    return found


def _answer_id(item_id: str) -> str:
    """Return the id of an item's response: `fc_TOKEN_0` belongs to `resp_TOKEN`."""
    pieces = item_id.split("_")
    return f"{dialect.message_prefix}_{pieces[1]}" if len(pieces) == 3 else ""


async def _read_turn(call: RequestContext, identity: str) -> ConversationTurn | None:
    return await require_store(call.gateway.store.turns.turn(call.caller.scope, identity))


async def _require_turn(call: RequestContext) -> ConversationTurn:
    identity = call.path_params["id"]
    turn = await _read_turn(call, identity)
    if turn is None or not turn.answer:
        raise not_found("Response", identity)
    return turn
