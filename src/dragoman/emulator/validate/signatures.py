"""Stage 3: the first call of each step of the current turn must have the thought signature it came with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.emulator.backend import Backend
from dragoman.emulator.contents import responses_of, role_of
from dragoman.emulator.models import GeminiModel
from dragoman.emulator.refusal import ApiError, catch_all_error
from dragoman.emulator.signature import TEXT_TARGET, Signer, call_target


def check_signatures(
    contents: Sequence[Mapping[str, Any]], model: GeminiModel, backend: Backend, signer: Signer
) -> None:
    """Reject wrong signatures anywhere, and missing ones in the current turn (Gemini 3).

    Other models ignore signatures.
    """
    if not model.wants_signatures:
        return
    start = _turn_start(contents)
    for index, content in enumerate(contents):
        parts = content.get("parts", ())
        for part in parts:
            signature = part.get("thoughtSignature")
            if signature:
                signer.verify(signature, backend, model, _signature_target(part))
        if index > start:
            _check_signed(parts, index)


def _check_signed(parts: Sequence[Mapping[str, Any]], index: int) -> None:
    first = next((part for part in parts if part.get("functionCall", {}).get("name")), None)
    if first is not None and not first.get("thoughtSignature"):
        raise _missing_signature_error(first["functionCall"]["name"], index + 1)
    for part in parts:
        if ("toolCall" in part or "toolResponse" in part) and not part.get("thoughtSignature"):
            raise catch_all_error(
                f"contents[{index}]: tool calls and tool responses come back with their signatures"
            )


def _turn_start(contents: Sequence[Mapping[str, Any]]) -> int:
    """Return the index of the last user content without function responses, or -1."""
    for index in reversed(range(len(contents))):
        if role_of(contents[index]) == "user" and not responses_of(contents[index]):
            return index
    return -1


def _signature_target(part: Mapping[str, Any]) -> str:
    return call_target(part["functionCall"].get("name", "")) if "functionCall" in part else TEXT_TARGET


def _missing_signature_error(name: str, position: int) -> ApiError:
    return ApiError(
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
        "work correctly, and missing thought_signature may lead to degraded model performance. Additional "
        f"data, function call `default_api:{name}` , position {position}. Please refer to "
        "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
    )
