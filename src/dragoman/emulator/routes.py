"""Google's paths: which method of which model at which front door a URL names."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from dragoman.emulator.backend import Backend

Method = Literal["generateContent", "streamGenerateContent", "countTokens", "get", "list"]

_STUDIO = re.compile(r"/(?P<version>v1|v1beta|v1alpha)/models(?:/(?P<model>[^/:]+)(?::(?P<method>\w+))?)?/?")
_VERTEX = re.compile(
    r"/(?P<version>v1|v1beta1)/(?P<resource>(?:projects/[^/]+/locations/[^/]+/)?publishers/google/models"
    r"(?:/(?P<model>[^/:]+))?)(?::(?P<method>\w+))?/?"
)
_POSTED: tuple[Method, ...] = ("generateContent", "streamGenerateContent", "countTokens")


class Route(msgspec.Struct, frozen=True):
    """A resolved path; `resource` is how Vertex names the model."""

    backend: Backend
    method: Method
    model: str
    resource: str = ""


def find_route(verb: str, path: str) -> Route | None:
    """The route of a request line, or None where Google has nothing."""
    match = _STUDIO.fullmatch(path)
    surface: Literal["studio", "vertex"] = "studio"
    resource = ""
    if match is None:
        match = _VERTEX.fullmatch(path)
        if match is None:
            return None
        surface, resource = "vertex", match["resource"]
    method = _method(verb, match["model"], match["method"])
    if method is None:
        return None
    return Route(Backend(surface, match["version"]), method, match["model"] or "", resource)


def _method(verb: str, model: str | None, method: str | None) -> Method | None:
    if verb == "GET" and method is None:
        return "list" if model is None else "get"
    if verb == "POST" and model is not None:
        return next((posted for posted in _POSTED if posted == method), None)
    return None
