"""`dragoman doctor` with the real clients: they arrive; Claude Code is led elsewhere, and mended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agents import PACKAGES, install_agent, install_node
from tests.e2e.clients import INSTALL_S, install_claude
from tests.e2e.conftest import NEW

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]


def doctor(home: Path, *flags: str, clients: str = "claude", path: str = "") -> dict[str, Any]:
    env = {
        "PATH": path or f"{install_claude(NEW[0]).parent}:/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(home),
        "DRAGOMAN_SERVER_PORT": "0",
        "LANG": os.environ.get("LANG", "C.UTF-8"),
    }
    command = [sys.executable, "-m", "dragoman", "doctor", "--json", *clients.split(), *flags]
    done = subprocess.run(
        command, cwd=home, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["ok"] is (done.returncode == 0), done.stderr
    return found


def only(found: dict[str, Any], check: str) -> dict[str, Any]:
    (one,) = [finding for finding in found["findings"] if finding["check"] == check]
    return dict(one)


def test_the_real_claude_code_is_proven_to_arrive(tmp_path: Path) -> None:
    found = doctor(tmp_path)
    assert only(found, "clients")["what"] == f"Claude Code {NEW[0]}, the tested version"
    arrival = only(found, "arrival")
    assert arrival["status"] == "ok", found
    assert "request arrived at /v1/messages, response shown" in arrival["what"]


def test_every_other_client_is_proven_to_arrive_too(tmp_path: Path) -> None:
    """All that npm has; the Rust programs of Amazon's cannot be had here."""
    folders = [install_node(), *(install_agent(name).parent for name in PACKAGES)]
    path = ":".join([*map(str, folders), "/usr/bin", "/bin"])
    found = doctor(tmp_path, clients=" ".join(PACKAGES), path=path)
    arrived = [finding for finding in found["findings"] if finding["check"] == "arrival"]
    assert [one["what"] for one in arrived if "request arrived at " not in one["what"]] == []
    assert {one["status"] for one in arrived} == {"ok"}, arrived
    assert len(arrived) == len(PACKAGES)


def test_settings_that_lead_it_elsewhere_are_found_and_mended(tmp_path: Path) -> None:
    """Known problem N2: the proxy's log is empty and nobody knows why."""
    file = tmp_path / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}}))
    found = doctor(tmp_path, "--wait", "10")
    assert not found["ok"]
    assert only(found, "arrival")["status"] == "fail"
    assert "env.ANTHROPIC_BASE_URL" in only(found, "files")["what"]
    mended = doctor(tmp_path, "--fix", "--yes")
    assert only(mended, "files")["status"] == "ok"
    assert only(mended, "arrival")["status"] == "ok", mended
