"""Explain Google's unspecific "invalid argument" errors with the strict checks of our emulator (pain C11)."""

from __future__ import annotations

from dragoman.dialects.base import Target
from dragoman.errors import UpstreamError

_MOST_CHARACTERS = 500


def explain_rejection(error: UpstreamError, body: bytes, target: Target) -> UpstreamError:
    """Return the same error; if it is opaque, append what the emulator finds wrong with `body`."""
    if error.code == "opaque":
        found = _diagnose(body, target)
        says = f"says: {found}" if found else "finds nothing wrong with it"
        error.message = f"{error.message} Dragoman's own check {says}"
        error.args = (error.message,)
    return error


def _diagnose(body: bytes, target: Target) -> str:
    """Return the emulator's complaint, or "". The emulator is large and imported only when needed."""
    from dragoman.emulator.diagnosis import diagnose

    return diagnose(body, target.model, vertex=target.backend == "vertex")[:_MOST_CHARACTERS]
