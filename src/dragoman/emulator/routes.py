"""Google's URL paths: the API (AI Studio or Vertex AI), its version, the collection and the method that a path names."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

Surface = Literal["studio", "vertex"]

_TYPE_ROOTS = {"studio": "google.ai.generativelanguage", "vertex": "google.cloud.aiplatform"}


class Backend(msgspec.Struct, frozen=True):
    """AI Studio or Vertex AI, with the API version from the path."""

    surface: Surface
    version: str

    @property
    def is_vertex(self) -> bool:
        return self.surface == "vertex"

    @property
    def table(self) -> str:
        """The key of the contract in fields.json; all versions of AI Studio share one."""
        return f"vertex_{self.version}" if self.is_vertex else "mldev"

    def type_url(self, name: str) -> str:
        # Type names contain the version in the path, except that v1 of AI Studio uses the types of v1beta.
        version = self.version if self.is_vertex else "v1beta"
        return f"type.googleapis.com/{_TYPE_ROOTS[self.surface]}.{version}.{name}"


Method = Literal[
    "generateContent",
    "streamGenerateContent",
    "countTokens",
    "computeTokens",
    "batchGenerateContent",
    "embedContent",
    "batchEmbedContents",
    "predict",
    "list",
    "get",
    "create",
    "patch",
    "delete",
    "download",
    "upload",
]
Collection = Literal["models", "cachedContents", "files"]

_STUDIO = r"/(?P<version>v1|v1beta|v1alpha)/"
_VERTEX = r"/(?P<version>v1|v1beta1)/"
_PROJECT = r"projects/[^/]+/locations/[^/]+/"
_ITEM = r"(?:/(?P<item>[^/:]+))?"
_METHOD = r"(?::(?P<method>\w+))?/?"


class PathPattern(msgspec.Struct, frozen=True):
    """The path pattern of a collection."""

    surface: Surface
    collection: Collection
    path: re.Pattern[str]


_PATTERNS = (
    PathPattern("studio", "models", re.compile(rf"{_STUDIO}(?P<resource>models{_ITEM}){_METHOD}")),
    PathPattern(
        "vertex",
        "models",
        re.compile(rf"{_VERTEX}(?P<resource>(?:{_PROJECT})?publishers/google/models{_ITEM}){_METHOD}"),
    ),
    PathPattern(
        "studio", "cachedContents", re.compile(rf"{_STUDIO}(?P<resource>cachedContents{_ITEM}){_METHOD}")
    ),
    PathPattern(
        "vertex",
        "cachedContents",
        re.compile(rf"{_VERTEX}(?P<resource>{_PROJECT}cachedContents{_ITEM}){_METHOD}"),
    ),
    PathPattern(
        "studio", "files", re.compile(rf"/(?P<upload>upload){_STUDIO}(?P<resource>files{_ITEM}){_METHOD}")
    ),
    PathPattern("studio", "files", re.compile(rf"{_STUDIO}(?P<resource>files{_ITEM}){_METHOD}")),
)

#: The custom methods of a model (`models/NAME:method`), called by POST.
_CUSTOM_METHODS: dict[Surface, tuple[Method, ...]] = {
    "studio": (
        "generateContent",
        "streamGenerateContent",
        "countTokens",
        "embedContent",
        "batchEmbedContents",
        "batchGenerateContent",
    ),
    "vertex": (
        "generateContent",
        "streamGenerateContent",
        "countTokens",
        "computeTokens",
        "embedContent",
        "predict",
    ),
}
#: The standard methods by (HTTP verb, whether the path names an item): the ones that all collections have,
#: then those of the collections that can be changed.
_READ_METHODS: dict[tuple[str, bool], Method] = {("GET", False): "list", ("GET", True): "get"}
_WRITE_METHODS: dict[Collection, dict[tuple[str, bool], Method]] = {
    "models": {},
    "cachedContents": {("POST", False): "create", ("PATCH", True): "patch", ("DELETE", True): "delete"},
    "files": {("DELETE", True): "delete"},
}


class GeminiRoute(msgspec.Struct, frozen=True):
    """A resolved path. `resource` is the resource name without the version; `item` is its last segment."""

    backend: Backend
    method: Method
    model: str
    resource: str = ""
    collection: Collection = "models"
    item: str = ""


def find_route(verb: str, path: str) -> GeminiRoute | None:
    """Return the route of a request line, or None if Google has no such method."""
    for pattern in _PATTERNS:
        match = pattern.path.fullmatch(path)
        if match is None:
            continue
        method = _method(verb, pattern, match)
        if method is None:
            return None
        item = match["item"] or ""
        model = item if pattern.collection == "models" else ""
        backend = Backend(pattern.surface, match["version"])
        return GeminiRoute(backend, method, model, match["resource"], pattern.collection, item)
    return None


def _method(verb: str, pattern: PathPattern, match: re.Match[str]) -> Method | None:
    named, item = match["method"], match["item"]
    if "upload" in match.groupdict():
        return "upload" if verb in ("POST", "PUT") and not (item or named) else None
    if named is None:
        return (_READ_METHODS | _WRITE_METHODS[pattern.collection]).get((verb, item is not None))
    if pattern.collection == "models" and verb == "POST" and item is not None:
        return next((method for method in _CUSTOM_METHODS[pattern.surface] if method == named), None)
    if (pattern.collection, verb, named) == ("files", "GET", "download") and item is not None:
        return "download"
    return None
