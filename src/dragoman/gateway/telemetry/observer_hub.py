"""The hub between requests and observers: log and metrics, and optionally traces, ledger and captures."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from dragoman.config import Config, ObserveConfig
from dragoman.gateway.telemetry.ledger_writer import LedgerWriter
from dragoman.gateway.telemetry.request_recorder import BodyCapture, PendingToolCalls, RequestRecorder
from dragoman.incremental.lru import cache_lookups
from dragoman.observe.captures import CAPTURES_FOLDER, CaptureWriter
from dragoman.observe.logs import RequestLogger
from dragoman.observe.metric_files import METRICS_FOLDER as METRICS_FOLDER
from dragoman.observe.metric_files import MetricFiles
from dragoman.observe.metrics import CACHE, OPEN, OPEN_STREAMS, MetricRegistry, Series
from dragoman.observe.record import Observer, RequestRecord
from dragoman.observe.request_metrics import RequestMetrics
from dragoman.redact import Redactor
from dragoman.store import Ledger

#: https://www.w3.org/TR/trace-context/, version 00; an id of zeros is invalid.
_TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_MAX_CLIENT_CHARACTERS = 80
_PAUSE_S = 0.1  # observers learn of a successful request at most this much later
_BATCH = 64  # larger batches would block the event loop for too long
_log = logging.getLogger("dragoman")


def open_observers(
    config: Config, registry: MetricRegistry, redactor: Redactor, ledger: Ledger
) -> tuple[Observer, ...]:
    """Return the observers that the settings enable."""
    settings = config.observe
    observers: list[Observer] = [RequestLogger(settings.log), RequestMetrics(registry, config.limits)]
    if settings.traces:
        from dragoman.observe.traces import TraceExporter  # not imported unless traces are enabled

        observers.append(TraceExporter(config.backend))
    if settings.ledger:
        observers.append(LedgerWriter(ledger, config.limits))
    if settings.capture != "off" and config.home:
        folder = Path(config.home) / CAPTURES_FOLDER
        observers.append(CaptureWriter(folder, max_bytes=settings.capture_bytes, redactor=redactor))
    return tuple(observers)


class ObserverHub:
    """Start and end the recorders of requests, and pass their records to the observers in batches.

    Records contain no secrets; captured bodies are redacted by the observer that writes them (known problem O5).
    """

    def __init__(self, config: Config, redactor: Redactor, ledger: Ledger) -> None:
        self._redactor = redactor
        self._settings: ObserveConfig = config.observe
        self._registry = MetricRegistry()
        self._files = MetricFiles(Path(config.home) / METRICS_FOLDER, self._registry) if config.home else None
        self._publish_timer: asyncio.TimerHandle | None = None
        self._open: set[RequestRecorder] = set()
        self._pending_tool_calls = PendingToolCalls()
        self._unreported: list[RequestRecorder] = []  # not passed to the observers yet
        self._flush_timer: asyncio.TimerHandle | None = None
        settings = self._settings  # metrics and the ledger can wait; the log, captures and traces cannot
        self._reports_at_once = settings.log == "all" or settings.capture != "off" or settings.traces
        self.observers = open_observers(config, self._registry, redactor, ledger)

    def metrics(self) -> list[Series]:
        """Return the metrics of all workers on this machine."""
        self.flush()
        self._update_gauges()
        return self._files.all() if self._files is not None else self._registry.snapshot()

    def begin(
        self,
        request_id: str,
        method: str,
        path: str,
        headers: Mapping[str, str],
        query: Mapping[str, str],
    ) -> RequestRecorder:
        """Start the recorder of a request; it gets its head without secrets."""
        scrub, trace = self._redactor.scrub, headers.get("traceparent", "")
        recorder = RequestRecorder(
            request_id,
            self._pending_tool_calls,
            method=method,
            path=scrub(path),
            client=scrub(headers.get("user-agent", ""))[:_MAX_CLIENT_CHARACTERS],
            trace=trace if trace and _TRACEPARENT.fullmatch(trace) else "",
        )
        if self._settings.capture != "off":
            recorder.capture = BodyCapture(self._settings.capture_body_bytes, headers, query)
        self._open.add(recorder)
        if self._publish_timer is None:
            self._publish_soon()
        return recorder

    def end(self, recorder: RequestRecorder) -> None:
        """End a recorder; failed requests are reported at once, others in batches."""
        self._open.discard(recorder)
        if recorder.is_unrecorded:
            return
        recorder.end()
        self._unreported.append(recorder)
        if self._reports_at_once or not recorder.is_successful or len(self._unreported) >= _BATCH:
            self.flush()
        elif self._flush_timer is None:
            self._flush_timer = asyncio.get_running_loop().call_later(_PAUSE_S, self._flush_batch)

    def flush(self) -> None:
        """Pass the records of all ended requests to the observers; a batch is cheaper than single records."""
        ended, self._unreported = self._unreported, []
        for recorder in ended:
            try:
                self._report(recorder)
            except Exception:  # a failing observer must not affect requests
                _log.exception("%s could not be noted", recorder.id)
        if ended and self._publish_timer is None:
            self._publish_soon()

    def _flush_batch(self) -> None:
        self._flush_timer = None
        self.flush()

    def _report(self, recorder: RequestRecorder) -> None:
        record, stages = recorder.build_record()
        record = self._redact(record)
        if self._settings.capture == "errors" and not record.error:
            stages = None
        for observer in self.observers:
            try:
                observer.on_request_end(record, stages)
            except Exception:  # nor other observers
                _log.exception("%s could not be noted", record.id)

    def _publish_soon(self) -> None:
        """Publish the metrics to the other workers: now, or when the minimum interval has passed."""
        if self._files is None:
            return
        wait_s = self._files.wait_s
        if wait_s:
            self._publish_timer = asyncio.get_running_loop().call_later(wait_s, self._publish)
        else:
            self._publish()

    def _publish(self) -> None:
        self._publish_timer = None
        if self._files is not None:
            self.flush()
            self._update_gauges()
            self._files.write()

    def _update_gauges(self) -> None:
        """Set the gauges: open requests, open streams, and cache lookups."""
        self._registry[OPEN][()].value = len(self._open)
        self._registry[OPEN_STREAMS][()].value = sum(recorder.is_streaming for recorder in self._open)
        cache = self._registry[CACHE]
        for name, (found, missed) in cache_lookups().items():
            cache[name, "yes"].value = found
            cache[name, "no"].value = missed

    def _redact(self, record: RequestRecord) -> RequestRecord:
        """Redact secrets in names and notes, which contain text from clients and models."""
        texts = [record.asked_model, record.answered_model, record.session, *record.calls, *record.own_calls]
        if record.results:
            texts += [result.name for result in record.results]
        for note in record.notes:
            texts += (note.where, note.why)
        joined = "\n".join(texts)
        if self._redactor.scrub(joined) == joined:
            return record
        return msgspec.json.decode(self._redactor.body(msgspec.json.encode(record)), type=RequestRecord)

    async def close(self) -> None:
        if self._flush_timer is not None:
            self._flush_timer.cancel()
        self.flush()
        for observer in self.observers:
            await observer.close()
        if self._publish_timer is not None:
            self._publish_timer.cancel()
        self._publish()
