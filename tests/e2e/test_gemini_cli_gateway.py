"""Gemini CLI through the gateway, which to it is Google, and started by `dragoman gemini`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.agent_task import check_errand, task_prompt
from tests.e2e.agents import TOOLS, Finished, Place
from tests.e2e.clients import INSTALL_S
from tests.e2e.directives import plan, together, use
from tests.e2e.fake_google import Google
from tests.e2e.gateway import GATEWAY_KEY
from tests.e2e.gemini_cli import GeminiCli
from tests.e2e.recording_proxy import Tap

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]


@pytest.fixture
def cli(tmp_path: Path, tap: Tap) -> GeminiCli:
    return GeminiCli(folder=tmp_path, url=tap.url, key=GATEWAY_KEY)


def test_it_runs_its_errand(cli: GeminiCli, tap: Tap, google: Google) -> None:
    run = cli.run(task_prompt(TOOLS["gemini"], cli.cwd), "-m", "gemini-3.8-flash", "-o", "json")
    check_errand(
        Finished(code=run.code, out=run.out, errors=run.errors), TOOLS["gemini"], cli.cwd, google, tap
    )
    assert run.answer["stats"]["tools"]["totalCalls"] == 6
    assert run.answer["stats"]["tools"]["totalFail"] == 1


def test_auto_asks_a_small_model_which_one_is_to_answer(cli: GeminiCli, tap: Tap) -> None:
    steps = plan(
        use("google_web_search", {"query": "what is a dragoman"}),
        together(use("glob", {"pattern": "*.nothing"}), use("run_shell_command", {"command": "echo hello"})),
        say="done",
    )
    answer = cli.run(steps, "-m", "auto", "-o", "json").check().answer
    assert answer["response"] == "done"
    assert answer["stats"]["tools"]["totalSuccess"] == 3
    assert not tap.refused(), "\n".join(tap.refused())
    router, *others = tap.paths()
    assert router == "POST /v1beta/models/gemini-3.5-flash-lite:generateContent"
    assert len(others) == 4
    again = cli.run("say and again", "-m", "auto", "--resume", "latest").check()
    assert again.out.strip() == "and again"
    assert not tap.refused(), "\n".join(tap.refused())


def test_it_is_launched_although_the_user_logs_in_elsewhere(tmp_path: Path) -> None:
    place, tools = Place(tmp_path), TOOLS["gemini"]
    settings = {
        "security": {"auth": {"selectedType": "oauth-personal"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    }
    place.write_home(".gemini/settings.json", settings)
    prompt = together(tools.write(place.cwd / "a.txt", "one\n"), tools.run("echo ran > b.txt"))
    env = {"GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9", "GOOGLE_GENAI_USE_GCA": "true"}
    run = place.launch("gemini", "--skip-trust", "--yolo", "-p", prompt, env=env).check()
    assert "write_file returned: Successfully created" in run.out
    assert (place.cwd / "b.txt").read_text() == "ran\n"
    assert "oauth-personal" in (place.home / ".gemini/settings.json").read_text()
    again = place.launch("gemini", "--skip-trust", "--resume", "latest", "-p", "say and again", env=env)
    assert again.check().out.strip() == "and again"
