"""OpenTelemetry traces that follow the semantic conventions for generative AI.

A thread makes the spans from records of finished requests. The standard variables `OTEL_…` configure export
and sampling. Spans contain facts only: no prompt, no answer, no arguments.

https://github.com/open-telemetry/semantic-conventions-genai
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import re
import threading
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dragoman.errors import ConfigError
from dragoman.observe.record import Attempt, RequestRecord, RequestStages, ToolRun
from dragoman.observe.usage import is_counted

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, SpanKind

Attributes = dict[str, str | int | list[str]]

_QUEUE = 4096  # when the collector is slower than the requests, traces are dropped
_REQUIRED_MODULES = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")
_PROVIDERS = {"vertex": "gcp.vertex_ai"}
_GEMINI = "gcp.gemini"
_NS_PER_MS = 1_000_000  # nanoseconds per millisecond
#: Names in paths: a span is named after the route, not after the resource.
_ROUTE_PATTERNS = (
    (re.compile(r"/projects/[^/]+/locations/[^/]+"), "/projects/{project}/locations/{location}"),
    (re.compile(r"/models/[^/:]+"), "/models/{model}"),
    (re.compile(r"/model/.+(?=/)"), "/model/{model}"),
    (re.compile(r"/(responses|conversations|items)/(?!compact$|input_tokens$)[^/]+"), r"/\1/{id}"),
)
_log = logging.getLogger("dragoman")


class TraceExporter:
    """An observer that creates a span per request, with children for attempts and gateway tools."""

    def __init__(self, backend: str) -> None:
        self._provider_name = _PROVIDERS.get(backend, _GEMINI)
        self._queue: queue.Queue[RequestRecord | None] = queue.Queue(_QUEUE)
        self._provider = _open_provider()
        self._tracer = self._provider.get_tracer("dragoman", version("dragoman"))
        self._writer: threading.Thread | None = None

    def on_request_end(self, record: RequestRecord, stages: RequestStages | None) -> None:
        del stages
        if not is_counted(record):
            return
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_all, name="traces", daemon=True)
            self._writer.start()
        if not self._queue.full():
            self._queue.put_nowait(record)

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        if self._writer is not None:
            self._queue.put(None)
            self._writer.join()
            self._writer = None
        self._provider.shutdown()

    def _write_all(self) -> None:
        while (record := self._queue.get()) is not None:
            try:
                self._write(record)
            except Exception:  # an observer must not break requests
                _log.exception("%s could not be traced", record.id)

    def _write(self, record: RequestRecord) -> None:
        from opentelemetry import trace
        from opentelemetry.trace import SpanKind

        route = route_of(record)
        name = f"{record.method} {route}" if route else record.method
        start_ns = int(record.started_s * 1e9)
        root = self._span(
            name, _parent_context(record.trace), SpanKind.SERVER, start_ns, request_attributes(record)
        )
        inside = trace.set_span_in_context(root)
        for attempt in record.attempts:
            attributes = attempt_attributes(attempt, record, self._provider_name)
            name = f"generate_content {attempt.model}"
            span = self._span(
                name, inside, SpanKind.CLIENT, start_ns + attempt.at_ms * _NS_PER_MS, attributes
            )
            _end_span(span, start_ns + (attempt.at_ms + attempt.ms) * _NS_PER_MS, attempt.error)
        for run in record.runs:
            began_ns = start_ns + run.at_ms * _NS_PER_MS
            span = self._span(
                f"execute_tool {run.name}", inside, SpanKind.INTERNAL, began_ns, tool_attributes(run)
            )
            _end_span(span, began_ns + run.ms * _NS_PER_MS, "tool_error" if run.failed else "")
        # A 4xx status is an error of the client, not of the server. An error inside a stream has status 200.
        ours = record.error if record.status >= 500 or record.status < 400 else ""
        _end_span(root, start_ns + record.total_ms * _NS_PER_MS, ours)

    def _span(
        self, name: str, context: Context | None, kind: SpanKind, start_ns: int, attributes: Attributes
    ) -> Span:
        return self._tracer.start_span(
            name, context=context, kind=kind, attributes=attributes, start_time=start_ns
        )


def request_attributes(record: RequestRecord) -> Attributes:
    found: Mapping[str, str | int] = {
        "http.request.method": record.method,
        "http.route": route_of(record),
        "url.path": record.path,
        "user_agent.original": record.client,
        "error.type": record.error,
        "gen_ai.conversation.id": record.session,
        "dragoman.request.id": record.id,
        "dragoman.dialect": record.dialect,
        "dragoman.asked_model": record.asked_model,
        "dragoman.notes": len(record.notes),
        "dragoman.first_byte_ms": record.first_byte_ms,
        "dragoman.wait_ms": record.wait_ms,
        "http.response.status_code": record.status,
        "http.request.body.size": record.bytes_in,
        "http.response.body.size": record.bytes_out,
    }
    return {name: value for name, value in found.items() if value != ""}


def attempt_attributes(attempt: Attempt, record: RequestRecord, provider: str) -> Attributes:
    usage = attempt.usage
    found: Attributes = {
        "gen_ai.provider.name": provider,
        "gen_ai.operation.name": "generate_content",
        "gen_ai.request.model": attempt.model,
        "gen_ai.conversation.id": record.session,
        "gen_ai.response.model": attempt.answered_model,
        "error.type": attempt.error,
        "http.response.status_code": attempt.status,
        "dragoman.upstream.key": attempt.key,
    }
    if record.stream:
        found["gen_ai.request.stream"] = True
    if attempt.stop:
        found["gen_ai.response.finish_reasons"] = [attempt.stop]
    if usage.input_tokens or usage.output_tokens:
        found |= {
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
            "gen_ai.usage.reasoning.output_tokens": usage.thought_tokens,
        }
    return {name: value for name, value in found.items() if value != "" and (value or "usage" in name)}


def tool_attributes(run: ToolRun) -> Attributes:
    found: Attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": run.name,
        "gen_ai.tool.type": "function",
        "dragoman.tool.result_size": run.size,
    }
    return found | ({"error.type": "tool_error"} if run.failed else {})


def route_of(record: RequestRecord) -> str:
    """Return the path with placeholders for the names in it; "" if there is no such route."""
    if record.error == "not_found" and not record.model:
        return ""
    path = record.path
    for names, instead in _ROUTE_PATTERNS:
        path = names.sub(instead, path)
    return path


def _open_provider() -> TracerProvider:
    try:
        missing = [name for name in _REQUIRED_MODULES if find_spec(name) is None]
    except ModuleNotFoundError as error:
        missing = [str(error.name)]
    if missing:
        why = f"traces need the extra ({missing[0]} is missing)\npip install 'dragoman[otel]'"
        raise ConfigError(why, where="observe.traces")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    ours = {"service.version": version("dragoman")} | ({} if named else {"service.name": "dragoman"})
    provider = TracerProvider(resource=Resource.create(ours), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _parent_context(trace: str) -> Context | None:
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({"traceparent": trace} if trace else {}, Context())


def _end_span(span: Span, at_ns: int, error: str) -> None:
    from opentelemetry.trace import StatusCode

    if error:
        span.set_status(StatusCode.ERROR, error)
    span.end(at_ns)
