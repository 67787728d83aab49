"""What is wrong with a request, as a function: for whoever got no reason from Google."""

from __future__ import annotations

from dragoman.emulator.backend import Backend
from dragoman.emulator.models import Model, find_model
from dragoman.emulator.refusal import CATCH_ALL, Refusal
from dragoman.emulator.signature import Signer
from dragoman.emulator.validate import check_request, parse


class _Believer(Signer):
    """Google's signatures cannot be checked here; a missing one is seen all the same."""

    def verify(self, signature: bytes, backend: Backend, model: Model, target: str) -> None:
        del signature, backend, model, target


def diagnose(body: bytes, model: str, *, vertex: bool = False) -> str:
    """The first complaint about a generateContent body, or nothing; signatures are taken on trust."""
    backend = Backend("vertex", "v1beta1") if vertex else Backend("studio", "v1beta")
    known = find_model(model, backend.version)
    if known is None:
        return ""
    try:
        check_request(parse(body, backend), known, backend, _Believer("diagnosis"))
    except Refusal as refusal:
        return "" if refusal.message == CATCH_ALL else refusal.message.strip()
    return ""
