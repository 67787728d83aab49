"""Validation in Google's order: parse (all violations), fields (all bullets), semantics (first error)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.emulator.backend import Backend
from dragoman.emulator.models import GeminiModel
from dragoman.emulator.pieces import ParsedRequest
from dragoman.emulator.refusal import ApiError, field_rules_error
from dragoman.emulator.signature import Signer
from dragoman.emulator.validate.conversation import (
    check_ending,
    check_responses,
    check_roles,
    check_tool_parts,
    check_turns,
)
from dragoman.emulator.validate.fields import content_problems, field_problems
from dragoman.emulator.validate.generation import check_generation
from dragoman.emulator.validate.media import check_media
from dragoman.emulator.validate.parse import parse_request
from dragoman.emulator.validate.signatures import check_signatures

__all__ = ["check_count", "check_request", "parse_request"]


def check_request(request: Mapping[str, Any], model: GeminiModel, backend: Backend, signer: Signer) -> None:
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
    model: GeminiModel,
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
