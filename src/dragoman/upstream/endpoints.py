"""URLs of the Gemini API on AI Studio and on Vertex AI.

API keys go into headers, never into URLs (known problem Q11).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import msgspec

Method = Literal["generateContent", "streamGenerateContent", "countTokens"]

AI_STUDIO = "https://generativelanguage.googleapis.com"
_MULTI_REGION = ("us", "eu")
_MAX_CACHED_URLS = 256


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The backend that requests go to, with what its URLs are built from."""

    backend: Literal["gemini", "vertex", "emulator"]
    base_url: str = ""
    version: str = ""
    project: str = ""
    location: str = "global"

    @property
    def resolves_aliases(self) -> bool:
        """Whether the backend resolves aliases such as `gemini-flash-latest`."""
        return self.backend != "vertex" and self.version in ("", "v1beta")

    def url(self, model: str, method: Method) -> str:
        return _url(self, model, method)


@lru_cache(maxsize=_MAX_CACHED_URLS)
def _url(endpoint: Endpoint, model: str, method: Method) -> str:
    suffix = "?alt=sse" if method == "streamGenerateContent" else ""
    return f"{_base_url(endpoint)}/{_path_prefix(endpoint)}models/{model}:{method}{suffix}"


def _base_url(endpoint: Endpoint) -> str:
    if endpoint.base_url:
        return endpoint.base_url
    return vertex_base_url(endpoint.location) if endpoint.backend == "vertex" else AI_STUDIO


def _path_prefix(endpoint: Endpoint) -> str:
    if endpoint.backend != "vertex":
        return f"{endpoint.version or 'v1beta'}/"
    version = endpoint.version or "v1beta1"
    if endpoint.project:
        return f"{version}/projects/{endpoint.project}/locations/{endpoint.location}/publishers/google/"
    return f"{version}/publishers/google/"  # requests with a Vertex express mode key name no project


def vertex_base_url(location: str) -> str:
    """Return the base URL of a Vertex AI location; there is no `global-aiplatform` endpoint (known problem M2)."""
    if location == "global":
        return "https://aiplatform.googleapis.com"
    if location in _MULTI_REGION:
        return f"https://aiplatform.{location}.rep.googleapis.com"
    return f"https://{location}-aiplatform.googleapis.com"
