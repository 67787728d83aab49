"""The four stages of a captured request, formatted for display."""

from __future__ import annotations

import msgspec

from dragoman.observe.bodies import Shown, show_body
from dragoman.observe.captures import Captured


class Attempted(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt: the request to Google and its answer."""

    request: Shown
    answer: Shown


class StagesShown(msgspec.Struct, frozen=True, kw_only=True):
    asked: Shown
    upstream: tuple[Attempted, ...]
    given: Shown
    cut: bool
    headers: dict[str, str] = {}
    query: dict[str, str] = {}


def show_stages(captured: Captured) -> StagesShown:
    upstream = (
        Attempted(request=show_body(one.request), answer=show_body(one.answer)) for one in captured.upstream
    )
    return StagesShown(
        asked=show_body(captured.client_request),
        upstream=tuple(upstream),
        given=show_body(captured.client_answer),
        cut=captured.cut,
        headers=captured.headers,
        query=captured.query,
    )
