"""Replay of a captured request: through the same translation, in this process, to Google or the emulator."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, MutableMapping, Sequence
from typing import Any

import msgspec

from dragoman.config import Config
from dragoman.emulator.http.listen import EmulatorThread, Listener
from dragoman.emulator.service import Service
from dragoman.errors import InvalidRequest
from dragoman.observe.captures import Captured
from dragoman.observe.record import Record, Stages
from dragoman.server.auth import Caller
from dragoman.server.converse import Call, converse
from dragoman.server.gateway import Gateway
from dragoman.server.http import Outlet
from dragoman.server.routes import find_route
from dragoman.server.trail import Capture, Noted, Trail, Waiting
from dragoman.store import MemoryStore, Store

_NO_LIMIT = 1 << 40
_SEED = "dragoman"


class Remembering(MemoryStore):
    """A store that reads signatures from another one, but writes only to memory: a replay leaves no trace."""

    def __init__(self, known: Store) -> None:
        super().__init__()
        self._known = known

    async def recall(self, keys: Collection[str]) -> dict[str, str]:
        return {**await self._known.recall(keys), **await super().recall(keys)}

    async def remember(self, items: Sequence[tuple[str, str]]) -> None:
        await super().remember(items)


async def rerun_against(
    config: Config,
    store: Store,
    captured: Captured,
    *,
    against: str = "",
    emulator_url: str = "",
    model: str = "",
) -> tuple[Record, Stages]:
    """Like `rerun`, but with the backend `against` instead of the configured one, if it is not empty.

    For the emulator backend without a URL, an emulator is started for this request.
    """
    if against:
        config = msgspec.structs.replace(
            config, upstream=msgspec.structs.replace(config.upstream, kind=against)
        )
    if config.backend != "emulator" or emulator_url:
        return await rerun(config, store, captured, emulator_url=emulator_url, model=model)
    thread = EmulatorThread(Listener(Service(_SEED).answer))
    url = await asyncio.to_thread(thread.start)
    try:
        return await rerun(config, store, captured, emulator_url=url, model=model)
    finally:
        await asyncio.to_thread(thread.stop)


async def rerun(
    config: Config, store: Store, captured: Captured, *, emulator_url: str = "", model: str = ""
) -> tuple[Record, Stages]:
    """Send a captured request again and return its record and bodies; `model` replaces the original model.

    Raises InvalidRequest for a request that depends on a stored conversation.
    """
    record = captured.record
    names = msgspec.structs.replace(config.models, rules={record.asked_model: model or record.model})
    gateway = Gateway(
        msgspec.structs.replace(config, models=names),
        Remembering(store),
        keys=(),
        emulator_url=emulator_url,
        watched=False,
    )
    noted = Noted(method=record.method, path=record.path, client=record.client)
    trail = Trail(record.id, noted, Waiting())
    trail.capture = Capture(_NO_LIMIT, captured.headers, captured.query)
    try:
        route = find_route(record.method, record.path, captured.headers, captured.query)
        _refuse_state(captured)
        call = Call(
            gateway,
            route.dialect,
            captured.headers,
            record.path,
            names=route.names,
            query=captured.query,
        )
        call.caller, call.body = Caller(scope=record.caller), captured.client_request.data
        trail.took(call.body)
        outlet = Outlet(_discard, trail)
        await converse(call, outlet)
        outlet.close()
    finally:
        await gateway.close()
    trail.end()
    again, stages = trail.close()
    return again, stages or Stages()


class _Stateful(msgspec.Struct):
    conversation: Any = None
    previous_response_id: Any = None


def _refuse_state(captured: Captured) -> None:
    """Raise InvalidRequest for a request in a stored conversation, whose state is not in the capture."""
    try:
        asked = msgspec.json.decode(captured.client_request.data, type=_Stateful)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    if asked.conversation or asked.previous_response_id or captured.record.path == "/v1/gemini":
        why = "this request went on in a conversation that the gateway keeps; it cannot be replayed alone"
        raise InvalidRequest(why)


async def _discard(_message: MutableMapping[str, Any]) -> None:
    return
