"""A session of the real Claude Code, recorded by the gateway: explained and replayed, Google is asked the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from dragoman.observe.captures import CAPTURES_FOLDER, CapturedRequest, recent_captures
from tests.e2e.clients import INSTALL_S, Claude
from tests.e2e.conftest import CLASSIC, NEW, NEW_GEMINI
from tests.e2e.directives import plan, together, use
from tests.e2e.fake_google import KEY, Google
from tests.e2e.gateway import GATEWAY_KEY, Gateway

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "gateway"


@pytest.fixture
def recorder(home: Path, google: Google) -> Iterator[Gateway]:
    gateway = Gateway(home, google.url, OBSERVE_CAPTURE="all")
    gateway.start()
    yield gateway
    gateway.stop()
    assert "Traceback" not in gateway.log()


@pytest.fixture(params=[NEW, NEW_GEMINI, CLASSIC], ids=" ".join)
def recorded(
    request: pytest.FixtureRequest, tmp_path: Path, home: Path, recorder: Gateway, google: Google
) -> list[CapturedRequest]:
    """Calls one after the other and together, files, a session that is continued: what was kept of it, oldest first."""
    version, model = request.param
    folder = tmp_path / "client"
    claude = Claude(version=version, model=model, folder=folder, url=recorder.url, key=GATEWAY_KEY)
    note = str(claude.cwd / "note.txt")
    steps = (
        use("Write", {"file_path": note, "content": "naïve ∑ \U0001f600 </script>\n"}),
        together(use("Read", {"file_path": note}), use("Bash", {"command": "cat note.txt; exit 3"})),
    )
    claude.run(plan(*steps)).check()
    claude.run(use("Bash", {"command": "echo once more"}), "--continue").check()
    recorder.stop()  # what waits to be written is written
    kept = sorted(recent_captures(home / CAPTURES_FOLDER, 99), key=lambda one: one.record.started_s)
    asked = [one for one in kept if one.upstream and not one.record.path.endswith("count_tokens")]
    assert len([one for one in asked if one.record.calls]) >= 3
    assert sorted(pair.request.data for one in asked for pair in one.upstream) == sorted(google.bodies())
    google.forget()
    return asked


def dragoman(home: Path, google: Google, *args: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "DRAGOMAN_HOME": str(home)}
    env |= {"GEMINI_BASE_URL": google.url, "GEMINI_API_KEY": KEY}
    command = [sys.executable, "-m", "dragoman", *args]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)


def test_explain_and_replay_of_a_recorded_session_reproduce_the_same_upstream_bytes(
    recorded: list[CapturedRequest], home: Path, google: Google
) -> None:
    for captured in recorded:
        then = captured.upstream[0].request.data
        explained = dragoman(home, google, "explain", captured.record.id, "--json")
        whole = msgspec.json.decode(explained.stdout.encode(), type=CapturedRequest)
        assert whole.upstream[0].request.data == then

        google.forget()
        replayed = dragoman(home, google, "replay", captured.record.id)
        assert replayed.returncode == 0, replayed.stdout + replayed.stderr
        assert "the requests to Google: the same, byte for byte" in replayed.stdout
        assert google.bodies()[0] == then
