"""The cachedContents API: stored contents that later requests start with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from dragoman.emulator.errors import ApiError, catch_all_error, field_rules_error
from dragoman.emulator.http_messages import HttpRequest
from dragoman.emulator.models import EmulatedModel, model_not_found_error, require_model
from dragoman.emulator.parsed_request import blob_of
from dragoman.emulator.resources.models_api import EMBEDDING_MODELS
from dragoman.emulator.resources.resource_store import (
    DIGITS,
    LETTERS,
    ResourceStore,
    format_timestamp,
    make_resource_name,
    paginate,
    parse_duration,
    parse_timestamp,
)
from dragoman.emulator.routes import Backend, GeminiRoute
from dragoman.emulator.tokens import CHARS_PER_TOKEN, count_prompt
from dragoman.emulator.validate.fields import field_problems

_ROOT = "CreateCachedContentRequest"
_METHOD = "createCachedContent"
_DEFAULT_TTL = timedelta(hours=1)
#: The fields of a cache that a request which uses one must not set.
_CACHED_FIELDS = ("systemInstruction", "tools", "toolConfig")
_NAMES = {
    "studio": re.compile(r"cachedContents/[a-z0-9-]+"),
    "vertex": re.compile(r"projects/[^/]+/locations/[^/]+/cachedContents/\w+"),
}
_MODELS = {
    "studio": re.compile(r"models/([^/]+)"),
    "vertex": re.compile(r"(?:projects/[^/]+/locations/[^/]+/)?publishers/google/models/([^/]+)"),
}
_UPDATABLE = frozenset({"ttl", "expireTime", "expire_time"})
_CONFLICT_MESSAGE = (
    "CachedContent can not be used with GenerateContent request setting"
    " system_instruction, tools or tool_config."
)

_MAX_BYTES = 256 * 1024 * 1024
_DEFAULT_PAGE = 50
_MAX_PER_PAGE = 1000


class CachedContent(msgspec.Struct, frozen=True, kw_only=True):
    """A cache: `request` has the stored fields, `counts` its tokens by modality."""

    name: str
    model: str
    model_id: str
    display_name: str
    created: datetime
    updated: datetime
    expires: datetime
    request: Mapping[str, Any]
    counts: Mapping[str, int]

    @property
    def size(self) -> int:
        """The approximate size in bytes: text by its tokens, media by their data."""
        parts = (part for content in self.request.get("contents", ()) for part in content.get("parts", ()))
        blobs = (blob_of(part) or {} for part in parts)
        return CHARS_PER_TOKEN * self.counts.get("TEXT", 0) + sum(
            len(blob.get("data", b"")) for blob in blobs
        )


class CachedContents:
    """All caches by full name, so AI Studio and each Vertex project have separate caches."""

    def __init__(self) -> None:
        self._store: ResourceStore[CachedContent] = ResourceStore(most_bytes=_MAX_BYTES)
        self._serial = 0

    def create(
        self, route: GeminiRoute, http_request: HttpRequest, body: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Create a cache. `body` contains the data of its files, which may be deleted later."""
        self._serial += 1
        alphabet, length = (DIGITS, 19) if route.backend.is_vertex else (LETTERS, 40)
        name = make_resource_name("cache", self._serial, http_request.now, alphabet=alphabet, length=length)
        now = parse_timestamp(http_request.now)
        cache = make_cache(body, route.backend, name=f"{route.resource}/{name}", now=now)
        self._store.put(cache.name, cache, expires=cache.expires, size=cache.size)
        return show_cache(cache)

    def list(self, route: GeminiRoute, http_request: HttpRequest) -> dict[str, Any]:
        shown = [
            show_cache(cache)
            for cache in self._store.newest_first(parse_timestamp(http_request.now))
            if cache.name.startswith(f"{route.resource}/")
        ]
        return paginate(
            "cachedContents", shown, http_request.query, default=_DEFAULT_PAGE, most=_MAX_PER_PAGE
        )

    def get(self, route: GeminiRoute, http_request: HttpRequest) -> dict[str, Any]:
        return show_cache(self.find(route.resource, route.backend, parse_timestamp(http_request.now)))

    def patch(self, route: GeminiRoute, http_request: HttpRequest, body: Mapping[str, Any]) -> dict[str, Any]:
        now = parse_timestamp(http_request.now)
        cache = self.find(route.resource, route.backend, now)
        mask = http_request.query.get("updateMask") or http_request.query.get("update_mask") or ""
        cache = update_expiration(cache, body, mask, now)
        self._store.put(cache.name, cache, expires=cache.expires, size=cache.size)
        return show_cache(cache)

    def delete(self, route: GeminiRoute, http_request: HttpRequest) -> dict[str, Any]:
        self.find(route.resource, route.backend, parse_timestamp(http_request.now))
        self._store.delete(route.resource)
        return {}

    def find(self, name: str, backend: Backend, now: datetime) -> CachedContent:
        cache = self._store.get(name, now)
        if cache is None:
            raise cache_not_found_error(name, backend)
        return cache


def make_cache(body: Mapping[str, Any], backend: Backend, *, name: str, now: datetime) -> CachedContent:
    """Return a new cache from a parsed body; raise a `ApiError` if it is invalid."""
    resource = body.get("model", "")
    model_id, model = _read_model(resource, backend)
    request = {field: body[field] for field in ("contents", *_CACHED_FIELDS) if field in body}
    # Unlike a request, a cache may contain only a system instruction or tools.
    problems = [
        f"cached_content.{line}"
        for line in field_problems(request, model, backend)
        if line != "contents: contents is not specified"
    ]
    if problems:
        raise field_rules_error(problems, _ROOT)
    counts = count_prompt(request, model.image_tokens)
    total, fewest = sum(counts.values()), model.min_cached_tokens
    if total < fewest:
        raise ApiError(
            f"Cached content is too small. total_token_count={total}, min_total_token_count={fewest}"
        )
    return CachedContent(
        name=name,
        model=resource,
        model_id=model_id,
        display_name=body.get("displayName", ""),
        created=now,
        updated=now,
        expires=_expiry(body, now) or now + _DEFAULT_TTL,
        request=request,
        counts=counts,
    )


def update_expiration(
    cache: CachedContent, body: Mapping[str, Any], mask: str, now: datetime
) -> CachedContent:
    """Return the updated cache. Only its expiration can be changed."""
    changed = set(filter(None, mask.split(","))) or set(body) & (_UPDATABLE | {"contents", *_CACHED_FIELDS})
    if changed - _UPDATABLE:
        raise ApiError("Only the expiration of a CachedContent can be updated.")
    expires = _expiry(body, now)
    if expires is None:
        raise ApiError("Either ttl or expire_time must be set.")
    return msgspec.structs.replace(cache, expires=expires, updated=now)


def show_cache(cache: CachedContent) -> dict[str, Any]:
    """Return the resource. Google never returns the contents of a cache."""
    shown: dict[str, Any] = {
        "name": cache.name,
        "model": cache.model,
        "createTime": format_timestamp(cache.created),
        "updateTime": format_timestamp(cache.updated),
        "expireTime": format_timestamp(cache.expires),
        "usageMetadata": {"totalTokenCount": sum(cache.counts.values())},
    }
    if cache.display_name:
        shown["displayName"] = cache.display_name
    return shown


def check_cache_name(name: str, backend: Backend) -> None:
    """Raise unless the name in a request has the right format."""
    if not _NAMES[backend.surface].fullmatch(name):
        raise field_rules_error(["cached_content: unexpected CachedContent name format"])


def cache_not_found_error(name: str, backend: Backend) -> ApiError:
    if backend.is_vertex:
        return ApiError(f"Not found: cached content metadata for {name.rpartition('/')[2]}.", code=404)
    return ApiError("CachedContent not found (or permission denied)", code=403)


def apply_cache(cache: CachedContent, request: Mapping[str, Any], model: str) -> Mapping[str, Any]:
    """Return the request with the contents of the cache before its own."""
    if any(field in request for field in _CACHED_FIELDS):
        raise ApiError(_CONFLICT_MESSAGE)
    if cache.model_id != model:
        raise ApiError(
            f"Model used by GenerateContent request (models/{model}) and CachedContent "
            f"(models/{cache.model_id}) has to be the same."
        )
    if not request.get("contents"):
        return request  # validation rejects this: contents are required even with a cache
    contents = [*cache.request.get("contents", ()), *request["contents"]]
    return {**cache.request, **request, "contents": contents}


def _read_model(resource: str, backend: Backend) -> tuple[str, EmulatedModel]:
    """Return the id and the properties of a model that supports caching."""
    if resource.startswith("models/publishers/") and not backend.is_vertex:
        # Recorded: AI Studio takes a Vertex model name for the name of a model that does not exist.
        raise model_not_found_error(resource.removeprefix("models/"), backend, _METHOD, resource)
    named = _MODELS[backend.surface].fullmatch(resource)
    if named is None:
        raise field_rules_error(["cached_content.model: unexpected model name format"], _ROOT)
    name = named[1]
    model = require_model(name, backend, _METHOD, resource)
    if name in EMBEDDING_MODELS or not model.min_cached_tokens:
        raise model_not_found_error(name, backend, _METHOD, resource)
    return name, model


def _expiry(body: Mapping[str, Any], now: datetime) -> datetime | None:
    try:
        if "expireTime" in body:
            expires = parse_timestamp(body["expireTime"])
        elif "ttl" in body:
            expires = now + parse_duration(body["ttl"])
        else:
            return None
    except (ValueError, OverflowError):  # such as the 31st of February, or the year 300,000
        raise catch_all_error("no such point in time") from None
    if expires <= now:
        raise ApiError("The expiration of a CachedContent must be in the future.")
    return expires
