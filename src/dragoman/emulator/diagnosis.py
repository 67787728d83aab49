"""Explain why Google rejected a request, for a gateway that got only the catch-all message."""

from __future__ import annotations

from dragoman.emulator.backend import Backend
from dragoman.emulator.models import GeminiModel, find_model
from dragoman.emulator.refusal import CATCH_ALL, ApiError
from dragoman.emulator.signature import Signer
from dragoman.emulator.validate import check_request, parse_request


class _TrustingSigner(Signer):
    """A signer that accepts every signature.

    The emulator cannot verify signatures that Google issued, but it still detects missing ones.
    """

    def verify(self, signature: bytes, backend: Backend, model: GeminiModel, target: str) -> None:
        del signature, backend, model, target


def diagnose(body: bytes, model: str, *, vertex: bool = False) -> str:
    """Return the first validation error of a generateContent body, or "" if there is none.

    Signatures are not verified. The result is also empty for an unknown model and where the emulator too
    would only give the catch-all message.
    """
    backend = Backend("vertex", "v1beta1") if vertex else Backend("studio", "v1beta")
    known = find_model(model, backend.version)
    if known is None:
        return ""
    try:
        check_request(parse_request(body, backend), known, backend, _TrustingSigner("diagnosis"))
    except ApiError as refusal:
        return "" if refusal.message == CATCH_ALL else refusal.message.strip()
    return ""
