"""`POST /v1/gemini`: Gemini's own words both ways, in a conversation the gateway keeps."""

from __future__ import annotations

import msgspec

from dragoman.dialects.gemini.client import GeminiClient
from dragoman.dialects.gemini.client.session import answer_content, forces_a_call, read_call, request_body
from dragoman.errors import InvalidRequest
from dragoman.exchange import Exchange
from dragoman.server.converse import Call, relay
from dragoman.server.http import Outlet
from dragoman.server.sessions import Kept, Session, session
from dragoman.tokens import new_token

_DIALECT = "gemini"
_NOTHING = msgspec.Raw(b"null")


async def gemini(call: Call, outlet: Outlet) -> None:
    asked = read_call(call.body)
    async with session(call, conversation=asked.conversation) as before:
        _same_dialect(before)
        model = asked.model or msgspec.json.decode(before.inherited("model") or b'""', type=str)
        call.dialect = GeminiClient(model, "sse" if asked.stream else "whole")
        tools, tool_config = before.inherited("tools"), before.inherited("tool_choice")
        exchange = call.exchange(keep=bool(asked.conversation))
        exchange.decode(request_body(asked, before.items, tools, tool_config), call.headers)

        config = asked.rest.get("toolConfig", _NOTHING)

        async def keep(answered: Exchange) -> None:
            content = answer_content(answered.whole())
            kept = Kept(
                dialect=_DIALECT,
                items=[*asked.contents, *([msgspec.Raw(content)] if content else [])],
                model=msgspec.Raw(msgspec.json.encode(model)),
                tools=asked.rest.get("tools", _NOTHING),
                tool_choice=_NOTHING if forces_a_call(bytes(config)) else config,
            )
            await before.save(f"gem_{new_token()}", kept)

        await relay(call, exchange, outlet, keep if asked.conversation else None)


def _same_dialect(before: Session) -> None:
    if any(kept.dialect != _DIALECT for kept in before.kept):
        why = "this conversation is held on /v1/responses; go on there, or begin a new one"
        raise InvalidRequest(why, where="conversation")
