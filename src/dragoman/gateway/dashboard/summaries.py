"""The rows of the dashboard's lists: one per request, and summaries by session, tool and model. Pure functions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from dragoman.observe.record import ClientToolResult, RequestRecord, ToolRun
from dragoman.observe.usage import count_retries, repaired_tools

#: Returns the cost of a request in dollars, None if its price is unknown.
CostFunction = Callable[[RequestRecord], float | None]

#: Product names in a User-Agent, and the display name of each client.
_CLIENT_NAMES: dict[str, str] = {
    "claude-cli": "Claude Code",
    "anthropic": "Anthropic SDK",
    "openai": "OpenAI SDK",
    "asyncopenai": "OpenAI SDK",
    "asyncanthropic": "Anthropic SDK",
    "codex_cli_rs": "Codex",
    "codex_exec": "Codex",
    "geminicli": "Gemini CLI",
    "google-genai-sdk": "Google GenAI SDK",
    "opencode": "opencode",
    "qwencode": "Qwen Code",
    "copilot": "Copilot CLI",
    "boto3": "boto3",
    "botocore": "boto3",
    "aws-sdk-js": "AWS SDK for JS",
    "aws-sdk-rust": "Amazon Q",
    "python-requests": "requests",
    "curl": "curl",
}
_PRODUCT_NAME = re.compile(r"[^/\s]+")
_MAX_NAME_CHARACTERS = 40


class RequestRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`cost_usd` is None if the price of the model is unknown."""

    id: str
    at_ms: int
    status: int = 0
    error: str = ""
    client: str = ""
    dialect: str = ""
    session: str = ""
    asked_model: str = ""
    model: str = ""
    path: str = ""
    stream: bool = False
    left: bool = False
    stop: str = ""
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    first_byte_ms: int = 0
    wait_ms: int = 0
    total_ms: int = 0
    calls: tuple[str, ...] = ()
    own_calls: tuple[str, ...] = ()
    failed_results: int = 0
    results: int = 0
    notes: int = 0
    attempts: int = 0


def request_row(record: RequestRecord, cost_of: CostFunction) -> RequestRow:
    usage = record.usage
    return RequestRow(
        id=record.id,
        at_ms=int(record.started_s * 1000),
        status=record.status,
        error=record.error,
        client=client_name(record.client),
        dialect=record.dialect,
        session=record.session,
        asked_model=record.asked_model,
        model=record.model,
        path=record.path,
        stream=record.stream,
        left=record.left,
        stop=record.stop,
        tokens_in=usage.input_tokens,
        tokens_cached=usage.cached_tokens,
        tokens_out=usage.output_tokens,
        cost_usd=cost_of(record),
        first_byte_ms=record.first_byte_ms,
        wait_ms=record.wait_ms,
        total_ms=record.total_ms,
        calls=record.calls,
        own_calls=record.own_calls,
        failed_results=sum(one.failed for one in record.results),
        results=len(record.results),
        notes=len(record.notes),
        attempts=len(record.attempts),
    )


def client_name(agent: str) -> str:
    """Return the display name for a User-Agent, or its first product name if the client is unknown."""
    words = _PRODUCT_NAME.findall(agent)
    known = next((_CLIENT_NAMES[word.lower()] for word in words if word.lower() in _CLIENT_NAMES), "")
    return known or (words[0][:_MAX_NAME_CHARACTERS] if words else "")


_MAX_TOOLS = 8  # the most used tools of a session


class SessionSummary(msgspec.Struct, kw_only=True):
    """The summary of one session; `tools` maps its most used tools to their counts."""

    id: str
    client: str = ""
    dialect: str = ""
    model: str = ""
    first_ms: int = 0
    last_ms: int = 0
    requests: int = 0
    errors: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0  # requests whose price is unknown
    calls: int = 0
    failed_results: int = 0
    tools: dict[str, int] = {}


class ToolSummary(msgspec.Struct, kw_only=True):
    """The use of one tool; `own` counts calls that the gateway ran. Times are from the call to its result."""

    name: str
    calls: int = 0
    own: int = 0
    results: int = 0
    failed: int = 0
    mended: int = 0
    bytes_total: int = 0
    bytes_most: int = 0
    timed: int = 0
    median_ms: int = 0
    slow_ms: int = 0  # 90th percentile
    last_ms: int = 0
    sessions: int = 0


class ModelSummary(msgspec.Struct, kw_only=True):
    name: str
    requests: int = 0
    errors: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    median_ms: int = 0
    slow_ms: int = 0
    first_byte_ms: int = 0
    last_ms: int = 0
    failures: dict[str, int] = {}  # failed attempts by error kind


def summarize_sessions(records: Iterable[RequestRecord], cost_of: CostFunction) -> list[SessionSummary]:
    """Summarize sessions, the most recently used first; `records` must be sorted newest first."""
    found: dict[str, SessionSummary] = {}
    tools: dict[str, Counter[str]] = {}
    for record in records:
        if not record.session:
            continue
        one = found.get(record.session)
        if one is None:
            one = found[record.session] = SessionSummary(
                id=record.session,
                client=client_name(record.client),
                dialect=record.dialect,
                model=record.model,
            )
            tools[record.session] = Counter()
            one.last_ms = _ended_ms(record)
        _count_session(one, record, cost_of)
        tools[record.session].update((*record.calls, *record.own_calls))
    for name, one in found.items():
        one.tools = dict(tools[name].most_common(_MAX_TOOLS))
    return list(found.values())


def _count_session(one: SessionSummary, record: RequestRecord, cost_of: CostFunction) -> None:
    one.first_ms = _started_ms(record)
    one.last_ms = max(one.last_ms, _ended_ms(record))
    one.model = one.model or record.model
    one.requests += 1
    one.errors += bool(record.error)
    one.tokens_in += record.usage.input_tokens
    one.tokens_cached += record.usage.cached_tokens
    one.tokens_out += record.usage.output_tokens
    _count_cost(one, cost_of(record))
    one.calls += len(record.calls) + len(record.own_calls)
    one.failed_results += sum(result.failed for result in record.results)


def _count_cost(one: SessionSummary | ModelSummary, cost: float | None) -> None:
    one.cost_usd += cost or 0.0
    one.unpriced += cost is None


def summarize_tools(records: Sequence[RequestRecord]) -> list[ToolSummary]:
    """Summarize tools, the most used first."""
    found: dict[str, ToolSummary] = {}
    times: dict[str, list[int]] = {}
    sessions: dict[str, set[str]] = {}

    def use(name: str, record: RequestRecord) -> ToolSummary:
        one = found.setdefault(name, ToolSummary(name=name))
        one.last_ms = max(one.last_ms, _started_ms(record))
        sessions.setdefault(name, set()).update([record.session] if record.session else ())
        return one

    for record in records:
        for name in record.calls:
            use(name, record).calls += 1
        for name in record.own_calls:
            use(name, record).own += 1
        for outcome in _tool_results(record):
            _count_outcome(use(outcome.name, record), outcome)
            if outcome.ms is not None:
                times.setdefault(outcome.name, []).append(outcome.ms)
        for name in repaired_tools(record):
            use(name, record).mended += 1
    for name, one in found.items():
        known = sorted(times.get(name, ()))
        one.timed, one.median_ms, one.slow_ms = len(known), _quantile(known, 0.5), _quantile(known, 0.9)
        one.sessions = len(sessions[name])
    found.pop("", None)  # results whose call is unknown
    return sorted(found.values(), key=lambda one: (-(one.calls + one.own + one.results), one.name))


def _tool_results(record: RequestRecord) -> list[ClientToolResult | ToolRun]:
    """Return all tool results; calls with an external result in a later request have none yet."""
    return [*record.results, *(run for run in record.runs if not run.later)]


def _count_outcome(one: ToolSummary, outcome: ClientToolResult | ToolRun) -> None:
    one.results += 1
    one.failed += outcome.failed
    one.bytes_total += outcome.size
    one.bytes_most = max(one.bytes_most, outcome.size)


def summarize_models(records: Iterable[RequestRecord], cost_of: CostFunction) -> list[ModelSummary]:
    """Summarize models, the most used first."""
    found: dict[str, ModelSummary] = {}
    totals: dict[str, list[int]] = {}
    firsts: dict[str, list[int]] = {}
    failures: dict[str, Counter[str]] = {}
    for record in records:
        for attempt in record.attempts:
            if attempt.error:
                failures.setdefault(attempt.model, Counter())[attempt.error] += 1
        if not record.model:
            continue
        one = found.setdefault(record.model, ModelSummary(name=record.model))
        one.requests += 1
        one.errors += bool(record.error)
        one.retries += count_retries(record)
        one.tokens_in += record.usage.input_tokens
        one.tokens_cached += record.usage.cached_tokens
        one.tokens_out += record.usage.output_tokens
        one.last_ms = max(one.last_ms, _started_ms(record))
        _count_cost(one, cost_of(record))
        if not record.error:
            totals.setdefault(record.model, []).append(record.total_ms)
            firsts.setdefault(record.model, []).append(record.first_byte_ms)
    for name, one in found.items():
        known = sorted(totals.get(name, ()))
        one.median_ms, one.slow_ms = _quantile(known, 0.5), _quantile(known, 0.9)
        one.first_byte_ms = _quantile(sorted(firsts.get(name, ())), 0.5)
        one.failures = dict(failures.get(name, ()))
    return sorted(found.values(), key=lambda one: (-one.requests, one.name))


def _quantile(ordered: Sequence[int], share: float) -> int:
    """Return the value at this quantile of a sorted sequence, 0 if it is empty."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0


def _started_ms(record: RequestRecord) -> int:
    return int(record.started_s * 1000)


def _ended_ms(record: RequestRecord) -> int:
    return _started_ms(record) + record.total_ms
