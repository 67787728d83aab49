"""Dispatch requests for resources, and hold the stored caches, files and uploads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from dragoman.emulator.question import Question
from dragoman.emulator.refusal import Refusal
from dragoman.emulator.resources.caches import Caches, check_name, use_cache
from dragoman.emulator.resources.catalog import show_model, show_models
from dragoman.emulator.resources.compute import compute_tokens
from dragoman.emulator.resources.embeddings import embed_batch, embed_one, predict
from dragoman.emulator.resources.files import Files, attach_files, names_files
from dragoman.emulator.resources.moments import read_moment
from dragoman.emulator.resources.uploads import Uploads
from dragoman.emulator.routes import Collection, Method, Route
from dragoman.emulator.wire import Answer, whole

#: The message type of the body by (collection, method); other methods have no body.
BODIES: Mapping[tuple[Collection, Method], str] = {
    ("models", "embedContent"): "EmbedContentRequest",
    ("models", "batchEmbedContents"): "BatchEmbedContentsRequest",
    ("models", "predict"): "PredictRequest",
    ("models", "computeTokens"): "ComputeTokensRequest",
    ("cachedContents", "create"): "CachedContent",
    ("cachedContents", "patch"): "CachedContent",
}

Handler = Callable[[Route, Question, Mapping[str, Any]], dict[str, Any]]
_NOTHING: Mapping[str, int] = {}


class Expanded(msgspec.Struct, frozen=True):
    """A request with its cache and files inserted, and the tokens of the cache by modality."""

    request: Mapping[str, Any]
    cached: Mapping[str, int] = _NOTHING


class Desk:
    """Answers all requests that do not generate. Thread-safe: one lock serializes all calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._caches = Caches()
        self._files = Files()
        self._uploads = Uploads(self._files)
        self._handlers: Mapping[tuple[Collection, Method], Handler] = {
            ("models", "list"): lambda route, question, _: show_models(route.backend, question.query),
            ("models", "get"): lambda route, _, __: show_model(route),
            ("models", "embedContent"): lambda route, _, body: embed_one(route, body),
            ("models", "batchEmbedContents"): lambda route, _, body: embed_batch(route, body),
            ("models", "predict"): lambda route, _, body: predict(route, body),
            ("models", "computeTokens"): lambda route, _, body: compute_tokens(route, body),
            ("cachedContents", "create"): self._create_cache,
            ("cachedContents", "list"): lambda route, question, _: self._caches.list(route, question),
            ("cachedContents", "get"): lambda route, question, _: self._caches.get(route, question),
            ("cachedContents", "patch"): self._caches.patch,
            ("cachedContents", "delete"): lambda route, question, _: self._caches.delete(route, question),
            ("files", "list"): lambda _, question, __: self._files.list(question),
            ("files", "get"): lambda route, question, _: self._files.get(route, question),
            ("files", "delete"): lambda route, question, _: self._files.delete(route, question),
            ("files", "download"): lambda route, question, _: self._files.download(route, question),
        }

    def answer(self, route: Route, question: Question, body: Mapping[str, Any]) -> Answer:
        """Answer a request. `body` is parsed as the message type in `BODIES`."""
        with self._lock:
            if route.method == "upload":
                return self._uploads.answer(route, question)
            handler = self._handlers.get((route.collection, route.method))
            if handler is None:
                raise Refusal(code=501)
            return whole(handler(route, question, body))

    def expand(self, route: Route, request: Mapping[str, Any], now: str) -> Expanded:
        """Return the request as the model sees it, with its files and its cache inserted."""
        with self._lock:
            request = self._with_files(route, request, now)
            name = request.get("cachedContent")
            if not name:
                return Expanded(request)
            check_name(name, route.backend)
            cache = self._caches.find(name, route.backend, read_moment(now))
            return Expanded(use_cache(cache, request, route.model), cache.counts)

    def _create_cache(self, route: Route, question: Question, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._caches.create(route, question, self._with_files(route, body, question.now))

    def _with_files(self, route: Route, request: Mapping[str, Any], now: str) -> Mapping[str, Any]:
        """Insert the data of the files that AI Studio requests name.

        Vertex reads Cloud Storage instead, which the emulator does not access.
        """
        contents = request.get("contents", ())
        if route.backend.is_vertex or not names_files(contents):
            return request
        moment = read_moment(now)
        return {**request, "contents": attach_files(contents, partial(self._files.find, now=moment), moment)}
