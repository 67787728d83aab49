"""The exception tree, and notes: what they say and whose fault it is."""

from __future__ import annotations

from typing import get_args

import pytest

from dragoman.errors import (
    RETRYABLE,
    ConfigError,
    DragomanError,
    ErrorKind,
    InvalidRequest,
    NotAllowed,
    UpstreamError,
    UpstreamIncomplete,
    UpstreamProtocolError,
)
from dragoman.notes import Note


@pytest.mark.parametrize(
    ("error", "kind", "parent"),
    [
        (InvalidRequest, "invalid_request", DragomanError),
        (NotAllowed, "authentication", DragomanError),
        (UpstreamError, "internal", DragomanError),
        (UpstreamIncomplete, "internal", UpstreamError),
        (UpstreamProtocolError, "internal", UpstreamError),
        (ConfigError, "internal", DragomanError),
    ],
)
def test_each_error_has_its_own_kind(error: type[DragomanError], kind: ErrorKind, parent: type) -> None:
    assert error("x").kind == kind
    assert issubclass(error, parent)


def test_a_kind_given_by_hand_wins_for_this_one_error_only() -> None:
    assert InvalidRequest("x", kind="too_large").kind == "too_large"
    assert InvalidRequest("x").kind == "invalid_request"


def test_the_place_is_said_before_the_message() -> None:
    assert str(InvalidRequest("no", where="tools[1]")) == "tools[1]: no"
    assert str(InvalidRequest("no")) == "no"
    assert InvalidRequest("no", where="tools[1]").args == ("no",)


@pytest.mark.parametrize("kind", get_args(ErrorKind))
def test_only_luck_is_retried(kind: ErrorKind) -> None:
    expected = kind in {"rate_limit", "overloaded", "timeout", "internal"}
    assert DragomanError("x", kind=kind).retryable is expected
    assert (kind in RETRYABLE) is expected


def test_everything_else_is_carried_as_given() -> None:
    error = UpstreamError("x", retry_after_s=1.5, status=429, code="RESOURCE_EXHAUSTED")
    assert (error.retry_after_s, error.status, error.code) == (1.5, 429, "RESOURCE_EXHAUSTED")
    assert (DragomanError("x").retry_after_s, DragomanError("x").status, DragomanError("x").code) == (
        None,
        None,
        "",
    )


def test_a_note_reads_as_a_sentence_and_is_a_value() -> None:
    note = Note("dropped", "tools[0]", "no such thing")
    assert str(note) == "dropped tools[0]: no such thing"
    assert note == Note("dropped", "tools[0]", "no such thing")
    assert len({note, Note("dropped", "tools[0]", "no such thing")}) == 1
