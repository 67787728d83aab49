"""The metadata of a candidate: finish reason, safety ratings, citations, grounding, log probabilities.

Grounding metadata are the pages that were found or read, and the text segments that each supports.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dragoman.emulator.model import ModelReply
from dragoman.emulator.model.builtin_tools import is_reachable
from dragoman.emulator.response import ResponseContext
from dragoman.emulator.response.limits import LimitedReply, issue_continuation_token
from dragoman.emulator.tokens import split_tokens, token_id

Json = dict[str, Any]

#: Google returns search results as redirects; their title is the name of the site.
_REDIRECT = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/"
_SITES = ("example.com", "example.org", "example.net")
_MAX_RESULTS = 2
_SENTENCE = re.compile(r"\S[^.!?\n]*[.!?]?")
_STATUS_PREFIX = "URL_RETRIEVAL_STATUS_"


def write_grounding(request: Mapping[str, Any], reply: ModelReply, context: ResponseContext) -> Json:
    """Return the grounding metadata of the last chunk.

    It is empty if nothing was looked up, or if the reply has function calls.
    """
    if reply.calls or not (reply.search_query or reply.urls):
        return {}
    pages = [_web_chunk(url, f"The page {url}", context) for url in reply.urls if is_reachable(url)]
    found = [
        _web_chunk(_redirect_url(site, reply.search_query), site, context)
        for site in _found_sites(request, reply)
    ]
    sources = [*pages, *found]
    grounding: Json = {
        "groundingChunks": sources,
        "groundingSupports": list(_supports(reply.text, sources, context)),
    }
    if reply.search_query:
        grounding |= {
            "searchEntryPoint": {"renderedContent": f"<div>{reply.search_query}</div>"},
            "webSearchQueries": [reply.search_query],
        }
    if context.backend.is_vertex:
        grounding["retrievalMetadata"] = {}
    return {"groundingMetadata": {name: value for name, value in grounding.items() if value != []}}


def write_url_metadata(reply: ModelReply) -> Json:
    """Return the metadata of the pages that were read. Recorded: it comes with the first chunk."""
    if not reply.urls:
        return {}
    read = [{"retrievedUrl": url, "urlRetrievalStatus": retrieval_status(url)} for url in reply.urls]
    return {"urlContextMetadata": {"urlMetadata": read}}


def retrieval_status(url: str) -> str:
    return f"{_STATUS_PREFIX}{'SUCCESS' if is_reachable(url) else 'ERROR'}"


def _found_sites(request: Mapping[str, Any], reply: ModelReply) -> list[str]:
    if not reply.search_query:
        return []
    searches = (tool["googleSearch"] for tool in request.get("tools", ()) if "googleSearch" in tool)
    excluded = {site for search in searches for site in search.get("excludeDomains", ())}
    return [site for site in _SITES if site not in excluded][:_MAX_RESULTS]


def _redirect_url(site: str, query: str) -> str:
    digest = hashlib.blake2b(f"{site} {query}".encode(), digest_size=24, person=b"redirect").digest()
    return _REDIRECT + base64.urlsafe_b64encode(digest).decode()


def _web_chunk(uri: str, title: str, context: ResponseContext) -> Json:
    domain = {"domain": title} if context.backend.is_vertex and uri.startswith(_REDIRECT) else {}
    return {"web": {"uri": uri, "title": title, **domain}}


def _supports(text: str, sources: list[Json], context: ResponseContext) -> Iterable[Json]:
    """Yield one support per sentence, with the sources in turn; the last sentence cites all sources.

    Fields that are zero are left out, as Google does.
    """
    sentences = list(_SENTENCE.finditer(text)) if sources else []
    everything = list(range(len(sources)))
    for number, sentence in enumerate(sentences):
        start = len(text[: sentence.start()].encode())
        sentence_text = sentence.group()
        segment = {
            "startIndex": start,
            "endIndex": start + len(sentence_text.encode()),
            "text": sentence_text,
        }
        last = number and number == len(sentences) - 1
        indices = everything if last else [number % len(sources)]
        scores = {} if context.model.is_gemini3_or_later else {"confidenceScores": [0.9] * len(indices)}
        shown = {name: value for name, value in segment.items() if value}
        yield {"segment": shown, "groundingChunkIndices": indices, **scores}


JsonObject = dict[str, Any]

_CALL_MESSAGE = "Model generated function call(s)."
_MAX_ALTERNATIVES = 20


def write_last_fields(
    request: Mapping[str, Any], limited: LimitedReply, context: ResponseContext
) -> JsonObject:
    reply = limited.reply
    ending: JsonObject = {"finishReason": limited.finish_reason}
    if reply.calls and context.model.is_gemini3_or_later and limited.finish_reason == "STOP":
        ending["finishMessage"] = _CALL_MESSAGE
    if limited.finish_reason == "CONTINUATION":
        ending["continuationToken"] = issue_continuation_token(request, context, limited.position)
    if request.get("safetySettings"):
        ending["safetyRatings"] = _safety_ratings(request["safetySettings"], vertex=context.backend.is_vertex)
    if reply.cited_urls and reply.text:
        ending["citationMetadata"] = _citations(reply, vertex=context.backend.is_vertex)
    ending |= write_grounding(request, reply, context)
    return ending | _logprobs(request.get("generationConfig", {}), reply.text)


def _safety_ratings(settings: Sequence[Mapping[str, Any]], *, vertex: bool) -> list[JsonObject]:
    scores = {"probabilityScore": 0.01, "severity": "HARM_SEVERITY_NEGLIGIBLE", "severityScore": 0.01}
    return [
        {"category": context.get("category"), "probability": "NEGLIGIBLE", **(scores if vertex else {})}
        for context in settings
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
