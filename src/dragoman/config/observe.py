"""Settings for logs, the ledger, traces and captures; each has its reason beside it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

ByteLimit = Annotated[int, msgspec.Meta(ge=1)]

_OBSERVE_KIB, _OBSERVE_MIB = 1024, 1024 * 1024


class ObserveConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    log: Literal["off", "errors", "all"] = "errors"  # lines for requests; bodies are in none of them
    log_format: Literal["text", "json"] = "text"  # json: an object a line, for programs that collect them
    ledger: bool = True  # facts of requests, for `dragoman usage` and the dashboard: nobody's words
    traces: bool = False  # OpenTelemetry; where they go say the standard variables OTEL_EXPORTER_OTLP_…
    capture: Literal["off", "errors", "all"] = "off"  # bodies are the users' own: only when asked for
    capture_body_bytes: ByteLimit = 1 * _OBSERVE_MIB  # of each stage; a longer one is cut
    capture_bytes: ByteLimit = 256 * _OBSERVE_MIB  # of all captures; the oldest go first
