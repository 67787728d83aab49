"""Every path the gateway serves, read off its tables: a route that is added is in all tests over them at once."""

from __future__ import annotations

import re

import msgspec
from hypothesis import Phase, find, settings
from hypothesis import strategies as st

from dragoman.dialects import AMZ_TARGET, ANY_METHOD
from dragoman.gateway.request import RouteMatch
from dragoman.gateway.routes import _EXACT_ROUTES, _PATTERN_ROUTES, find_route

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
#: A route of its own: one path, told apart by a header.
_AMAZON = {AMZ_TARGET: "AmazonCodeWhispererStreamingService.GenerateAssistantResponse"}


class Sample(msgspec.Struct, frozen=True):
    """A request that a route takes; `headers` are those it is found by."""

    method: str
    path: str
    route: RouteMatch
    headers: dict[str, str] = {}

    @property
    def takes_body(self) -> bool:
        return self.method in ("POST", "PUT")

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def every_route() -> list[Sample]:
    found = [_sample(method, path) for method, path in _EXACT_ROUTES]
    for verb, pattern, _ in _PATTERN_ROUTES:
        path = _example(pattern)
        found += [_sample(method, path) for method in (METHODS if verb == ANY_METHOD else (verb,))]
    return [*found, Sample("POST", "/", find_route("POST", "/", _AMAZON, {}), _AMAZON)]


def _sample(method: str, path: str) -> Sample:
    return Sample(method, path, find_route(method, path, {}, {}))


def _example(pattern: re.Pattern[str]) -> str:
    """The simplest path a pattern matches."""
    simplest = settings(max_examples=1, phases=[Phase.generate], database=None)
    return find(st.from_regex(pattern, fullmatch=True), lambda _: True, settings=simplest)
