"""One request as a row of the request list."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from dragoman.observe.record import RequestRecord

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
