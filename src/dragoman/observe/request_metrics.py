"""The observer that updates the metrics when a request has finished."""

from __future__ import annotations

from dragoman.config.model import LimitsConfig
from dragoman.ir import Usage
from dragoman.observe import metrics as m
from dragoman.observe.record import RequestRecord, RequestStages
from dragoman.observe.usage import (
    CLIENT,
    GATEWAY,
    MICROS_PER_USD,
    NO_LABEL,
    CostCalculator,
    count_retries,
    repaired_tools,
)

_IN, _OUT = ("in",), ("out",)


class RequestMetrics:
    """Count finished requests into a registry.

    The series of each metric are looked up once, as this runs for every request.
    """

    def __init__(self, registry: m.MetricRegistry, limits: LimitsConfig = LimitsConfig()) -> None:  # noqa: B008 (frozen)
        self._prices = CostCalculator(limits)
        self._requests, self._bytes, self._attempts = (
            registry[m.REQUESTS],
            registry[m.BYTES],
            registry[m.ATTEMPTS],
        )
        self._duration, self._first_byte = registry[m.DURATION], registry[m.FIRST_BYTE]
        self._overhead = registry[m.OVERHEAD]
        self._tokens, self._cost, self._unpriced = registry[m.TOKENS], registry[m.COST], registry[m.UNPRICED]
        self._retries, self._notes = registry[m.RETRIES], registry[m.NOTES]
        self._calls, self._repairs = registry[m.TOOL_CALLS], registry[m.TOOL_REPAIRS]
        self._results, self._seconds = registry[m.TOOL_RESULTS], registry[m.TOOL_SECONDS]

    def on_request_end(self, record: RequestRecord, stages: RequestStages | None) -> None:
        del stages
        model, dialect = record.model or NO_LABEL, record.dialect or NO_LABEL
        self._requests[dialect, model, _outcome(record)].value += 1
        self._bytes[_IN].value += record.bytes_in
        self._bytes[_OUT].value += record.bytes_out
        if record.model:
            self._count_time(record, (dialect,))
            self._count_tokens(record.usage, model)
            self._count_cost(record)
        for attempt in record.attempts:
            self._attempts[attempt.model, attempt.error or "ok"].value += 1
        if len(record.attempts) > 1 and (again := count_retries(record)):
            self._retries[model,].value += again
        for note in record.notes:
            self._notes[note.kind,].value += 1
        if record.calls or record.own_calls or record.results:
            self._count_tools(record)

    def _count_tools(self, record: RequestRecord) -> None:
        for name in record.calls:
            self._calls[name, CLIENT].value += 1
        for name in record.own_calls:
            self._calls[name, GATEWAY].value += 1
        for name in repaired_tools(record) if record.notes else ():
            self._repairs[name,].value += 1
        for result in record.results:
            self._results[result.name or NO_LABEL, CLIENT, "failed" if result.failed else "ok"].value += 1
            if result.ms is not None:
                self._seconds[CLIENT,].observe(result.ms / 1000)
        for run in record.runs:
            outcome = "failed" if run.failed else "later" if run.later else "ok"
            self._results[run.name, GATEWAY, outcome].value += 1
            self._seconds[GATEWAY,].observe(run.ms / 1000)

    def _count_time(self, record: RequestRecord, dialect: m.Labels) -> None:
        self._duration[dialect].observe(record.total_ms / 1000)
        self._first_byte[dialect].observe(record.first_byte_ms / 1000)
        self._overhead[dialect].observe(record.overhead_us / 1_000_000)

    def _count_tokens(self, usage: Usage, model: str) -> None:
        tokens, cached, thought = self._tokens, usage.cached_tokens, usage.thought_tokens
        if (fresh := usage.input_tokens - cached) > 0:
            tokens[model, "input"].value += fresh
        if cached > 0:
            tokens[model, "cached"].value += cached
        if (text := usage.output_tokens - thought) > 0:
            tokens[model, "output"].value += text
        if thought > 0:
            tokens[model, "thought"].value += thought

    def _count_cost(self, record: RequestRecord) -> None:
        micro = self._prices.cost_micro_usd(record)
        if micro is None:
            self._unpriced[record.model,].value += 1
        elif micro:
            self._cost[record.model,].value += micro / MICROS_PER_USD

    async def close(self) -> None:
        return


def _outcome(record: RequestRecord) -> str:
    if record.left:
        return "left"
    return record.error or "ok"
