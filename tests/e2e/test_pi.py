"""pi on each of the four protocols it speaks, and started by `dragoman pi`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.agent_task import check_errand, task_prompt
from tests.e2e.agents import TOOLS, Place, pi
from tests.e2e.clients import INSTALL_S
from tests.e2e.directives import plan, together, use
from tests.e2e.fake_google import Google
from tests.e2e.recording_proxy import Tap

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]


@pytest.mark.parametrize("protocol", ["chat", "responses", "anthropic", "gemini"])
def test_it_runs_its_errand(tmp_path: Path, tap: Tap, google: Google, protocol: str) -> None:
    place = Place(tmp_path)
    run = pi(place, tap.url, protocol, task_prompt(TOOLS["pi"], place.cwd))
    check_errand(run, TOOLS["pi"], place.cwd, google, tap)


def test_one_session_wanders_through_all_protocols_and_models(
    tmp_path: Path, tap: Tap, google: Google
) -> None:
    """Ids and signatures of one protocol come back on another."""
    place = Place(tmp_path)
    ways = {
        "chat": "gemini-3.8-flash",
        "gemini": "gemini-2.5-flash",
        "responses": "gpt-5",
        "anthropic": "claude-sonnet-4-5",
    }
    for number, (protocol, model) in enumerate(ways.items(), start=1):
        calls = (use("bash", {"command": f"echo {number}a"}), use("bash", {"command": f"echo {number}b"}))
        steps = plan(together(*calls), use("read", {"path": "/nowhere"}))
        flags = ["--continue"] if number > 1 else []
        run = pi(place, tap.url, protocol, steps, *flags, model=model).check()
        assert run.out.startswith(f"bash returned: {number}a\nbash returned: {number}b\nread ")
    assert not tap.refused(), "\n".join(tap.refused())
    calls_seen = str(google.requests()[-1]["contents"]).count("'functionCall'")
    assert calls_seen == 3 * len(ways)
    assert google.sentinels() == 0


def test_it_is_launched_beside_the_users_own_models(tmp_path: Path) -> None:
    place, tools = Place(tmp_path), TOOLS["pi"]
    place.write_home(".pi/agent/settings.json", {"defaultProvider": "anthropic", "defaultModel": "claude-x"})
    prompt = together(tools.write(place.cwd / "a.txt", "one\n"), tools.run("echo ran > b.txt"))
    env = {"PI_OFFLINE": "1", "ANTHROPIC_API_KEY": "sk-elsewhere", "GEMINI_API_KEY": "", "PI_TELEMETRY": "0"}
    run = place.launch("pi", "-p", prompt, env=env).check()
    assert "write returned: Successfully wrote 4 bytes" in run.out
    assert (place.cwd / "b.txt").read_text() == "ran\n"
    assert "dragoman" not in (place.home / ".pi/agent/settings.json").read_text()
    listed = place.launch("pi", "--list-models", "gemini", env=env).check()
    assert "gemini-3.8-flash" in listed.out + listed.errors
