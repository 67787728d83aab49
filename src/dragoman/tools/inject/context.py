"""A session's state for one request: tools, pending calls, and results that have arrived, adapted to one model.

Also the access to Google's JSON in all the forms that its parser accepts: names may be camelCase or snake_case and
null means absent, as in ProtoJSON (https://protobuf.dev/programming-guides/json/). A list of one may also be a
single object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from dragoman.dialects.base import Target
from dragoman.dialects.gemini import ModelProfile, origin_of, profile_of
from dragoman.dialects.gemini.contents import SENTINEL

Json = dict[str, Any]

_CAPITAL = re.compile(r"[A-Z]")


def find_key(thing: Mapping[str, Any], name: str) -> str:
    """Return the key of a field as it is spelled in the object; camelCase if the field is absent."""
    snake = _to_snake_case(name)
    return snake if name not in thing and snake in thing else name


def get_field(thing: Mapping[str, Any], name: str) -> Any:
    return thing.get(find_key(thing, name))


def as_objects(value: Any) -> list[Json]:
    """Return the objects in a list, or a single object as a list; other values are ignored."""
    entries = value if isinstance(value, list) else [value]
    return [entry for entry in entries if isinstance(entry, dict)]


def with_field(thing: Mapping[str, Any], name: str, value: Any) -> Json:
    """Return a copy with the field set, in its existing spelling, or removed if the value is empty."""
    key = find_key(thing, name)
    if value:
        return {**thing, key: value}
    return {own: kept for own, kept in thing.items() if own != key}


@lru_cache(maxsize=256)
def _to_snake_case(name: str) -> str:
    return _CAPITAL.sub(lambda found: "_" + found[0].lower(), name)


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
    encoded = msgspec.json.encode([call.get("name"), call.get("args") or {}], order="deterministic")
    return blake2b(encoded, digest_size=16).hexdigest()


_TEXT_MIME_TYPES = ("", "text/plain")


def adapt_to_model(context: ToolContext, body: Json, target: Target) -> ToolContext:
    """Return the context adapted to the target's model.

    Removes functions if the model does not support them with JSON output, drops built-in tools if it does not support
    them with functions, and leaves out or adds call ids and signatures as the model requires.
    """
    profile, origin = profile_of(target.model), origin_of(target)
    takes_built_in = profile.mixes_tools and target.backend != "vertex"
    return msgspec.structs.replace(
        _without_json_conflict(context, body, profile),
        last_calls=_adapt_calls(context.last_calls, profile, origin),
        earlier=tuple(
            CallStep(_adapt_calls(step.calls, profile, origin), step.results) for step in context.earlier
        ),
        built_in="keep" if takes_built_in else "drop",
    )


def _without_json_conflict(context: ToolContext, body: Json, profile: ModelProfile) -> ToolContext:
    generation = get_field(body, "generationConfig") or {}
    if (get_field(generation, "responseMimeType") or "") in _TEXT_MIME_TYPES:
        return context
    if not profile.json_with_functions:
        return msgspec.structs.replace(context, tools=(), tool_config=None)
    calling = get_field(context.tool_config or {}, "functionCallingConfig") or {}
    if context.tool_config and str(calling.get("mode", "")).upper() == "ANY":
        config = with_field(context.tool_config, "functionCallingConfig", None)
        return msgspec.structs.replace(context, tool_config=config)
    return context


def _adapt_calls(
    calls: tuple[CapturedCall, ...], profile: ModelProfile, origin: str
) -> tuple[CapturedCall, ...]:
    return tuple(_adapt_call(call, profile, origin, first=place == 0) for place, call in enumerate(calls))


def _adapt_call(call: CapturedCall, profile: ModelProfile, origin: str, *, first: bool) -> CapturedCall:
    """Drop a signature of another backend or model family.

    The first call of a step needs a signature, or else Google's sentinel value.
    """
    signature = call.signature if call.origin in ("", origin) else ""
    if first and call.index == 0 and not signature:
        signature = SENTINEL
    return msgspec.structs.replace(
        call,
        signature=signature if profile.signatures else "",
        sent_id=call.sent_id if profile.call_ids else "",
    )
