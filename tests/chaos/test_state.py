"""What keeps the gateway's state fails, in every dialect and at every moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.chaos.environment import open_world
from tests.chaos.matrix_cell import play_disaster
from tests.chaos.matrix_rows import Disaster
from tests.chaos.state_faults import REDIS, SQLITE, redis_state, sqlite_state

OPENED = {**dict.fromkeys(SQLITE, sqlite_state), **dict.fromkeys(REDIS, redis_state)}


@pytest.mark.parametrize(
    ("disaster", "tongue"),
    [
        pytest.param(disaster, tongue, id=f"{disaster.name}-{tongue}")
        for disaster in OPENED
        for tongue in disaster.tongues
    ],
)
async def test_a_fault_of_the_state(disaster: Disaster, tongue: str, tmp_path: Path) -> None:
    opened: Any = OPENED[disaster]
    with opened(tmp_path) as state:
        async with open_world(store=state.store) as world:
            world.state = state
            await play_disaster(world, disaster, disaster.cells(tongue))
