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
    asked = read_call(request.body)
    async with open_conversation(request, conversation=asked.conversation) as before:
        before.check_dialect(_DIALECT)
        model = asked.model or msgspec.json.decode(before.inherited_setting("model") or b'""', type=str)
        request.dialect = GeminiClient(model, "sse" if asked.stream else "whole")
        tools, tool_config = before.inherited_setting("tools"), before.inherited_setting("tool_choice")
        exchange = request.new_exchange(keep=bool(asked.conversation))
        exchange.decode(request_body(asked, before.items, tools, tool_config), request.headers)
        exchange.request = msgspec.structs.replace(exchange.request, session=asked.conversation)

        config = bytes(asked.rest.get("toolConfig", b""))

        async def keep(answered: Exchange) -> None:
            content = answer_content(answered.whole_body())
            kept = TurnData(
                dialect=_DIALECT,
                items=[*asked.contents, *([msgspec.Raw(content)] if content else [])],
                model=before.changed_setting("model", msgspec.json.encode(model)),
                tools=before.changed_setting("tools", bytes(asked.rest.get("tools", b""))),
                tool_choice=before.changed_setting("tool_choice", b"" if forces_a_call(config) else config),
            )
            await before.save(f"gem_{new_id()}", kept)

        await answer_exchange(request, exchange, response, keep if asked.conversation else None)
