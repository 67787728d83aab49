"""The last chunk of a candidate: finish reason, safety ratings, citations, grounding, log probabilities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.emulator.answer.grounding import write_grounding
from dragoman.emulator.answer.hops import issue_continuation_token
from dragoman.emulator.answer.limits import LimitedReply
from dragoman.emulator.answer.setting import ResponseContext
from dragoman.emulator.model.respond import ModelReply
from dragoman.emulator.tokens import split_tokens, token_id

JsonObject = dict[str, Any]

_CALL_MESSAGE = "Model generated function call(s)."
_MAX_ALTERNATIVES = 20


def write_last_fields(
    request: Mapping[str, Any], limited: LimitedReply, setting: ResponseContext
) -> JsonObject:
    reply = limited.reply
    ending: JsonObject = {"finishReason": limited.finish_reason}
    if reply.calls and setting.model.is_gemini3_or_later and limited.finish_reason == "STOP":
        ending["finishMessage"] = _CALL_MESSAGE
    if limited.finish_reason == "CONTINUATION":
        ending["continuationToken"] = issue_continuation_token(request, setting, limited.position)
    if request.get("safetySettings"):
        ending["safetyRatings"] = _safety_ratings(request["safetySettings"], vertex=setting.backend.is_vertex)
    if reply.cited_urls and reply.text:
        ending["citationMetadata"] = _citations(reply, vertex=setting.backend.is_vertex)
    ending |= write_grounding(request, reply, setting)
    return ending | _logprobs(request.get("generationConfig", {}), reply.text)


def _safety_ratings(settings: Sequence[Mapping[str, Any]], *, vertex: bool) -> list[JsonObject]:
    scores = {"probabilityScore": 0.01, "severity": "HARM_SEVERITY_NEGLIGIBLE", "severityScore": 0.01}
    return [
        {"category": setting.get("category"), "probability": "NEGLIGIBLE", **(scores if vertex else {})}
        for setting in settings
    ]


def _citations(reply: ModelReply, *, vertex: bool) -> JsonObject:
    size = len(reply.text.encode())
    found: list[JsonObject] = [{"startIndex": 0, "endIndex": size, "uri": uri} for uri in reply.cited_urls]
    return {"citations": found} if vertex else {"citationSources": found}


def _logprobs(config: Mapping[str, Any], text: str) -> JsonObject:
    """Return invented log probabilities: each chosen token has probability 0.5.

    Only Vertex requests get here with `responseLogprobs`; validation rejects it on AI Studio.
    """
    if not config.get("responseLogprobs") or not text:
        return {}
    tokens = split_tokens(text)
    chosen = [_token_logprob(token, 0) for token in tokens]
    total = sum(item["logProbability"] for item in chosen)
    result: JsonObject = {"chosenCandidates": chosen, "logProbabilitySum": total}
    if config.get("logprobs"):
        ranks = range(min(config["logprobs"], _MAX_ALTERNATIVES))
        result["topCandidates"] = [
            {"candidates": [_token_logprob(token, rank) for rank in ranks]} for token in tokens
        ]
    return {"avgLogprobs": total / len(chosen), "logprobsResult": result}


def _token_logprob(token: str, rank: int) -> JsonObject:
    """Return a token with its log probability.

    Rank 0 is the token itself. Each further rank is a variant of it and half as likely.
    """
    other = token if not rank else token.swapcase() + "·" * (rank - 1)
    return {"token": other, "tokenId": token_id(other), "logProbability": math.log(0.5) * (rank + 1)}
