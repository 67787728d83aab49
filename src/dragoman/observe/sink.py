"""The log handler of the process: one for all loggers, which redacts secrets (pain O5)."""

from __future__ import annotations

import logging
import re
import sys
import threading
from datetime import UTC, datetime
from typing import Literal, TextIO

import msgspec

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
    """Format one JSON object per line: time, level, message, traceback and the fields of `FACTS`."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._redactor.text(record.getMessage()),
        }
        if record.exc_info:
            said["traceback"] = self._redactor.text(self.formatException(record.exc_info))
        facts = getattr(record, LOG_FIELDS_ATTRIBUTE, None)
        if callable(facts):
            said |= facts()
        return self._redactor.body(msgspec.json.encode(said)).decode()


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
