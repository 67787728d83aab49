"""The dashboard's API for one request: its four bodies, its conversation, and its replay."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

import msgspec

from dragoman.errors import DragomanError, InvalidRequest
from dragoman.gateway.dashboard.conversation_view import ConversationView, view_conversation
from dragoman.gateway.dashboard.summaries import RequestRow, request_row
from dragoman.gateway.dashboard.traffic import cost_function, decode_records, send_json, visible_entries
from dragoman.gateway.request import RequestContext
from dragoman.gateway.response_writer import ResponseWriter
from dragoman.gateway.store_errors import require_store
from dragoman.observe.captures import (
    CAPTURES_FOLDER,
    CapturedRequest,
    DisplayBody,
    build_capture,
    display_body,
    find_capture,
)
from dragoman.observe.compare import Comparison, compare
from dragoman.observe.record import RequestRecord
from dragoman.redact import REDACTED


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt: the request to Google and its answer."""

    request: DisplayBody
    answer: DisplayBody


class StagesView(msgspec.Struct, frozen=True, kw_only=True):
    asked: DisplayBody
    upstream: tuple[AttemptView, ...]
    given: DisplayBody
    cut: bool
    headers: dict[str, str] = {}
    query: dict[str, str] = {}


def view_stages(captured: CapturedRequest) -> StagesView:
    upstream = (
        AttemptView(request=display_body(one.request), answer=display_body(one.answer))
        for one in captured.upstream
    )
    return StagesView(
        asked=display_body(captured.client_request),
        upstream=tuple(upstream),
        given=display_body(captured.client_answer),
        cut=captured.cut,
        headers=captured.headers,
        query=captured.query,
    )


_REPLAY_TIMEOUT_S = 600.0


class RequestDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded request. Without captured bodies there are no stages; `capture` is the setting."""

    row: RequestRow
    record: RequestRecord
    capture: str
    stages: StagesView | None = None
    conversation: ConversationView | None = None
    replay: str = ""  # why it cannot be replayed, or empty


class ReplayOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a replay: against the emulator instead of the configured backend, with another model."""

    against: Literal["", "emulator"] = ""
    model: str = ""


class ReplayResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a replay; with `cleaned`, secrets are missing in the capture and so in the replay."""

    comparison: Comparison
    row: RequestRow
    cleaned: bool
    stages: StagesView


async def get_request(request: RequestContext, response: ResponseWriter) -> None:
    captured = await _find_captured(request)
    record = captured.record if captured is not None else await _read_record(request)
    details = RequestDetails(
        row=request_row(record, cost_function(request.gateway)),
        record=record,
        capture=request.gateway.config.observe.capture,
        replay=_replay_obstacle(captured),
    )
    if captured is not None:
        stages, conversation = await asyncio.to_thread(_decode_capture, captured)
        details = msgspec.structs.replace(details, stages=stages, conversation=conversation)
    await send_json(response, details)


async def post_replay(request: RequestContext, response: ResponseWriter) -> None:
    """Send a captured request again and compare the results; quotas do not apply and no state is written."""
    from dragoman.gateway.dashboard.replay import replay_against  # circular import: it needs the routes

    options = _decode_options(request.body)
    captured = await _find_captured(request)
    obstacle = _replay_obstacle(captured)
    if captured is None or obstacle:
        raise InvalidRequest(obstacle)
    gateway = request.gateway
    own_url = gateway.endpoint.base_url if gateway.config.backend == "emulator" else ""
    async with asyncio.timeout(_REPLAY_TIMEOUT_S):
        record, stages = await replay_against(
            gateway.config,
            gateway.store,
            captured,
            against=options.against,
            emulator_url=own_url,
            model=options.model,
        )
    again = build_capture(record, stages, gateway.redactor)
    upstream_request = again.upstream[0].request.data if again.upstream else b""
    result = ReplayResult(
        comparison=compare(
            captured, record, upstream_request=upstream_request, client_answer=again.client_answer.data
        ),
        row=request_row(record, cost_function(gateway)),
        cleaned=REDACTED in captured.client_request.text,
        stages=view_stages(again),
    )
    await send_json(response, result)


async def _find_captured(request: RequestContext) -> CapturedRequest | None:
    """Return the capture of a request; callers without a key see only those since the gateway's start."""
    home, request_id = request.gateway.config.home, request.path_params["id"]
    if not home:
        return None
    found = await asyncio.to_thread(find_capture, Path(home) / CAPTURES_FOLDER, request_id)
    if found is None or found.record.id != request_id:
        return None
    hidden = not request.caller.key_hash and found.record.started_s < request.gateway.started_s
    return None if hidden else found


async def _read_record(request: RequestContext) -> RequestRecord:
    request_id = request.path_params["id"]
    entry = await require_store(request.gateway.store.ledger.entry(request_id))
    records = decode_records(visible_entries(request, [entry])) if entry is not None else []
    if not records:
        raise DragomanError(f"there is no request {request_id} here, or it was forgotten", kind="not_found")
    return records[0]


def _decode_capture(captured: CapturedRequest) -> tuple[StagesView, ConversationView | None]:
    from dragoman.gateway.routes import find_route  # circular import: the routes import this module

    record = captured.record
    try:
        route = find_route(record.method, record.path, captured.headers, captured.query)
        conversation = view_conversation(captured, route.dialect)
    except DragomanError as error:
        conversation = ConversationView(trouble=str(error))
    return view_stages(captured), conversation


def _replay_obstacle(captured: CapturedRequest | None) -> str:
    if captured is None:
        return "its bodies were not captured"
    if captured.cut:
        return "its bodies were longer than observe.capture_body_bytes, and are cut"
    return "" if captured.upstream else "Google was not asked for it"


def _decode_options(body: bytes) -> ReplayOptions:
    try:
        return msgspec.json.decode(body or b"{}", type=ReplayOptions)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(str(error)) from None
