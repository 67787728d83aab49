"""What would stop the event loop for longer than the limits of a cell happens before the first one."""

from __future__ import annotations

import asyncio
import gc
import os

import pytest

from tests.chaos.dialect_clients import TONGUES
from tests.chaos.environment import open_world
from tests.chaos.matrix_cell import play_cells
from tests.chaos.matrix_rows import Cell, Fault, harmless

_ROUNDS = int(os.environ.get("DRAGOMAN_CHAOS_ROUNDS", "1"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every cell so often: what chance decides comes out both ways."""
    if _ROUNDS > 1:
        metafunc.fixturenames.append("chaos_round")
        metafunc.parametrize("chaos_round", range(_ROUNDS))


@pytest.fixture(scope="session", autouse=True)
def everything_is_loaded() -> None:
    asyncio.run(_load())
    gc.collect()
    gc.freeze()


async def _load() -> None:
    """The vendors' libraries build their types when they first need them."""
    fault = Fault(name="none", expect=harmless)
    async with open_world() as world:
        for name, tongue in TONGUES.items():
            await play_cells(world, fault, [Cell(name, "before headers", stream) for stream in tongue.forms])
