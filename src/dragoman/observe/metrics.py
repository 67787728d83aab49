"""Counters, gauges and histograms, rendered in the Prometheus text format. No I/O.

Each process has its own registry; those of several workers are merged. The number of label combinations is
bounded, because clients choose some of the names: further ones are counted as `other`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Literal

import msgspec

from dragoman.store.base import other_labels

Labels = tuple[str, ...]

_MAX_SERIES = 500  # per metric
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_SMALL_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """The definition of a metric; one with `buckets` is a histogram."""

    name: str
    help: str
    labels: Labels = ()
    kind: Literal["counter", "gauge", "histogram"] = "counter"
    buckets: tuple[float, ...] = ()


def _histogram(name: str, text: str, labels: Labels = (), buckets: tuple[float, ...] = _SECONDS) -> Metric:
    return Metric(name=name, help=text, labels=labels, kind="histogram", buckets=buckets)


REQUESTS = Metric(
    name="dragoman_requests_total",
    help="Requests by dialect, model and outcome.",
    labels=("dialect", "model", "outcome"),
)
DURATION = _histogram(
    "dragoman_request_seconds",
    "Seconds from the first byte of the request to the last byte of the response.",
    ("dialect",),
)
FIRST_BYTE = _histogram(
    "dragoman_first_byte_seconds", "Seconds until the first byte of the response was sent.", ("dialect",)
)
OVERHEAD = _histogram(
    "dragoman_overhead_seconds",
    "Seconds of a request not spent waiting for Google: the gateway's own work and slow reading by the client.",
    ("dialect",),
    _SMALL_SECONDS,
)
TOKENS = Metric(name="dragoman_tokens_total", help="Tokens as counted by Google.", labels=("model", "kind"))
ATTEMPTS = Metric(
    name="dragoman_upstream_attempts_total",
    help="Requests to Google by outcome: ok, or the kind of error.",
    labels=("model", "outcome"),
)
RETRIES = Metric(
    name="dragoman_retries_total",
    help="Attempts that failed and were followed by another.",
    labels=("model",),
)
NOTES = Metric(
    name="dragoman_notes_total",
    help="Notes of translations by kind (dropped, renamed, clamped, ...); `sentinel` is a lost thought signature.",
    labels=("kind",),
)
TOOL_CALLS = Metric(
    name="dragoman_tool_calls_total",
    help="Tool calls of the model by tool and by who runs it (client or gateway).",
    labels=("tool", "by"),
)
TOOL_RESULTS = Metric(
    name="dragoman_tool_results_total",
    help="Tool results by tool, by who ran it (client or gateway) and by outcome.",
    labels=("tool", "by", "outcome"),
)
TOOL_SECONDS = _histogram(
    "dragoman_tool_seconds",
    "Seconds that tools ran; for a client's tool, from the response with the call to the request with the result.",
    ("by",),
)
TOOL_REPAIRS = Metric(
    name="dragoman_argument_repairs_total",
    help="Tool calls whose arguments did not fit the schema of the tool and were repaired.",
    labels=("tool",),
)
COST = Metric(
    name="dragoman_cost_usd_total",
    help="Cost in US dollars at list price, where it is known.",
    labels=("model",),
)
UNPRICED = Metric(
    name="dragoman_unpriced_requests_total",
    help="Requests that used tokens of a model with an unknown price.",
    labels=("model",),
)
BYTES = Metric(
    name="dragoman_bytes_total",
    help="Bytes of request bodies (in) and response bodies (out).",
    labels=("direction",),
)
OPEN = Metric(name="dragoman_open_requests", help="Requests in progress.", kind="gauge")
OPEN_STREAMS = Metric(
    name="dragoman_open_streams",
    help="Streams in progress: requests whose response has started.",
    kind="gauge",
)
CACHE = Metric(
    name="dragoman_cache_lookups_total",
    help="Lookups in the translation caches.",
    labels=("cache", "found"),
)

ALL_METRICS = (
    *(REQUESTS, DURATION, FIRST_BYTE, OVERHEAD, TOKENS, ATTEMPTS, RETRIES, NOTES),
    *(TOOL_CALLS, TOOL_RESULTS, TOOL_SECONDS, TOOL_REPAIRS, COST, UNPRICED, BYTES, OPEN, OPEN_STREAMS, CACHE),
)


class Series(msgspec.Struct, frozen=True):
    """A snapshot of one time series: a value, or bucket counts with the sum of a histogram."""

    metric: str
    labels: Labels
    value: float
    counts: tuple[int, ...] = ()


class SeriesValue:
    """The current value of one time series."""

    __slots__ = ("_buckets", "counts", "value")

    def __init__(self, buckets: tuple[float, ...]) -> None:
        self._buckets = buckets
        self.value: float = 0
        self.counts = [0] * (len(buckets) + 1) if buckets else []

    def observe(self, value: float) -> None:
        """Add an observation to a histogram."""
        self.value += value
        self.counts[bisect_left(self._buckets, value)] += 1


class SeriesByLabels(dict[Labels, SeriesValue]):
    """The series of one metric by label values; a missing one is created when it is accessed."""

    def __init__(self, metric: Metric) -> None:
        super().__init__()
        self._buckets = metric.buckets

    def __missing__(self, labels: Labels) -> SeriesValue:
        if len(self) >= _MAX_SERIES:
            labels = other_labels(labels)
        return self.setdefault(labels, SeriesValue(self._buckets))


class MetricRegistry:
    """The metrics of one process."""

    def __init__(self) -> None:
        self._metrics = {metric.name: SeriesByLabels(metric) for metric in ALL_METRICS}

    def __getitem__(self, metric: Metric) -> SeriesByLabels:
        return self._metrics[metric.name]

    def snapshot(self) -> list[Series]:
        return [
            Series(name, labels, counter.value, tuple(counter.counts))
            for name, counters in self._metrics.items()
            for labels, counter in counters.items()
        ]


def merge(snapshots: Iterable[Iterable[Series]]) -> list[Series]:
    """Add up the snapshots of several processes."""
    found: dict[tuple[str, Labels], Series] = {}
    for series in (one for snapshot in snapshots for one in snapshot):
        key = (series.metric, series.labels)
        known = found.get(key)
        if known is not None:
            counts = tuple(map(sum, zip(known.counts, series.counts, strict=False)))
            series = Series(series.metric, series.labels, known.value + series.value, counts)
        found[key] = series
    return list(found.values())


def limit_series(series: Iterable[Series]) -> list[Series]:
    """Limit the number of series per metric: keep the first ones and merge the rest into `other`."""
    known: dict[str, int] = {}
    limited: list[Series] = []
    for one in series:
        known[one.metric] = known.get(one.metric, 0) + 1
        labels = one.labels if known[one.metric] <= _MAX_SERIES else other_labels(one.labels)
        limited.append(Series(one.metric, labels, one.value, one.counts))
    return merge([limited])


def render(series: Iterable[Series]) -> bytes:
    """Return the Prometheus text format, without metrics that have no series.

    https://prometheus.io/docs/instrumenting/exposition_formats/
    """
    grouped: dict[str, list[Series]] = {}
    for one in series:
        grouped.setdefault(one.metric, []).append(one)
    lines: list[str] = []
    for metric in ALL_METRICS:
        known = grouped.get(metric.name)
        if known:
            lines += (f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}")
            for one in sorted(known, key=lambda one: one.labels):
                lines += (
                    _histogram_lines(metric, one)
                    if metric.buckets
                    else [_line(metric, one.labels, one.value)]
                )
    return ("\n".join(lines) + "\n").encode()


def _histogram_lines(metric: Metric, one: Series) -> list[str]:
    lines: list[str] = []
    total = 0
    for bound, count in zip((*metric.buckets, float("inf")), one.counts, strict=True):
        total += count
        edge = "+Inf" if bound == float("inf") else f"{bound:g}"
        lines.append(_line(metric, one.labels, total, suffix="_bucket", edge=edge))
    lines.append(_line(metric, one.labels, one.value, suffix="_sum"))
    lines.append(_line(metric, one.labels, total, suffix="_count"))
    return lines


def _line(metric: Metric, labels: Labels, value: float, *, suffix: str = "", edge: str = "") -> str:
    pairs = [f'{name}="{_escape(text)}"' for name, text in zip(metric.labels, labels, strict=True)]
    pairs += [f'le="{edge}"'] if edge else []
    inside = "{" + ",".join(pairs) + "}" if pairs else ""
    number = repr(value) if value != int(value) else str(int(value))
    return f"{metric.name}{suffix}{inside} {number}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
