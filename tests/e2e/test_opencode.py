"""opencode on each of the four protocols it speaks, and started by `dragoman opencode`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.agent_task import check_errand, task_prompt
from tests.e2e.agents import OPENCODE_QUIET, TOOLS, Place, opencode, opencode_command
from tests.e2e.clients import INSTALL_S
from tests.e2e.directives import together
from tests.e2e.fake_google import Google
from tests.e2e.recording_proxy import Tap

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]


@pytest.mark.parametrize("protocol", ["chat", "responses", "anthropic", "gemini"])
def test_it_runs_its_errand(tmp_path: Path, tap: Tap, google: Google, protocol: str) -> None:
    place = Place(tmp_path)
    run = opencode(place, tap.url, protocol, task_prompt(TOOLS["opencode"], place.cwd))
    check_errand(run, TOOLS["opencode"], place.cwd, google, tap)


def test_it_is_launched_over_the_users_own_settings(tmp_path: Path) -> None:
    place, tools = Place(tmp_path), TOOLS["opencode"]
    place.write_home(".config/opencode/opencode.json", {"model": "anthropic/claude-x", "username": "me"})
    prompt = together(tools.write(place.cwd / "a.txt", "one\n"), tools.run("echo ran > b.txt"))
    env = OPENCODE_QUIET | {
        "ANTHROPIC_API_KEY": "sk-elsewhere",
        "OPENCODE_CONFIG_CONTENT": '{"share":"disabled"}',
    }
    run = place.launch(*opencode_command(Path("opencode"), prompt), env=env).check()
    texts = [event["part"]["text"] for event in run.events if event["type"] == "text"]
    assert "write returned: Wrote file successfully." in texts[-1]
    assert (place.cwd / "b.txt").read_text() == "ran\n"
