"""Sessions outlive what happens to them: interrupts, kills, and a gateway that dies and comes back."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import uuid
from pathlib import Path

import pytest

from tests.e2e.clients import INSTALL_S, Claude, wait_for
from tests.e2e.conftest import CLASSIC, NEW, NEW_GEMINI
from tests.e2e.directives import plan, use
from tests.e2e.fake_google import Google
from tests.e2e.gateway import GATEWAY_KEY, Gateway

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["interrupt", "kill"])
def test_interrupted_session_is_resumed(claude: Claude, google: Google, how: signal.Signals) -> None:
    session = str(uuid.uuid4())
    note = claude.cwd / "sleeper.pid"

    def strike(process: subprocess.Popen[str]) -> None:
        sleeper = int(wait_for(note, process))
        claude.wait_for_transcript(session, "sleep 80", process)
        process.send_signal(how)
        process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.kill(sleeper, signal.SIGKILL)

    sleep = use("Bash", {"command": f"echo before; echo $$ > {note}; exec sleep 80"})
    cut = claude.run(
        plan(use("Bash", {"command": "echo first"}), sleep), "--session-id", session, meanwhile=strike
    )
    assert cut.names() == ["Bash", "Bash"]
    assert "sleep 80" not in cut.result

    google.forget()
    resumed = claude.run(
        use("Bash", {"command": "echo resumed | tee resumed.txt"}), "--resume", session
    ).check()
    assert resumed.names() == ["Bash"]
    assert (claude.cwd / "resumed.txt").read_text() == "resumed\n"
    assert "Bash returned: resumed" in resumed.result
    history = str(google.requests()[-1]["contents"])
    assert "echo first" in history
    assert google.sentinels() == 0


@pytest.fixture(params=[NEW, NEW_GEMINI, CLASSIC], ids=" ".join)
def own_claude(request: pytest.FixtureRequest, tmp_path: Path, own_gateway: Gateway) -> Claude:
    """Claude Code on a gateway that the test may kill."""
    version, model = request.param
    folder = tmp_path / "client"
    return Claude(version=version, model=model, folder=folder, url=own_gateway.url, key=GATEWAY_KEY)


def test_gateway_restart_between_turns(own_claude: Claude, own_gateway: Gateway, google: Google) -> None:
    first = own_claude.run(plan(use("Bash", {"command": "echo one"}), use("Bash", {"command": "echo two"})))
    first.check()
    own_gateway.kill()
    own_gateway.restart()
    google.forget()

    second = own_claude.run(use("Bash", {"command": "echo three"}), "--continue").check()
    assert second.names() == ["Bash"]
    assert "Bash returned: three" in second.result
    signatures = signatures_of_calls(google)
    assert len(signatures) == 3
    assert all(signatures)
    assert google.sentinels() == 0


@pytest.mark.parametrize("state", ["kept", "lost"])
def test_gateway_restart_between_a_call_and_its_result(
    own_claude: Claude, own_gateway: Gateway, google: Google, state: str
) -> None:
    """Here Gemini insists on the signature: only a carrier that outlived the process can bring it."""
    ready, go = own_claude.cwd / "ready", own_claude.cwd / "go"

    def restart(process: subprocess.Popen[str]) -> None:
        wait_for(ready, process)
        own_gateway.kill()
        if state == "lost":
            own_gateway.lose_state()
        own_gateway.restart()
        google.forget()
        go.touch()

    wait = f"echo x > {ready}; until [ -e {go} ]; do sleep 0.05; done; echo survived"
    prompt = plan(use("Bash", {"command": wait}), use("Bash", {"command": "echo after"}))
    run = own_claude.run(prompt, meanwhile=restart)
    assert run.code == 0
    assert run.names() == ["Bash", "Bash"]
    assert "Bash returned: survived" in run.result
    assert "Bash returned: after" in run.result
    assert all(signatures_of_calls(google))
    # Without thinking blocks and without the store nothing is left but Google's sentinel.
    assert (google.sentinels() > 0) == (state == "lost" and own_claude.classic)


def signatures_of_calls(google: Google) -> list[str]:
    """The signature of each step's first call in the last request with tools ("" where it is missing)."""
    last = [request for request in google.requests() if request.get("tools")][-1]
    steps = [
        [part for part in content["parts"] if "functionCall" in part]
        for content in last["contents"]
        if content.get("role") == "model"
    ]
    return [calls[0].get("thoughtSignature", "") for calls in steps if calls]


def test_the_model_is_changed_in_mid_session(claude: Claude, google: Google) -> None:
    """Signatures of one family mean nothing to another; the conversation goes on all the same."""
    session = claude.run(use("Bash", {"command": "echo zero"})).check().session
    for model in ("gemini-4-carbon", "gemini-2.5-flash", "claude-opus-4-1", claude.model):
        prompt = plan(use("Bash", {"command": f"echo on {model}"}), use("Bash", {"command": "echo again"}))
        run = claude.run(prompt, "--model", model, "--resume", session).check()
        session = run.session
        assert f"Bash returned: on {model}" in run.result
        assert "Bash returned: again" in run.result
    assert google.sentinels() == 0
