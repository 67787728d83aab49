"""The log handler of the process, which redacts secrets (known problem O5), and the observer that logs requests.

A request is one line with kinds, numbers and names, but no text of a user or a model.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from datetime import UTC, datetime
from functools import partial
from typing import Literal, TextIO

import msgspec

from dragoman.observe.record import RequestRecord, RequestStages
from dragoman.redact import Redactor

#: Control characters and line separators: in a path or a name they could forge a log line or control the
#: terminal.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
#: The attribute of a log record with a function that returns additional JSON fields.
LOG_FIELDS_ATTRIBUTE = "facts"
_log = logging.getLogger("dragoman")


class TextFormatter(logging.Formatter):
    """Format each message on one line, followed by its traceback; redact secrets in both."""

    def __init__(self, redactor: Redactor, pattern: str = "%(message)s") -> None:
        super().__init__(pattern)
        self._redactor = redactor

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the library's name)
        return _CONTROL.sub(lambda found: repr(found[0])[1:-1], super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return self._redactor.text(super().format(record))


class JsonFormatter(logging.Formatter):
    """Format one JSON object per line: time, level, message, traceback and the fields of `LOG_FIELDS_ATTRIBUTE`."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._redactor.text(record.getMessage()),
        }
        if record.exc_info:
            entry["traceback"] = self._redactor.text(self.formatException(record.exc_info))
        facts = getattr(record, LOG_FIELDS_ATTRIBUTE, None)
        if callable(facts):
            entry |= facts()
        return self._redactor.body(msgspec.json.encode(entry)).decode()


def configure_logging(
    redactor: Redactor, stream: TextIO | None = None, *, form: Literal["text", "json"] = "text"
) -> None:
    """Send all loggers to one handler, including warnings and errors that Python would print itself."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter(redactor) if form == "json" else TextFormatter(redactor))
    logging.getLogger().handlers[:] = [handler]
    _log.setLevel(logging.INFO)
    logging.captureWarnings(True)
    threading.excepthook = _log_thread
    sys.unraisablehook = _log_unraisable


def _log_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None:
        _log.error("a thread failed", exc_info=args.exc_value)


def _log_unraisable(args: sys.UnraisableHookArgs) -> None:
    _log.error("%s", args.err_msg or "an error could not be raised", exc_info=args.exc_value)


class RequestLogger:
    """An observer that logs failed requests (`errors`) or every request (`all`); failures are warnings."""

    def __init__(self, which: Literal["off", "errors", "all"]) -> None:
        self._which = which

    def on_request_end(self, record: RequestRecord, stages: RequestStages | None) -> None:
        del stages
        if self._which == "off" or (self._which == "errors" and not record.error):
            return
        level = logging.WARNING if record.error else logging.INFO
        _log.log(level, "%s", format_line(record), extra={LOG_FIELDS_ATTRIBUTE: partial(log_fields, record)})

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
