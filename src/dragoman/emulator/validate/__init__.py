"""Validation in Google's order: parse (all violations), fields (all bullets), semantics (first error).

`check_api_key` runs between the first two. `diagnose` explains why Google rejected a request, for a gateway that got
only the catch-all message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.emulator.errors import (
    CATCH_ALL,
    ApiError,
    field_rules_error,
    invalid_key_error,
    missing_key_error,
    unsupported_token_error,
)
from dragoman.emulator.models import EmulatedModel, find_model
from dragoman.emulator.parsed_request import ParsedRequest
from dragoman.emulator.routes import Backend, GeminiRoute
from dragoman.emulator.signature import Signer
from dragoman.emulator.validate.fields import content_problems, field_problems
from dragoman.emulator.validate.parser import parse_request
from dragoman.emulator.validate.semantics import (
    check_ending,
    check_generation,
    check_media,
    check_responses,
    check_roles,
    check_signatures,
    check_tool_parts,
    check_turns,
)

__all__ = ["check_count", "check_request", "parse_request"]


def check_request(request: Mapping[str, Any], model: EmulatedModel, backend: Backend, signer: Signer) -> None:
    """Run stages 2 and 3 of the validation of generateContent on a parsed request.

    Parts that passed the same rules before are skipped. If the rest fails, everything is checked again,
    because the error texts contain positions in the whole request.
    """
    if isinstance(request, ParsedRequest):
        rules = f"{backend.surface} {backend.version} {model.id}"
        try:
            _check(request, request.unchecked_part(rules), model, backend, signer)
        except ApiError:
            pass
        else:
            request.mark_checked(rules)
            return
    _check(request, request, model, backend, signer)


def _check(
    request: Mapping[str, Any],
    unseen: Mapping[str, Any],
    model: EmulatedModel,
    backend: Backend,
    signer: Signer,
) -> None:
    """Check a request. `unseen` is the part of it that did not pass yet.

    Rules that check each content on its own, or only the other fields, read `unseen`; the rest read
    `request`.
    """
    problems = field_problems(unseen, model, backend)
    if problems:
        raise field_rules_error(problems)
    contents = request["contents"]
    check_generation(request, model, backend)
    check_media(unseen, backend)
    check_roles(unseen["contents"], model, backend)
    check_turns(contents, model)
    check_responses(unseen["contents"], model)
    check_tool_parts(unseen["contents"])
    # A missing signature is reported before a trailing model turn (measured 2026-09).
    check_signatures(contents, model, backend, signer)
    check_ending(contents, model)


def check_count(request: Mapping[str, Any]) -> None:
    """Check the contents of a countTokens request."""
    problems = list(content_problems(request))
    if problems:
        raise field_rules_error(problems, "CountTokensRequest")


#: A key that never called a model which is closed to new users.
NEW_USER_KEY = "new-user-key"


def check_api_key(key: str, route: GeminiRoute) -> None:
    """Raise Google's error for a key with this name. The model is checked last."""
    refuse = REJECTED_KEYS.get(key)
    if refuse is not None:
        raise refuse(route)
    model = find_model(route.model, route.backend.version) if key == NEW_USER_KEY else None
    if model is not None and model.closed_to_new_users and not route.backend.is_vertex:
        raise ApiError(
            f"This model models/{model.id} is no longer available to new users. Please update your code to use "
            "a newer model for the latest features and improvements.",
            code=404,
        )


REJECTED_KEYS: dict[str, Callable[[GeminiRoute], ApiError]] = {
    "invalid-key": lambda _: invalid_key_error(),
    "missing-key": lambda _: missing_key_error(),
    "oauth-key": lambda route: unsupported_token_error(route.method),
}


class _TrustingSigner(Signer):
    """A signer that accepts every signature.

    The emulator cannot verify signatures that Google issued, but it still detects missing ones.
    """

    def verify(self, signature: bytes, backend: Backend, model: EmulatedModel, target: str) -> None:
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
