"""What is remembered of the heads of messages."""

from __future__ import annotations

import pytest

from dragoman.http1 import heads
from dragoman.server import http


def test_long_names_are_read_and_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "_NAMES", {})
    short, long = b"X" * 64, b"Y" * 65
    raw = short + b": 1\r\n" + long + b": 2"
    assert heads.read_fields(raw, 0) == [(short.lower(), b"1"), (long.lower(), b"2")]
    assert [*heads._NAMES] == [short]


def test_nor_as_the_application_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_NAMES", {})
    short, long = b"x" * 64, b"y" * 65
    assert http.headers_of({"headers": [(short, b"1"), (long, b"2")]}) == {"x" * 64: "1", "y" * 65: "2"}
    assert [*http._NAMES] == [short]
