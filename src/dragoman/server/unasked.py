"""Tools that the client did not ask for: where Google would refuse its request because of them, they wait."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dragoman.dialects import gemini
from dragoman.dialects.base import Target
from dragoman.ir import Request
from dragoman.notes import Note
from dragoman.server.own import Asked, Offer, Source

_MIME = "generationConfig.responseMimeType"
_SERVER_SIDE = "toolConfig.includeServerSideToolInvocations"
_PLAIN = ("", "text/plain")

#: Answered by the client like functions, so Google takes it beside them.
_LIKE_FUNCTIONS = frozenset({"computerUse"})


class Unasked:
    """A source whose tools must not cost an answer; a client with functions of its own is refused or not, as before.

    What a suspended answer waits for is brought all the same.
    """

    def __init__(self, source: Source, target_of: Callable[[str], Target]) -> None:
        self._source = source
        self._target_of = target_of

    async def offer(self, asked: Asked) -> Offer | None:
        offer = await self._source.offer(asked)
        if offer is None or not offer.tools:
            return offer
        return fit_offer(offer, asked.request, self._target_of(asked.request.model))

    async def close(self) -> None:
        await self._source.close()


def fit_offer(offer: Offer, request: Request, target: Target) -> Offer:
    """The offer as the model takes it beside what the client asks for."""
    native = dict(request.native)
    built_in = offer.keep_client_tools and not request.tools and _has_built_in(request)
    why = _refused(request, native, target, built_in=built_in)
    if why:
        note = Note("withheld", "tools", f"the gateway's own: {why}")
        return msgspec.structs.replace(offer, tools=(), choice=None, notes=(*offer.notes, note))
    if _wants_json(request, native) and offer.choice is not None and offer.choice.mode == "any":
        offer = msgspec.structs.replace(offer, choice=None)  # an answer in JSON or a forced call
    if built_in and _SERVER_SIDE not in native:
        offer = msgspec.structs.replace(offer, native=((_SERVER_SIDE, b"true"),))
    return offer


def _refused(request: Request, native: dict[str, bytes], target: Target, *, built_in: bool) -> str:
    """Why Google would not take our functions, or nothing."""
    if "cachedContent" in native:
        return "a cache brings its tools, and Google takes no others beside it"
    profile = gemini.profile_of(target.model)
    if _wants_json(request, native) and not request.tools and not profile.json_with_functions:
        return "this model takes no functions beside JSON output"
    if built_in and not gemini.can_mix(target):
        return "this model takes no functions beside Google's own tools"
    return ""


def _wants_json(request: Request, native: dict[str, bytes]) -> bool:
    mime = msgspec.json.decode(native.get(_MIME, b'""'))
    return request.output is not None or (mime or "") not in _PLAIN


def _has_built_in(request: Request) -> bool:
    """Google's own tools in Gemini's own words; what other dialects call them is translated with the functions."""
    tools = (msgspec.json.decode(raw) for place, raw in request.native if place == "tools")
    return any(set(tool) - _LIKE_FUNCTIONS for tool in tools)
