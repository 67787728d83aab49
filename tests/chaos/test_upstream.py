"""Google fails, in every dialect and at every moment."""

from __future__ import annotations

import pytest

from tests.chaos.environment import limits, open_world
from tests.chaos.matrix_cell import play_cells
from tests.chaos.matrix_rows import Fault
from tests.chaos.upstream_faults import UPSTREAM


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
