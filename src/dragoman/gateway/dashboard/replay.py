"""Replay of a captured request: through the same translation, in this process, to Google or the emulator."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, MutableMapping, Sequence
from typing import Any

import msgspec

from dragoman.config import Config
from dragoman.emulator.http_server import EmulatorServer, ServerThread
from dragoman.emulator.service import EmulatorService
from dragoman.errors import InvalidRequest
from dragoman.gateway.auth.authenticator import Caller
from dragoman.gateway.context import Gateway
from dragoman.gateway.handlers.generate import generate
from dragoman.gateway.request import RequestContext
from dragoman.gateway.response_writer import ResponseWriter
from dragoman.gateway.routes import find_route
from dragoman.gateway.telemetry.request_recorder import BodyCapture, PendingToolCalls, RequestRecorder
from dragoman.observe.captures import CapturedRequest
from dragoman.observe.record import RequestRecord, RequestStages
from dragoman.store import MemoryStore, Store

_NO_LIMIT = 1 << 40
_EMULATOR_SEED = "dragoman"


class ReplayStore(MemoryStore):
    """A store that reads signatures from another one, but writes only to memory: a replay leaves no trace."""

    def __init__(self, known: Store) -> None:
        super().__init__()
        self._original = known

    async def get_values(self, keys: Collection[str]) -> dict[str, str]:
        return {**await self._original.get_values(keys), **await super().get_values(keys)}

    async def set_values(self, items: Sequence[tuple[str, str]]) -> None:
        await super().set_values(items)


async def replay_against(
    config: Config,
    store: Store,
    captured: CapturedRequest,
    *,
    against: str = "",
    emulator_url: str = "",
    model: str = "",
) -> tuple[RequestRecord, RequestStages]:
    """Like `replay_request`, but with the backend `against` instead of the configured one, if it is not empty.

    For the emulator backend without a URL, an emulator is started for this request.
    """
    if against:
        config = msgspec.structs.replace(
            config, upstream=msgspec.structs.replace(config.upstream, kind=against)
        )
    if config.backend != "emulator" or emulator_url:
        return await replay_request(config, store, captured, emulator_url=emulator_url, model=model)
    thread = ServerThread(EmulatorServer(EmulatorService(_EMULATOR_SEED).handle))
    url = await asyncio.to_thread(thread.start)
    try:
        return await replay_request(config, store, captured, emulator_url=url, model=model)
    finally:
        await asyncio.to_thread(thread.stop)


async def replay_request(
    config: Config, store: Store, captured: CapturedRequest, *, emulator_url: str = "", model: str = ""
) -> tuple[RequestRecord, RequestStages]:
    """Send a captured request again and return its record and bodies; `model` replaces the original model.

    Raises InvalidRequest for a request that depends on a stored conversation.
    """
    record = captured.record
    names = msgspec.structs.replace(config.models, rules={record.asked_model: model or record.model})
    gateway = Gateway(
        msgspec.structs.replace(config, models=names),
        ReplayStore(store),
        keys=(),
        emulator_url=emulator_url,
        watched=False,
    )
    recorder = RequestRecorder(
        record.id, PendingToolCalls(), method=record.method, path=record.path, client=record.client
    )
    recorder.capture = BodyCapture(_NO_LIMIT, captured.headers, captured.query)
    try:
        route = find_route(record.method, record.path, captured.headers, captured.query)
        _check_stateless(captured)
        request = RequestContext(
            gateway,
            recorder,
            method=record.method,
            path=record.path,
            query=captured.query,
            headers=captured.headers,
        )
        request.set_route(route)
        request.caller, request.body = Caller(scope=record.caller), captured.client_request.data
        recorder.on_request_body(request.body)
        response = ResponseWriter(_discard, recorder)
        await generate(request, response)
        response.close()
    finally:
        await gateway.close()
    recorder.end()
    again, stages = recorder.build_record()
    return again, stages or RequestStages()


class _StateFields(msgspec.Struct):
    conversation: Any = None
    previous_response_id: Any = None


def _check_stateless(captured: CapturedRequest) -> None:
    """Raise InvalidRequest for a request in a stored conversation, whose state is not in the capture."""
    try:
        asked = msgspec.json.decode(captured.client_request.data, type=_StateFields)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    if asked.conversation or asked.previous_response_id or captured.record.path == "/v1/gemini":
        why = "this request went on in a conversation that the gateway keeps; it cannot be replayed alone"
        raise InvalidRequest(why)


async def _discard(_message: MutableMapping[str, Any]) -> None:
    return
