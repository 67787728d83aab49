"""The four stages of a captured request, formatted for display."""

from __future__ import annotations

import msgspec

from dragoman.observe.bodies import DisplayBody, display_body
from dragoman.observe.captures import CapturedRequest


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt: the request to Google and its answer."""

    request: DisplayBody
    answer: DisplayBody


class StagesView(msgspec.Struct, frozen=True, kw_only=True):
    asked: DisplayBody
    upstream: tuple[AttemptView, ...]
    given: DisplayBody
    cut: bool
    headers: dict[str, str] = {}
    query: dict[str, str] = {}


def view_stages(captured: CapturedRequest) -> StagesView:
    upstream = (
        AttemptView(request=display_body(one.request), answer=display_body(one.answer))
        for one in captured.upstream
    )
    return StagesView(
        asked=display_body(captured.client_request),
        upstream=tuple(upstream),
        given=display_body(captured.client_answer),
        cut=captured.cut,
        headers=captured.headers,
        query=captured.query,
    )
