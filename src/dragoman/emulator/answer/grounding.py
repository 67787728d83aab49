"""Grounding metadata: the pages that were found or read, and the text segments that each supports."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.emulator.answer.setting import ResponseContext
from dragoman.emulator.model.builtin import is_reachable
from dragoman.emulator.model.respond import ModelReply

Json = dict[str, Any]

#: Google returns search results as redirects; their title is the name of the site.
_REDIRECT = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/"
_SITES = ("example.com", "example.org", "example.net")
_MAX_RESULTS = 2
_SENTENCE = re.compile(r"\S[^.!?\n]*[.!?]?")
_STATUS_PREFIX = "URL_RETRIEVAL_STATUS_"


def write_grounding(request: Mapping[str, Any], reply: ModelReply, setting: ResponseContext) -> Json:
    """Return the grounding metadata of the last chunk.

    It is empty if nothing was looked up, or if the reply has function calls.
    """
    if reply.calls or not (reply.search_query or reply.urls):
        return {}
    pages = [_web_chunk(url, f"The page {url}", setting) for url in reply.urls if is_reachable(url)]
    found = [
        _web_chunk(_redirect_url(site, reply.search_query), site, setting)
        for site in _found_sites(request, reply)
    ]
    sources = [*pages, *found]
    grounding: Json = {
        "groundingChunks": sources,
        "groundingSupports": list(_supports(reply.text, sources, setting)),
    }
    if reply.search_query:
        grounding |= {
            "searchEntryPoint": {"renderedContent": f"<div>{reply.search_query}</div>"},
            "webSearchQueries": [reply.search_query],
        }
    if setting.backend.is_vertex:
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


def _web_chunk(uri: str, title: str, setting: ResponseContext) -> Json:
    domain = {"domain": title} if setting.backend.is_vertex and uri.startswith(_REDIRECT) else {}
    return {"web": {"uri": uri, "title": title, **domain}}


def _supports(text: str, sources: list[Json], setting: ResponseContext) -> Iterable[Json]:
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
        scores = {} if setting.model.is_gemini3_or_later else {"confidenceScores": [0.9] * len(indices)}
        shown = {name: value for name, value in segment.items() if value}
        yield {"segment": shown, "groundingChunkIndices": indices, **scores}
