"""The commands that serve: ready line, port in use, signals, and the launcher with a stand-in for Claude Code."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.serve import run as serve_command
from dragoman.errors import ConfigError
from dragoman.gateway.auth.authenticator import Caller
from dragoman.gateway.context import Gateway
from tests.unit.cli.conftest import Dragoman

# Writes what it was given to the file REPORT, asks the gateway for its health, and leaves with CODE.
FAKE_CLAUDE = f"""#!{sys.executable}
import json, os, sys, time, urllib.request
base = os.environ["ANTHROPIC_BASE_URL"]
request = urllib.request.Request(base + "/v1/models", headers={{
    "authorization": "Bearer " + os.environ["ANTHROPIC_AUTH_TOKEN"], "anthropic-version": "2023-06-01"}})
with urllib.request.urlopen(request) as response:
    models = json.load(response)
with open(os.environ["REPORT"] + ".part", "w") as file:
    json.dump({{"argv": sys.argv[1:], "env": dict(os.environ), "models": models, "stdin": sys.stdin.read()}}, file)
os.rename(os.environ["REPORT"] + ".part", os.environ["REPORT"])
print("said by claude")
time.sleep(float(os.environ.get("SLEEP", "0")))
sys.exit(int(os.environ.get("CODE", "0")))
"""


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def claude(tmp_path: Path, port: int) -> dict[str, str]:
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(FAKE_CLAUDE)
    program.chmod(0o755)
    return {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "REPORT": str(tmp_path / "report.json"),
        "DRAGOMAN_SERVER_PORT": str(port),
    }


def report_of(env: dict[str, str]) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(Path(env["REPORT"]).read_text())
    return report


def answers(base_url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{base_url}/healthz", timeout=2) as response:
            return bool(json.load(response)["service"] == "dragoman")
    except OSError:
        return False


def eventually(condition: Any, limit_s: float = 20) -> bool:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


@contextlib.contextmanager
def serving(*argv: str, env: dict[str, str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "dragoman", *argv]
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("ready on http://"), process.stderr.read()
            yield process, line
        finally:
            process.terminate()


def test_serve_is_ready_and_stops_at_a_signal(clean_env: dict[str, str], home: Path, port: int) -> None:
    with serving("serve", "--port", str(port), env=clean_env) as (process, line):
        assert line == f"ready on http://127.0.0.1:{port} → Gemini emulator (no Google API key)\n"
        assert answers(f"http://127.0.0.1:{port}")
        key = (home / "gateway.key").read_text().strip()
        process.send_signal(signal.SIGTERM)
        said, complained = process.communicate(timeout=20)
        assert process.returncode == 0
        assert complained == ""
        assert key not in said
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in (home, *home.rglob("*"))}
    assert modes == {(False, 0o600), (True, 0o700)}


@pytest.mark.parametrize(
    ("settings", "admins", "others"),
    [
        pytest.param({}, ["gateway.key"], [], id="the key made at the first start"),
        pytest.param(
            {"DRAGOMAN_GATEWAY_KEY": "given-key-0123456789"}, ["given-key-0123456789"], [], id="given"
        ),
        pytest.param(
            {"DRAGOMAN_SERVER_KEYS": "team-key-0123456789,team-key-2-0123456789"},
            [],
            ["team-key-0123456789", "team-key-2-0123456789"],
            id="a team's keys are not",
        ),
        pytest.param(
            {
                "DRAGOMAN_SERVER_KEYS": "team-key-0123456789",
                "DRAGOMAN_SERVER_ADMIN_KEYS": "boss-key-0123456789",
            },
            ["boss-key-0123456789"],
            ["team-key-0123456789"],
            id="unless listed",
        ),
    ],
)
def test_q6_who_is_an_admin_of_a_gateway(
    monkeypatch: pytest.MonkeyPatch,
    home: Path,
    settings: dict[str, str],
    admins: list[str],
    others: list[str],
) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(home))
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    made: list[Gateway] = []

    def stop(gateway: Gateway, *_: Any) -> None:
        made.append(gateway)
        raise ConfigError("far enough")

    monkeypatch.setattr("dragoman.gateway.app.GatewayApp", stop)
    with pytest.raises(ConfigError, match="far enough"):
        serve_command(["--emulator", "--port", "0"])
    keys = [(home / key).read_text().strip() if key == "gateway.key" else key for key in (*admins, *others)]
    callers = [made[0].authenticator.authenticate({"x-api-key": key}, {}, 0) for key in keys]
    assert [isinstance(one, Caller) and one.admin for one in callers] == [True] * len(admins) + [False] * len(
        others
    )
    assert (home / "gateway.key").exists() == (not settings)


def test_n3_a_port_in_use_is_said_with_a_way_out(dragoman: Dragoman, port: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        for command in ("serve", "emulator"):
            done = dragoman(command, "--port", str(port))
            assert done.returncode == 2
            error, hint = done.stderr.splitlines()
            assert str(port) in error
            assert "in use" in error
            assert "--port" in hint


def test_serve_refuses_wrong_settings_before_it_binds(dragoman: Dragoman) -> None:
    done = dragoman("serve", "--host", "0.0.0.0")
    assert done.returncode == 2
    assert "--host: 0.0.0.0 can be reached from outside" in done.stderr
    assert dragoman("serve", "--host", "0.0.0.0", "--no-auth").returncode == 2


def test_the_emulator_alone(clean_env: dict[str, str], port: int, home: Path) -> None:
    with serving("emulator", "--port", str(port), env=clean_env) as (_, line):
        assert line == f"ready on http://127.0.0.1:{port} → Gemini emulator\n"
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1beta/models", headers={"x-goog-api-key": "any"}
        )
        with urllib.request.urlopen(request, timeout=5) as response:
            assert json.load(response)["models"]
    assert not home.exists()


def test_the_emulator_listens_on_loopback_only(dragoman: Dragoman) -> None:
    assert dragoman("emulator", "--host", "0.0.0.0").returncode == 2


def test_a_missing_claude_is_said_with_how_to_install_it(dragoman: Dragoman, tmp_path: Path) -> None:
    done = dragoman("claude", "-p", "hi", env={"PATH": str(tmp_path)})
    assert done.returncode == 1
    error, hint = done.stderr.splitlines()
    assert "Claude Code is not installed" in error
    assert "npm install -g @anthropic-ai/claude-code" in hint
    assert "which is not a program" in dragoman("claude", env={"DRAGOMAN_CLAUDE": "/nowhere/claude"}).stderr


def test_claude_gets_gateway_arguments_and_terminal(
    dragoman: Dragoman, claude: dict[str, str], home: Path
) -> None:
    argv = ("-p", "hi there", "--help", "--config", "x", "--", "-")
    env = claude | {"CODE": "7", "ANTHROPIC_API_KEY": "sk-ant-x", "CLAUDE_CODE_USE_BEDROCK": "1"}
    done = dragoman("claude", *argv, env=env, stdin=b"typed")
    assert (done.returncode, done.stdout) == (7, "said by claude\n"), done.stderr
    report = report_of(claude)
    assert (report["argv"], report["stdin"]) == (list(argv), "typed")
    assert report["models"]["data"]
    assert report["env"]["ANTHROPIC_AUTH_TOKEN"] == (home / "gateway.key").read_text().strip()
    assert not {"ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_BEDROCK"} & set(report["env"])
    assert "emulator" in done.stderr
    assert not answers(report["env"]["ANTHROPIC_BASE_URL"])


@pytest.mark.parametrize("command", ["claude", "serve"])
def test_q12_modules_of_the_project_are_not_imported(
    clean_env: dict[str, str], claude: dict[str, str], tmp_path: Path, command: str
) -> None:
    """The working directory may be a repository somebody just cloned."""
    project = tmp_path / "project"
    project.mkdir()
    for name in ("msgspec", "aiohttp", "dragoman"):
        (project / f"{name}.py").write_text("open('owned', 'w').close(); raise SystemExit('hostile')")
    argv = [sys.executable, "-P", "-m", "dragoman", command]
    argv += ["--port", "0", "--workers", "2"] if command == "serve" else []
    with subprocess.Popen(
        argv, env=clean_env | claude, cwd=project, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(("said by claude", "ready on"))
        process.terminate()
    assert not (project / "owned").exists()


def test_claude_uses_the_gateway_that_runs(
    dragoman: Dragoman, clean_env: dict[str, str], claude: dict[str, str], port: int
) -> None:
    base_url = f"http://127.0.0.1:{port}"
    with serving("serve", "--port", str(port), env=clean_env):
        assert dragoman("claude", env=claude).returncode == 0
        assert report_of(claude)["env"]["ANTHROPIC_BASE_URL"] == base_url
        assert answers(base_url)


def test_claude_leaves_a_gateway_with_another_key_alone(
    dragoman: Dragoman, clean_env: dict[str, str], claude: dict[str, str], port: int, tmp_path: Path
) -> None:
    google = {"GEMINI_API_KEY": "any", "GEMINI_BASE_URL": "http://127.0.0.1:9"}
    other = clean_env | google | {"DRAGOMAN_HOME": str(tmp_path / "other")}
    with serving("serve", "--port", str(port), env=other):
        done = dragoman("claude", env=claude | google)
        assert done.returncode == 0, done.stderr
        assert report_of(claude)["env"]["ANTHROPIC_BASE_URL"] != f"http://127.0.0.1:{port}"
        assert answers(f"http://127.0.0.1:{port}")


def test_wrong_settings_stop_claude_before_it_starts(dragoman: Dragoman, claude: dict[str, str]) -> None:
    done = dragoman("claude", env=claude | {"DRAGOMAN_SERVER_PRT": "1"})
    assert done.returncode == 2
    assert "did you mean DRAGOMAN_SERVER_PORT" in done.stderr
    assert not Path(claude["REPORT"]).exists()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_however_the_launcher_ends_its_gateway_goes_too(
    clean_env: dict[str, str], claude: dict[str, str], number: signal.Signals, code: int
) -> None:
    env = clean_env | claude | {"SLEEP": "3"}
    command = [sys.executable, "-m", "dragoman", "claude"]
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as launcher:
        assert eventually(lambda: Path(claude["REPORT"]).exists())
        base_url = report_of(claude)["env"]["ANTHROPIC_BASE_URL"]
        assert answers(base_url)
        launcher.send_signal(number)
        assert launcher.wait(20) == code
    assert eventually(lambda: not answers(base_url))


def test_ctrl_c_is_for_claude(clean_env: dict[str, str], claude: dict[str, str]) -> None:
    env = clean_env | claude | {"SLEEP": "1", "CODE": "5"}
    command = [sys.executable, "-m", "dragoman", "claude"]
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as launcher:
        assert eventually(lambda: Path(claude["REPORT"]).exists())
        launcher.send_signal(signal.SIGINT)
        assert launcher.wait(20) == 5


def test_ctrl_z_stops_the_launcher_with_its_program(tmp_path: Path) -> None:
    program = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP); raise SystemExit(9)"
    code = (
        "import os, sys; from dragoman.cli.launch.foreground import run_foreground;"
        f"sys.exit(run_foreground([sys.executable, '-c', {program!r}], os.environ))"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as launcher:
        _, status = os.waitpid(launcher.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        launcher.send_signal(signal.SIGCONT)
        assert launcher.wait(20) == 9
