"""The approximate user location of web search tools, which Anthropic and OpenAI encode with the same fields."""

from __future__ import annotations

import msgspec

from dragoman.ir import Location


class WireLocation(msgspec.Struct):
    city: str | None = None
    region: str | None = None
    country: str | None = None
    timezone: str | None = None


def decode_location(wire: WireLocation | None) -> Location | None:
    """Return the location, or None if no field of it is set."""
    if wire is None:
        return None
    given = {name: getattr(wire, name) or "" for name in WireLocation.__struct_fields__}
    return Location(**given) if any(given.values()) else None
