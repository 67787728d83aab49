"""Google's "invalid argument" says nothing; our own strict emulator is asked what is wrong (pain C11)."""

from __future__ import annotations

from dragoman.dialects.base import Target
from dragoman.errors import UpstreamError

_MOST_CHARACTERS = 500


def explain(error: UpstreamError, body: bytes, target: Target) -> UpstreamError:
    """The same error; if it is opaque and we know better, with what we know behind it."""
    if error.code == "opaque":
        found = _diagnose(body, target)
        says = f"says: {found}" if found else "finds nothing wrong with it"
        error.message = f"{error.message} Dragoman's own check {says}"
        error.args = (error.message,)
    return error


def _diagnose(body: bytes, target: Target) -> str:
    """What the emulator would refuse it for; loaded only when needed, it is large."""
    from dragoman.emulator.diagnosis import diagnose

    return diagnose(body, target.model, vertex=target.backend == "vertex")[:_MOST_CHARACTERS]
