"""The network and the clients fail, in every dialect and at every moment."""

from __future__ import annotations

import pytest

from tests.chaos.environment import limits, open_world
from tests.chaos.faulty_proxy import Weather
from tests.chaos.matrix_cell import play_cells
from tests.chaos.matrix_rows import Fault
from tests.chaos.network_faults import NETWORK, WEATHER


@pytest.mark.parametrize(
    ("fault", "tongue"),
    [
        pytest.param(fault, tongue, id=f"{fault.name}-{tongue}")
        for fault in NETWORK
        for tongue in fault.tongues
    ],
)
async def test_a_fault_on_the_way(fault: Fault, tongue: str) -> None:
    async with open_world(upstream=limits(fault), weather=WEATHER.get(fault.name, Weather())) as world:
        await play_cells(world, fault, fault.cells(tongue))
