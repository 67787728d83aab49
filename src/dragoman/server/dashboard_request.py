"""The dashboard's API for one request: its four bodies, its conversation, and its replay."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

import msgspec

from dragoman.dashboard.conversation import ConversationShown, show_conversation
from dragoman.dashboard.rows import Row, row_of
from dragoman.dashboard.stages import StagesShown, show_stages
from dragoman.errors import DragomanError, InvalidRequest
from dragoman.observe.captures import FOLDER, Captured, capture, find_capture
from dragoman.observe.compare import Comparison, compare
from dragoman.observe.record import Record
from dragoman.redact import REDACTED
from dragoman.server.converse import Call
from dragoman.server.dashboard_traffic import costs, records_of, reply, visible
from dragoman.server.http import Outlet
from dragoman.server.reach import reach

_REPLAY_S = 600.0


class RequestShown(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded request. Without captured bodies there are no stages; `capture` is the setting."""

    row: Row
    record: Record
    capture: str
    stages: StagesShown | None = None
    conversation: ConversationShown | None = None
    replay: str = ""  # why it cannot be replayed, or empty


class Again(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a replay: against the emulator instead of the configured backend, with another model."""

    against: Literal["", "emulator"] = ""
    model: str = ""


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a replay; with `cleaned`, secrets are missing in the capture and so in the replay."""

    comparison: Comparison
    row: Row
    cleaned: bool
    stages: StagesShown


async def request(call: Call, outlet: Outlet) -> None:
    captured = await _captured(call)
    record = captured.record if captured is not None else await _record(call)
    shown = RequestShown(
        row=row_of(record, costs(call.gateway)),
        record=record,
        capture=call.gateway.config.observe.capture,
        replay=_obstacle(captured),
    )
    if captured is not None:
        stages, conversation = await asyncio.to_thread(_unfold, captured)
        shown = msgspec.structs.replace(shown, stages=stages, conversation=conversation)
    await reply(outlet, shown)


async def replay(call: Call, outlet: Outlet) -> None:
    """Send a captured request again and compare the results; quotas do not apply and no state is written."""
    from dragoman.server.rerun import rerun_against  # circular import: it needs the routes

    wanted = _decode(call.body)
    captured = await _captured(call)
    obstacle = _obstacle(captured)
    if captured is None or obstacle:
        raise InvalidRequest(obstacle)
    gateway = call.gateway
    own_url = gateway.host.base_url if gateway.config.backend == "emulator" else ""
    async with asyncio.timeout(_REPLAY_S):
        record, stages = await rerun_against(
            gateway.config,
            gateway.store,
            captured,
            against=wanted.against,
            emulator_url=own_url,
            model=wanted.model,
        )
    again = capture(record, stages, gateway.redactor)
    asked = again.upstream[0].request.data if again.upstream else b""
    shown = Replayed(
        comparison=compare(captured, record, asked=asked, given=again.client_answer.data),
        row=row_of(record, costs(gateway)),
        cleaned=REDACTED in captured.client_request.text,
        stages=show_stages(again),
    )
    await reply(outlet, shown)


async def _captured(call: Call) -> Captured | None:
    """Return the capture of a request; callers without a key see only those since the gateway's start."""
    home, identity = call.gateway.config.home, call.names["id"]
    if not home:
        return None
    found = await asyncio.to_thread(find_capture, Path(home) / FOLDER, identity)
    if found is None or found.record.id != identity:
        return None
    hidden = not call.caller.key_hash and found.record.started_s < call.gateway.started_s
    return None if hidden else found


async def _record(call: Call) -> Record:
    identity = call.names["id"]
    line = await reach(call.gateway.store.ledger.line(identity))
    known = records_of(visible(call, [line])) if line is not None else []
    if not known:
        raise DragomanError(f"there is no request {identity} here, or it was forgotten", kind="not_found")
    return known[0]


def _unfold(captured: Captured) -> tuple[StagesShown, ConversationShown | None]:
    from dragoman.server.routes import find_route  # circular import: the routes import this module

    record = captured.record
    try:
        route = find_route(record.method, record.path, captured.headers, captured.query)
        conversation = show_conversation(captured, route.dialect)
    except DragomanError as error:
        conversation = ConversationShown(trouble=str(error))
    return show_stages(captured), conversation


def _obstacle(captured: Captured | None) -> str:
    if captured is None:
        return "its bodies were not captured"
    if captured.cut:
        return "its bodies were longer than observe.capture_body_bytes, and are cut"
    return "" if captured.upstream else "Google was not asked for it"


def _decode(body: bytes) -> Again:
    try:
        return msgspec.json.decode(body or b"{}", type=Again)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(str(error)) from None
