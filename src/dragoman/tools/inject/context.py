"""A session's state for one request: tools, pending calls, and results that have arrived."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from dragoman.tools.inject.spelling import get_field

#: The text that replaces withheld calls in the client's history; the id is that of the first call.
_PLACEHOLDER = re.compile(r"\s*\[waiting for [^\[\]]+ · ([^\s\[\]]+)\]")


class CapturedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of an injected tool by the model.

    `sent_id` is Google's own id, which some models do not send. `question` (the hash of the request's last turn) and
    `beside` (the keys of the client's own calls in the same step) help to find the step again in a later history.
    """

    id: str
    name: str
    args: dict[str, Any] = {}
    signature: str = ""  # returned with the call, unchanged
    sent_id: str = ""
    origin: str = ""  # backend and model family that issued the signature; empty means any
    index: int = 0  # position among all calls of the step
    question: str = ""
    beside: tuple[str, ...] = ()


class CallResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call; `parts` are files in Google's format."""

    id: str
    response: dict[str, Any]
    parts: tuple[dict[str, Any], ...] = ()


class CallStep(msgspec.Struct, frozen=True):
    """The calls of one response, and their results."""

    calls: tuple[CapturedCall, ...]
    results: tuple[CallResult, ...] = ()


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """What to inject into a request.

    `tools` are function declarations in Google's format. `earlier` steps are inserted again where the history still
    shows them. `built_in` says whether Google's built-in tools are kept or dropped when functions are injected, as
    not every model accepts both.
    """

    tools: tuple[dict[str, Any], ...] = ()
    tool_config: dict[str, Any] | None = None
    pending_results: tuple[CallResult, ...] = ()
    last_calls: tuple[CapturedCall, ...] = ()
    keep_client_tools: bool = True
    earlier: tuple[CallStep, ...] = ()
    built_in: Literal["keep", "drop"] = "keep"


def open_calls(context: ToolContext) -> tuple[CapturedCall, ...]:
    """Return the calls of the last step without results; a follow-up must wait until there are none."""
    answered = {result.id for result in context.pending_results}
    return tuple(call for call in context.last_calls if call.id not in answered)


def placeholder(calls: Sequence[CapturedCall]) -> str:
    """Return the text that a client gets instead of the calls; it marks their place in the history it sends back."""
    names = ", ".join(dict.fromkeys(call.name for call in calls))
    return f"[waiting for {names} · {calls[0].id}]"


def placeholder_ids(text: str) -> list[str]:
    """Return the call ids in all stand-ins of a text."""
    return _PLACEHOLDER.findall(text)


def remove_placeholder(text: str, call_id: str) -> str:
    return _PLACEHOLDER.sub(lambda found: "" if found[1] == call_id else found[0], text)


def call_key(call: Mapping[str, Any]) -> str:
    """Return a key that identifies a `functionCall` in a history: its id, or a hash of name and arguments."""
    named: str | None = get_field(call, "id")
    if named:
        return named
    said = msgspec.json.encode([call.get("name"), call.get("args") or {}], order="deterministic")
    return blake2b(said, digest_size=16).hexdigest()
