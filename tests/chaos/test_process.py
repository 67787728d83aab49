"""The gateway's own process suffers, while clients of every dialect are at every moment of their conversations."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.matrix_cell import play_disaster
from tests.chaos.matrix_rows import Disaster
from tests.chaos.process_faults import PROCESS, open_process


@pytest.mark.parametrize("disaster", PROCESS, ids=lambda disaster: disaster.name)
async def test_a_fault_of_our_own_process(disaster: Disaster, tmp_path: Path) -> None:
    async with open_process(tmp_path, disaster) as world:
        cells = [cell for tongue in disaster.tongues for cell in disaster.cells(tongue)]
        await play_disaster(world, disaster, cells)
