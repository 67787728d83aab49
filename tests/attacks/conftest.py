"""One gateway for most attacks: whatever one of them leaves behind, the next one meets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attacks.gateway_target import HEADER, POOL, ROWS, Target, gateway_process


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with gateway_process(tmp_path_factory.mktemp("attacked")) as running:
        yield running


@pytest.fixture(scope="session", autouse=True)
def attackers_process() -> Iterator[None]:
    POOL.submit(int).result()  # it starts with its first task
    yield
    POOL.shutdown()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if ROWS:
        terminalreporter.section("attacks")
        for line in (HEADER, *ROWS):
            terminalreporter.write_line(str(line))
