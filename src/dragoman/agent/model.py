"""The agent's connection to a model: the Gemini API, usually the gateway's, which does retries and key rotation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Protocol

import msgspec

from dragoman import ir
from dragoman.dialects import gemini
from dragoman.dialects.base import Target
from dragoman.errors import DragomanError
from dragoman.ids import new_id
from dragoman.translation.repair import repair
from dragoman.upstream.client import UpstreamClient
from dragoman.upstream.endpoints import Endpoint
from dragoman.upstream.generate import generate_events


class AgentModel(Protocol):
    """Answers a request with events in the order of `ir.events`, always ending with `Finished` or `Failed`."""

    def stream(self, request: ir.Request) -> AsyncIterator[ir.Event]: ...


def new_call_id() -> str:
    return f"call_{new_id()}"


class GeminiAgentModel:
    """Calls `streamGenerateContent` at `base_url`; closing the iterator of `stream` aborts the request."""

    def __init__(self, base_url: str, token: str, client: UpstreamClient) -> None:
        self._endpoint = Endpoint(backend="gemini", base_url=base_url)
        self._headers = {"x-goog-api-key": token}
        self._client = client

    async def stream(self, request: ir.Request) -> AsyncIterator[ir.Event]:
        target = Target(model=request.model)
        messages, _ = repair(request.messages, ends_with_user=gemini.ends_with_user(target))
        ready = msgspec.structs.replace(request, messages=messages)
        encoded = gemini.encode_request(ready, target, new_call_id)
        url = self._endpoint.url(request.model, "streamGenerateContent")
        answer = generate_events(self._client, url, self._headers, encoded, stream=True)
        try:
            async with aclosing(answer) as events:
                async for event in events:
                    yield event
        except DragomanError as error:
            yield ir.Failed(error)
