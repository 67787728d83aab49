"""What a session has for a request: tools, the calls it waits for, and the results that have come."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from dragoman.tools.inject.spelling import read

#: How a client's history shows calls it was not told of; the id names the first of them.
_STAND_IN = re.compile(r"\s*\[waiting for [^\[\]]+ · ([^\s\[\]]+)\]")


class CapturedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the model's to an injected tool.

    `sent_id` is Google's own id, which some models do not give. `question` is what the step answered and `beside`
    the client's own calls in the same step, so that the place of the step is found again.
    """

    id: str
    name: str
    args: dict[str, Any] = {}
    signature: str = ""  # goes back with the call, untouched
    sent_id: str = ""
    origin: str = ""  # who signed; empty: whoever gets it back
    index: int = 0  # its place among all calls of the step
    question: str = ""
    beside: tuple[str, ...] = ()


class CallResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came for a call; `parts` are files in Google's form."""

    id: str
    response: dict[str, Any]
    parts: tuple[dict[str, Any], ...] = ()


class Step(msgspec.Struct, frozen=True):
    """Calls of one answer, and their results."""

    calls: tuple[CapturedCall, ...]
    results: tuple[CallResult, ...] = ()


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """`tools` are Google's function declarations. `earlier` steps are told again where the history still shows them.

    `built_in` says what becomes of Google's own tools when functions come beside them: not every model takes both.
    """

    tools: tuple[dict[str, Any], ...] = ()
    tool_config: dict[str, Any] | None = None
    pending_results: tuple[CallResult, ...] = ()
    last_calls: tuple[CapturedCall, ...] = ()
    keep_client_tools: bool = True
    earlier: tuple[Step, ...] = ()
    built_in: Literal["keep", "drop"] = "keep"


def open_calls(context: ToolContext) -> tuple[CapturedCall, ...]:
    """The calls nobody has answered yet: a follow-up is to be held back while there are any."""
    answered = {result.id for result in context.pending_results}
    return tuple(call for call in context.last_calls if call.id not in answered)


def stand_in(calls: Sequence[CapturedCall]) -> str:
    """Words for a client instead of the calls; the history it brings back shows by them where the calls were."""
    names = ", ".join(dict.fromkeys(call.name for call in calls))
    return f"[waiting for {names} · {calls[0].id}]"


def stand_ins(text: str) -> list[str]:
    """The ids that the stand-ins in a text name."""
    return _STAND_IN.findall(text)


def without_stand_in(text: str, call_id: str) -> str:
    return _STAND_IN.sub(lambda found: "" if found[1] == call_id else found[0], text)


def call_key(call: Mapping[str, Any]) -> str:
    """A `functionCall` as it is known in a history: by its id, or by what it says where it has none."""
    named: str | None = read(call, "id")
    if named:
        return named
    said = msgspec.json.encode([call.get("name"), call.get("args") or {}], order="deterministic")
    return blake2b(said, digest_size=16).hexdigest()
