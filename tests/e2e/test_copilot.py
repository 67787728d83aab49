"""Copilot CLI on each of the three protocols it speaks, and started by `dragoman copilot`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.agent_task import check_errand, task_prompt
from tests.e2e.agents import TOOLS, Place, copilot
from tests.e2e.clients import INSTALL_S
from tests.e2e.directives import together
from tests.e2e.fake_google import Google
from tests.e2e.recording_proxy import Tap

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]


@pytest.mark.parametrize("protocol", ["chat", "responses", "anthropic"])
def test_it_runs_its_errand(tmp_path: Path, tap: Tap, google: Google, protocol: str) -> None:
    place = Place(tmp_path)
    run = copilot(place, tap.url, protocol, task_prompt(TOOLS["copilot"], place.cwd))
    check_errand(run, TOOLS["copilot"], place.cwd, google, tap)


def test_it_is_launched_without_a_login(tmp_path: Path) -> None:
    place, tools = Place(tmp_path), TOOLS["copilot"]
    prompt = together(tools.write(place.cwd / "a.txt", "one\n"), tools.run("echo ran > b.txt"))
    env = {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": "http://127.0.0.1:9",
        "COPILOT_PROVIDER_BEARER_TOKEN": "elsewhere",
        "COPILOT_PROVIDER_TRANSPORT": "websockets",
    }
    run = place.launch("copilot", "--allow-all", "--silent", "-p", prompt, env=env).check()
    assert "create returned: Created file" in run.out
    assert (place.cwd / "b.txt").read_text() == "ran\n"
