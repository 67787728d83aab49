"""What the container file promises, tried without an engine: read-only, and as nobody."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.house.test_deploy import container_env
from tests.requirements import require_bubblewrap

_PROJECT = Path(__file__).resolve().parents[2]


def test_the_gateway_writes_to_its_state_folder_alone_and_needs_no_privilege(tmp_path: Path) -> None:
    """As the container does it: everything read-only, no capability, another user."""
    home = tmp_path / "state"
    home.mkdir()
    inside = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    for place in (_PROJECT, sys.prefix):  # either may lie below /tmp
        inside += ["--ro-bind", str(place), str(place)]
    inside += ["--bind", str(home), str(home), "--chdir", str(home), "--cap-drop", "ALL", "--die-with-parent"]
    user = ["--unshare-user", "--uid", "10001", "--gid", "10001"]
    serve = [sys.executable, "-P", "-m", "dragoman", "serve", "--port", "0", "--workers", "2"]
    env = container_env() | {"DRAGOMAN_HOME": str(home), "DRAGOMAN_SERVER_HOST": "127.0.0.1"}
    env |= {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    command = [require_bubblewrap(), *inside, *user, *serve]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("ready on http://")
            with urllib.request.urlopen(line.split()[2] + "/readyz", timeout=10) as response:
                assert response.status == 200
        finally:
            process.terminate()
    assert (home / "state.db").exists()
