"""Encode the response object, for complete answers and for the events that contain it."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.dialects.base import Answer
from dragoman.dialects.openai_responses.echo import Echo
from dragoman.ir import Finished, StopReason, Usage

_json = msgspec.json.Encoder().encode

#: Stop reason -> status of the response, and the reason in `incomplete_details`.
_STATUS: dict[StopReason, tuple[str, str | None]] = {
    "end": ("completed", None),
    "tool_calls": ("completed", None),
    "max_tokens": ("incomplete", "max_output_tokens"),
    "blocked": ("incomplete", "content_filter"),
    "malformed": ("incomplete", "content_filter"),
    "other": ("completed", None),
}


def encode_count(tokens: int) -> bytes:
    return b'{"object":"response.input_tokens","input_tokens":%d}' % tokens


def echo_of(answer: Answer) -> Echo:
    return answer.echo if isinstance(answer.echo, Echo) else Echo()


def status_of(finished: Finished) -> tuple[str, str | None]:
    """Return the status of a response, and the reason if it is incomplete."""
    return _STATUS[finished.reason]


def encode_body(
    answer: Answer,
    status: str,
    *,
    output: list[bytes] | None = None,
    usage: Usage | None = None,
    incomplete: str | None = None,
    error: dict[str, Any] | None = None,
) -> bytes:
    """Encode a response object; `output` are the output items as JSON."""
    body: dict[str, Any] = {
        "id": answer.id,
        "object": "response",
        "created_at": answer.created_s,
        "status": status,
        "error": error,
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "model": answer.model,
        "output": [msgspec.Raw(item) for item in output or ()],
        "usage": _usage(usage, answer) if usage is not None else None,
        **echo_of(answer).fields,
    }
    return _json(body)


def _usage(usage: Usage, answer: Answer) -> dict[str, Any]:
    """Encode token counts. As at Google, input includes cached tokens and output includes reasoning tokens."""
    entered = usage.input_tokens or answer.input_tokens
    return {
        "input_tokens": entered,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.thought_tokens},
        "total_tokens": entered + usage.output_tokens,
    }
