"""`POST /v1/gemini`: requests and responses in Gemini's format, in a conversation that the gateway stores."""

from __future__ import annotations

import msgspec

from dragoman.dialects.gemini.client import GeminiClient
from dragoman.dialects.gemini.client.conversation_state import (
    answer_content,
    forces_a_call,
    read_call,
    request_body,
)
from dragoman.gateway.conversation import TurnData, open_conversation
from dragoman.gateway.handlers.generate import answer_exchange
from dragoman.gateway.request import RequestContext
from dragoman.gateway.response_writer import ResponseWriter
from dragoman.ids import new_id
from dragoman.translation.exchange import Exchange

_DIALECT = "gemini"


async def generate_in_gemini_conversation(request: RequestContext, response: ResponseWriter) -> None:
    """Answer a request; model, tools and toolConfig that it omits are inherited from the conversation."""
    request_fields = read_call(request.body)
    async with open_conversation(request, conversation=request_fields.conversation) as history:
        history.check_dialect(_DIALECT)
        model = request_fields.model or msgspec.json.decode(
            history.inherited_setting("model") or b'""', type=str
        )
        request.dialect = GeminiClient(model, "sse" if request_fields.stream else "whole")
        tools, tool_config = history.inherited_setting("tools"), history.inherited_setting("tool_choice")
        exchange = request.new_exchange(keep_events=bool(request_fields.conversation))
        exchange.decode(request_body(request_fields, history.items, tools, tool_config), request.headers)
        exchange.request = msgspec.structs.replace(exchange.request, session=request_fields.conversation)

        config = bytes(request_fields.rest.get("toolConfig", b""))

        async def save_turn(answered: Exchange) -> None:
            content = answer_content(answered.whole_body())
            turn = TurnData(
                dialect=_DIALECT,
                items=[*request_fields.contents, *([msgspec.Raw(content)] if content else [])],
                model=history.changed_setting("model", msgspec.json.encode(model)),
                tools=history.changed_setting("tools", bytes(request_fields.rest.get("tools", b""))),
                tool_choice=history.changed_setting("tool_choice", b"" if forces_a_call(config) else config),
            )
            await history.save(f"gem_{new_id()}", turn)

        await answer_exchange(request, exchange, response, save_turn if request_fields.conversation else None)
