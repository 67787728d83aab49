"""Qwen Code on each of the four protocols it speaks, and started by `dragoman qwen`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.agent_task import check_errand, task_prompt
from tests.e2e.agents import QWEN_QUIET, TOOLS, Place, qwen
from tests.e2e.clients import INSTALL_S
from tests.e2e.directives import together
from tests.e2e.fake_google import Google
from tests.e2e.recording_proxy import Tap

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]


@pytest.mark.parametrize("protocol", ["chat", "responses", "anthropic", "gemini"])
def test_it_runs_its_errand(tmp_path: Path, tap: Tap, google: Google, protocol: str) -> None:
    place = Place(tmp_path)
    run = qwen(place, tap.url, protocol, task_prompt(TOOLS["qwen"], place.cwd))
    check_errand(run, TOOLS["qwen"], place.cwd, google, tap)


def test_it_is_launched_over_the_users_own_settings(tmp_path: Path) -> None:
    place, tools = Place(tmp_path), TOOLS["qwen"]
    auth = {"selectedType": "openai", "apiKey": "sk-elsewhere", "baseUrl": "http://127.0.0.1:9/v1"}
    place.write_home(
        ".qwen/settings.json", QWEN_QUIET | {"security": {"auth": auth}, "model": {"name": "qwen3-coder"}}
    )
    prompt = together(tools.write(place.cwd / "a.txt", "one\n"), tools.run("echo ran > b.txt"))
    env = {"OPENAI_API_KEY": "sk-elsewhere", "OPENAI_MODEL": "gpt-5"}
    run = place.launch("qwen", "--yolo", "-p", prompt, env=env).check()
    assert "write_file returned: Successfully created" in run.out
    assert (place.cwd / "b.txt").read_text() == "ran\n"
