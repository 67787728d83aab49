"""What all tests may count on, however they were started."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest


def pytest_configure() -> None:
    """A run in a shell's background is started with Ctrl-C ignored, and so would be every program it starts."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With FORBID_SKIPS a skipped test fails the run. A worker of xdist has no terminal reporter."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not os.environ.get("FORBID_SKIPS"):
        return
    if skipped := reporter.stats.get("skipped"):
        reporter.write_line(f"\n{len(skipped)} skipped, and FORBID_SKIPS is set", red=True)
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def own_umask() -> Iterator[None]:
    """`dragoman serve` closes what it writes to others, for its whole process: here that would be every later test."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)
