"""Adapt a session's context to one model: remove what Google would reject for it."""

from __future__ import annotations

import msgspec

from dragoman.dialects.base import Target
from dragoman.dialects.gemini import ModelProfile, origin_of, profile_of
from dragoman.dialects.gemini.contents import SENTINEL
from dragoman.tools.inject.context import CallStep, CapturedCall, ToolContext
from dragoman.tools.inject.spelling import Json, get_field, with_field

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
