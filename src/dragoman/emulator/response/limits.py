"""Which part of the reply one response contains: output cap, stop sequences, hops, thoughts that were requested.

A Gemini 4 answer comes in hops (Google's word), and a continuation token starts the next one. A token is the position
in the text and a signature over the position and the request. The client must send the same request again, and the
model is deterministic, so the text is the same again.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from dragoman.emulator.errors import catch_all_error
from dragoman.emulator.model import ModelCall, ModelReply
from dragoman.emulator.models import EmulatedModel
from dragoman.emulator.response import ResponseContext
from dragoman.emulator.tokens import CHARS_PER_TOKEN, count_text, count_value

_CONTINUATION_FIELD = "continuationToken"
_POSITION_BYTES = 8


def issue_continuation_token(request: Mapping[str, Any], context: ResponseContext, position: int) -> str:
    """Return the token that continues the answer to this request at a position."""
    return base64.b64encode(_token(request, context, position)).decode()


def read_continuation_position(request: Mapping[str, Any], context: ResponseContext) -> int:
    """Return the position at which the answer continues, 0 without a token.

    Raise a `ApiError` for a token that was issued for another request.
    """
    token = request.get(_CONTINUATION_FIELD)
    if not token:
        return 0
    if not context.model.has_long_decode:
        raise catch_all_error("continuation_token: this model has no long decode")
    position = int.from_bytes(token[:_POSITION_BYTES], "big")
    if not hmac.compare_digest(_token(request, context, position), token):
        raise catch_all_error("continuation_token: it was not issued for this request")
    return position


def _token(request: Mapping[str, Any], context: ResponseContext, position: int) -> bytes:
    # Ignore empty fields: Google's SDK resumes with an additional `generationConfig: {}`.
    identity = {name: value for name, value in request.items() if name != _CONTINUATION_FIELD and value}
    mark = hashlib.blake2b(msgspec.json.encode(identity, order="deterministic"), digest_size=16)
    target = f"continuation:{position}:{mark.hexdigest()}"
    signature = context.signer.issue(context.backend, context.model, target, mark.digest())
    return position.to_bytes(_POSITION_BYTES, "big") + base64.b64decode(signature)


_THINKING_EFFORT = {"MINIMAL": 0, "LOW": 1, "MEDIUM": 2, "HIGH": 4}


class LimitedReply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply within its limits and its finish reason.

    With CONTINUATION, `position` is the start of the next hop.
    """

    reply: ModelReply
    finish_reason: Literal["STOP", "MAX_TOKENS", "CONTINUATION"]
    thought_tokens: int
    show_thoughts: bool
    position: int = 0


class _TokenBudget(msgspec.Struct, frozen=True):
    """The tokens left for text and calls, over all hops and in this hop."""

    total: int
    this_hop: int


def apply_limits(
    request: Mapping[str, Any], reply: ModelReply, model: EmulatedModel, *, hop_tokens: int, start: int = 0
) -> LimitedReply:
    """Return the part of the reply that this response contains, from `start` in its text."""
    config = request.get("generationConfig", {})
    thinking = config.get("thinkingConfig", {})
    cap = min(config.get("maxOutputTokens") or model.max_output_tokens, model.max_output_tokens)
    hop = min(cap, hop_tokens) if model.has_long_decode else cap
    # Thoughts take at most half of the cap: with a small cap no text would be left.
    thoughts = min(_thought_tokens(thinking, reply, model), hop // 2)
    budget_left = _TokenBudget(cap - thoughts, hop if start else hop - thoughts)
    text = _stop_at(reply.text, config.get("stopSequences", ()))
    here, finish, position = _select_hop(text, reply.calls, budget_left, start)
    thoughts_here = 0 if start else thoughts
    return LimitedReply(
        reply=msgspec.structs.replace(reply, text=here[0], calls=here[1]),
        finish_reason=finish,
        thought_tokens=thoughts_here,
        show_thoughts=bool(thinking.get("includeThoughts")) and thoughts_here > 0,
        position=position,
    )


def _select_hop(
    text: str, calls: Sequence[ModelCall], budget_left: _TokenBudget, start: int
) -> tuple[tuple[str, tuple[ModelCall, ...]], Literal["STOP", "MAX_TOKENS", "CONTINUATION"], int]:
    """Return the text and the calls of this hop, the finish reason, and the start of the next hop."""
    allowed = text[: budget_left.total * CHARS_PER_TOKEN]
    shown = allowed[start : start + budget_left.this_hop * CHARS_PER_TOKEN]
    end = start + len(shown)
    if end < len(allowed):
        return (shown, ()), "CONTINUATION", end
    if allowed != text:
        return (shown, ()), "MAX_TOKENS", end
    left = budget_left.total - count_text(text)
    kept = _calls_within(calls, min(left, budget_left.this_hop - count_text(shown)))
    if len(kept) == len(calls):
        return (shown, kept), "STOP", end
    if shown and budget_left.this_hop < budget_left.total and len(_calls_within(calls, left)) == len(calls):
        return (shown, ()), "CONTINUATION", end
    return (shown, kept), "MAX_TOKENS", end


def _thought_tokens(thinking: Mapping[str, Any], reply: ModelReply, model: EmulatedModel) -> int:
    level = thinking.get("thinkingLevel", "")
    budget = thinking.get("thinkingBudget")
    effort = _THINKING_EFFORT.get(level, 2 if model.thinks_by_default or (budget or 0) != 0 else 0)
    if budget == 0:
        effort = 0
    tokens = effort * (8 + count_text(reply.thought))
    return min(tokens, budget) if budget is not None and budget > 0 else tokens


def _stop_at(text: str, stops: Sequence[str]) -> str:
    found = [position for stop in stops if stop and (position := text.find(stop)) >= 0]
    return text[: min(found)] if found else text


def _calls_within(calls: Sequence[ModelCall], budget_left: int) -> tuple[ModelCall, ...]:
    kept: list[ModelCall] = []
    for call in calls:
        budget_left -= count_value({"name": call.name, "args": call.args})
        if budget_left < 0:
            break
        kept.append(call)
    return tuple(kept)
