"""Compatibility of gateway tools with a client's request: withhold those that would make Google reject it."""

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

#: Server tools that the client answers like functions, so Google accepts them beside functions.
_LIKE_FUNCTIONS = frozenset({"computerUse"})


class Unasked:
    """Wrap a provider, and withhold its tools from requests that Google would reject because of them.

    JSON output and server tools are checked only in requests without functions: where the client declares
    some itself, Google's decision does not depend on additional ones. The results of a suspended answer are
    delivered even if tools are withheld.
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
    """Return the offer reduced to what the model accepts beside the features that the client uses."""
    native = dict(request.native)
    built_in = offer.keep_client_tools and not request.tools and _has_built_in(request)
    why = _refused(request, native, target, built_in=built_in)
    if why:
        note = Note("withheld", "tools", f"the gateway's own: {why}")
        return msgspec.structs.replace(offer, tools=(), choice=None, notes=(*offer.notes, note))
    if _wants_json(request, native) and offer.choice is not None and offer.choice.mode == "any":
        offer = msgspec.structs.replace(
            offer, choice=None
        )  # JSON output and a forced call exclude each other
    if built_in and _SERVER_SIDE not in native:
        offer = msgspec.structs.replace(offer, native=((_SERVER_SIDE, b"true"),))
    return offer


def _refused(request: Request, native: dict[str, bytes], target: Target, *, built_in: bool) -> str:
    """Return the reason why Google would reject additional functions, or ""."""
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
    """Return whether a Gemini request declares server tools; the encoder adapts those of other dialects."""
    tools = (msgspec.json.decode(raw) for place, raw in request.native if place == "tools")
    return any(set(tool) - _LIKE_FUNCTIONS for tool in tools)
