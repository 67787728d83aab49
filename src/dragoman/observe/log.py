"""One log line per request, with kinds, numbers and names, but no text of a user or a model."""

from __future__ import annotations

import logging
from functools import partial
from typing import Literal

from dragoman.observe.record import RequestRecord, RequestStages
from dragoman.observe.sink import LOG_FIELDS_ATTRIBUTE

_request_log = logging.getLogger("dragoman")


class RequestLogger:
    """An observer that logs failed requests (`errors`) or every request (`all`); failures are warnings."""

    def __init__(self, which: Literal["off", "errors", "all"]) -> None:
        self._which = which

    def on_request_end(self, record: RequestRecord, stages: RequestStages | None) -> None:
        del stages
        if self._which == "off" or (self._which == "errors" and not record.error):
            return
        level = logging.WARNING if record.error else logging.INFO
        _request_log.log(
            level, "%s", format_line(record), extra={LOG_FIELDS_ATTRIBUTE: partial(log_fields, record)}
        )

    async def close(self) -> None:
        return


def log_fields(record: RequestRecord) -> dict[str, object]:
    """Return the fields of the record for JSON logs, without empty ones."""
    usage = record.usage
    found = {
        "request_id": record.id,
        "trace_id": record.trace.split("-")[1] if record.trace else "",
        "method": record.method,
        "path": record.path,
        "client": record.client,
        "dialect": record.dialect,
        "caller": record.caller,
        "session": record.session,
        "asked_model": record.asked_model,
        "model": record.model,
        "answered_model": record.answered_model,
        "status": record.status,
        "error": record.error,
        "stop": record.stop,
        "left": record.left,
        "stream": record.stream,
        "input_tokens": usage.input_tokens,
        "cached_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "thought_tokens": usage.thought_tokens,
        "calls": len(record.calls),
        "own_calls": len(record.own_calls),
        "attempts": len(record.attempts),
        "notes": len(record.notes),
        "first_byte_ms": record.first_byte_ms,
        "wait_ms": record.wait_ms,
        "total_ms": record.total_ms,
        "bytes_in": record.bytes_in,
        "bytes_out": record.bytes_out,
    }
    return {name: value for name, value in found.items() if value}


def format_line(record: RequestRecord) -> str:
    """Return `req_… POST /v1/messages gemini-x 200 in 812 ms (waited for Google 809) 7+3 tokens` or similar."""
    parts = [f"{record.id} {record.method} {record.path}", record.model, str(record.status or "-")]
    if record.error:
        statuses = ", ".join(str(attempt.status) for attempt in record.attempts if attempt.status)
        parts.append(f"failed: {record.error}" + (f" (Google: HTTP {statuses})" if statuses else ""))
    if record.left:
        parts.append("the client left")
    parts.append(f"in {record.total_ms} ms (waited for Google {record.wait_ms})")
    if record.usage.input_tokens or record.usage.output_tokens:
        parts.append(f"{record.usage.input_tokens}+{record.usage.output_tokens} tokens")
    if record.calls or record.own_calls:
        parts.append(f"{len(record.calls) + len(record.own_calls)} calls")
    if record.notes:
        parts.append(f"{len(record.notes)} notes")
    return " ".join(part for part in parts if part)
