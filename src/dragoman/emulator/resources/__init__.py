"""The resources next to generation: models, caches, files and embeddings.

`ResourceApi` dispatches their requests and holds the stored caches, files and uploads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from dragoman.emulator.errors import ApiError
from dragoman.emulator.http_messages import HttpRequest, HttpResponse, json_response
from dragoman.emulator.resources.cached_contents import CachedContents, apply_cache, check_cache_name
from dragoman.emulator.resources.files import StoredFiles, UploadSessions, has_file_references, inline_files
from dragoman.emulator.resources.models_api import (
    compute_tokens,
    embed_batch,
    embed_one,
    predict,
    show_model,
    show_models,
)
from dragoman.emulator.resources.resource_store import parse_timestamp
from dragoman.emulator.routes import Collection, GeminiRoute, Method

#: The message type of the body by (collection, method); other methods have no body.
BODY_MESSAGES: Mapping[tuple[Collection, Method], str] = {
    ("models", "embedContent"): "EmbedContentRequest",
    ("models", "batchEmbedContents"): "BatchEmbedContentsRequest",
    ("models", "predict"): "PredictRequest",
    ("models", "computeTokens"): "ComputeTokensRequest",
    ("cachedContents", "create"): "CachedContent",
    ("cachedContents", "patch"): "CachedContent",
}

Handler = Callable[[GeminiRoute, HttpRequest, Mapping[str, Any]], dict[str, Any]]
_NO_TOKENS: Mapping[str, int] = {}


class ExpandedRequest(msgspec.Struct, frozen=True):
    """A request with its cache and files inserted, and the tokens of the cache by modality."""

    request: Mapping[str, Any]
    cached_tokens: Mapping[str, int] = _NO_TOKENS


class ResourceApi:
    """Answers all requests that do not generate. Thread-safe: one lock serializes all calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._caches = CachedContents()
        self._files = StoredFiles()
        self._uploads = UploadSessions(self._files)
        self._handlers: Mapping[tuple[Collection, Method], Handler] = {
            ("models", "list"): lambda route, http_request, _: show_models(route.backend, http_request.query),
            ("models", "get"): lambda route, _, __: show_model(route),
            ("models", "embedContent"): lambda route, _, body: embed_one(route, body),
            ("models", "batchEmbedContents"): lambda route, _, body: embed_batch(route, body),
            ("models", "predict"): lambda route, _, body: predict(route, body),
            ("models", "computeTokens"): lambda route, _, body: compute_tokens(route, body),
            ("cachedContents", "create"): self._create_cache,
            ("cachedContents", "list"): lambda route, http_request, _: self._caches.list(route, http_request),
            ("cachedContents", "get"): lambda route, http_request, _: self._caches.get(route, http_request),
            ("cachedContents", "patch"): self._caches.patch,
            ("cachedContents", "delete"): lambda route, http_request, _: self._caches.delete(
                route, http_request
            ),
            ("files", "list"): lambda _, http_request, __: self._files.list(http_request),
            ("files", "get"): lambda route, http_request, _: self._files.get(route, http_request),
            ("files", "delete"): lambda route, http_request, _: self._files.delete(route, http_request),
            ("files", "download"): lambda route, http_request, _: self._files.download(route, http_request),
        }

    def handle(self, route: GeminiRoute, http_request: HttpRequest, body: Mapping[str, Any]) -> HttpResponse:
        """Answer a request. `body` is parsed as the message type in `BODY_MESSAGES`."""
        with self._lock:
            if route.method == "upload":
                return self._uploads.handle(route, http_request)
            handler = self._handlers.get((route.collection, route.method))
            if handler is None:
                raise ApiError(code=501)
            return json_response(handler(route, http_request, body))

    def expand(self, route: GeminiRoute, request: Mapping[str, Any], now: str) -> ExpandedRequest:
        """Return the request as the model sees it, with its files and its cache inserted."""
        with self._lock:
            request = self._inline_files(route, request, now)
            name = request.get("cachedContent")
            if not name:
                return ExpandedRequest(request)
            check_cache_name(name, route.backend)
            cache = self._caches.find(name, route.backend, parse_timestamp(now))
            return ExpandedRequest(apply_cache(cache, request, route.model), cache.counts)

    def _create_cache(
        self, route: GeminiRoute, http_request: HttpRequest, body: Mapping[str, Any]
    ) -> dict[str, Any]:
        return self._caches.create(route, http_request, self._inline_files(route, body, http_request.now))

    def _inline_files(self, route: GeminiRoute, request: Mapping[str, Any], now: str) -> Mapping[str, Any]:
        """Insert the data of the files that AI Studio requests name.

        Vertex reads Cloud Storage instead, which the emulator does not access.
        """
        contents = request.get("contents", ())
        if route.backend.is_vertex or not has_file_references(contents):
            return request
        moment = parse_timestamp(now)
        return {**request, "contents": inline_files(contents, partial(self._files.find, now=moment), moment)}
