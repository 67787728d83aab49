"""Google fails, in every dialect and at every moment."""

from __future__ import annotations

import pytest

from tests.chaos.cell import play_cells
from tests.chaos.rows import Fault
from tests.chaos.upstream import UPSTREAM
from tests.chaos.world import limits, open_world


@pytest.mark.parametrize(
    ("fault", "tongue"),
    [
        pytest.param(fault, tongue, id=f"{fault.name}-{tongue}")
        for fault in UPSTREAM
        for tongue in fault.tongues
    ],
)
async def test_a_fault_of_googles(fault: Fault, tongue: str) -> None:
    async with open_world(upstream=limits(fault)) as world:
        await play_cells(world, fault, fault.cells(tongue))
