"""As many connections as there are descriptors for, and no more."""

from __future__ import annotations

import logging
import resource

import pytest

from dragoman.config import Config, ServerConfig
from dragoman.process.tuning import fit_limits_to_descriptors

CONFIG = Config(server=ServerConfig(max_connections=4096, max_requests=1000))


@pytest.mark.parametrize(
    ("soft", "hard", "raised_to", "expected"),
    [
        (20_000, 20_000, None, (4096, 1000)),
        (1024, 65_536, 5196, (4096, 1000)),
        (1024, resource.RLIM_INFINITY, 5196, (4096, 1000)),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None, (4096, 1000)),
        (256, 4096, 4096, (1998, 1000)),
        (1024, 1024, 1024, (462, 462)),
        (64, 64, 64, (1, 1)),
    ],
)
def test_the_limit_is_raised_and_then_kept(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    soft: int,
    hard: int,
    raised_to: int | None,
    expected: tuple[int, int],
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: asked.append(pair[0]))
    with caplog.at_level(logging.WARNING):
        server = fit_limits_to_descriptors(CONFIG).server
    assert (server.max_connections, server.max_requests) == expected
    assert asked == ([] if raised_to is None else [raised_to])
    assert bool(caplog.records) == (expected != (4096, 1000))
