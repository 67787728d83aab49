"""`dragoman q` and `dragoman kiro` as processes: a stand-in that reads settings and login like the real ones."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Dragoman

KEY = "dgm-key/with+odd=characters-in-it"
OWN = '{"api.codewhisperer.service": {"endpoint": "https://mine", "region": "x"},  "chat.theme":"dark"}'
LOGIN = json.dumps({"access_token": "aoa-real", "expires_at": "2999-01-01T00:00:00Z", "refresh_token": "r"})
STAND_IN = Path(__file__).with_name("fake_q.py")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real gateway that asks for its key, as it does when Google is behind it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    env = {
        "PATH": os.environ["PATH"],
        "DRAGOMAN_HOME": str(tmp_path_factory.mktemp("gateway")),
        "DRAGOMAN_GATEWAY_KEY": KEY,
        "GEMINI_API_KEY": "AIza-not-used",
    }
    command = [sys.executable, "-m", "dragoman", "serve", "--port", port]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        assert server.stdout is not None
        while b"ready on" not in server.stdout.readline():
            assert server.poll() is None
        yield port
        server.terminate()
        server.stdout.read()


@pytest.fixture
def env(tmp_path: Path, gateway: str, clean_env: dict[str, str]) -> dict[str, str]:
    program = tmp_path / "bin" / "q"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n')
    program.chmod(0o755)
    return clean_env | {
        "DRAGOMAN_Q": str(program),
        "DRAGOMAN_KIRO": str(program),
        "DRAGOMAN_SERVER_PORT": gateway,
        "DRAGOMAN_GATEWAY_KEY": KEY,
        "GEMINI_API_KEY": "AIza-not-used",
        "REPORT": str(tmp_path / "report.json"),
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Where `q` has run before, with settings of the user's and nobody logged in."""
    folder = tmp_path / ".local" / "share" / "amazon-q"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(OWN)
    (folder / "settings.json").chmod(0o644)
    with sqlite3.connect(folder / "data.sqlite3") as database:
        database.execute("CREATE TABLE auth_kv (key TEXT PRIMARY KEY, value TEXT)")
    database.close()
    return folder


def log_in(data: Path) -> None:
    with sqlite3.connect(data / "data.sqlite3") as database:
        database.execute("REPLACE INTO auth_kv VALUES ('codewhisperer:odic:token', ?)", (LOGIN,))
    database.close()


def logins(data: Path) -> list[str]:
    with sqlite3.connect(data / "data.sqlite3") as database:
        found = [str(row[0]) for row in database.execute("SELECT value FROM auth_kv")]
    database.close()
    return found


def is_untouched(data: Path) -> bool:
    settings = data / "settings.json"
    return (
        settings.read_text() == OWN
        and settings.stat().st_mode & 0o777 == 0o644
        and logins(data) in ([], [LOGIN])
    )


def report_of(env: dict[str, str]) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(Path(env["REPORT"]).read_text())
    return report


def status_of(endpoint: str, token: str) -> int:
    """Whether who comes with this address and this login is let in."""
    request = urllib.request.Request(f"{endpoint}/v1/models", headers={"authorization": f"Bearer {token}"})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


class Running:
    """A launcher whose client runs until it is told to end."""

    def __init__(self, env: dict[str, str], number: int, name: str = "q") -> None:
        here = Path(env["REPORT"]).with_name(f"run-{number}")
        self.env = env | {"REPORT": f"{here}.json", "UNTIL": f"{here}.end"}
        command = [sys.executable, "-m", "dragoman", name]
        self.process = subprocess.Popen(
            command, env=self.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )

    def await_report(self) -> dict[str, Any]:
        deadline = time.monotonic() + 30
        while not Path(self.env["REPORT"]).exists():
            assert time.monotonic() < deadline
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.02)
        return report_of(self.env)

    def end(self) -> int:
        Path(self.env["UNTIL"]).touch()
        return self.process.wait(20)


@pytest.fixture
def launch(env: dict[str, str]) -> Iterator[Any]:
    started: list[Running] = []

    def start(**more: str) -> Running:
        started.append(Running(env | more, len(started)))
        return started[-1]

    yield start
    for one in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(one.process.pid, signal.SIGKILL)
        one.process.communicate()


def test_without_a_login_q_runs_on_the_gateway_and_leaves_no_trace(
    dragoman: Dragoman, env: dict[str, str], data: Path, home: Path
) -> None:
    done = dragoman("q", "chat", "--no-interactive", "say done", env=env | {"CODE": "7"})
    assert done.returncode == 7, done.stderr
    report = report_of(env)
    assert report["argv"] == ["chat", "--no-interactive", "say done"]
    assert report["id"].startswith("req_")
    assert report["settings"]["chat.theme"] == "dark"
    assert report["settings"]["api.codewhisperer.service"]["region"] == "us-east-1"
    assert "this run uses a placeholder login" in done.stderr
    assert KEY not in done.stderr + report["token"]
    assert is_untouched(data)
    assert logins(data) == []
    assert [entry.name for entry in (home / "lent").iterdir()] == ["lock"]


def test_the_address_lets_in_who_comes_with_a_login_of_amazons(
    dragoman: Dragoman, env: dict[str, str], data: Path
) -> None:
    log_in(data)
    done = dragoman("q", env=env)
    assert done.returncode == 0, done.stderr
    report = report_of(env)
    assert report["token"] == "aoa-real"
    assert status_of(report["endpoint"], "aoa-real") == 200
    assert status_of(report["endpoint"].partition("/key/")[0], "aoa-real") == 401
    assert "placeholder" not in done.stderr
    assert is_untouched(data)
    assert logins(data) == [LOGIN]


def test_a_q_that_never_ran_makes_its_database_first(
    dragoman: Dragoman, env: dict[str, str], tmp_path: Path
) -> None:
    done = dragoman("q", env=env | {"XDG_DATA_HOME": str(tmp_path / "xdg")})
    assert done.returncode == 0, done.stderr
    data = tmp_path / "xdg" / "amazon-q"
    assert json.loads((data / "settings.json").read_text()) == {}
    assert logins(data) == []


def test_what_q_saved_meanwhile_stays(dragoman: Dragoman, env: dict[str, str], data: Path) -> None:
    assert (
        dragoman("q", env=env | {"SAVE": '{"chat.theme": "light", "mcp.loadedBefore": true}'}).returncode == 0
    )
    assert json.loads((data / "settings.json").read_text()) == {
        "api.codewhisperer.service": {"endpoint": "https://mine", "region": "x"},
        "chat.theme": "light",
        "mcp.loadedBefore": True,
    }


def test_commands_without_a_model_see_the_users_own_settings(
    dragoman: Dragoman, env: dict[str, str], data: Path
) -> None:
    inode = (data / "settings.json").stat().st_ino
    done = dragoman("q", "settings", "list", env=env)
    assert (done.returncode, json.loads(done.stdout)) == (0, json.loads(OWN))
    assert (data / "settings.json").stat().st_ino == inode
    assert dragoman("q", "whoami", env=env).returncode == 1


def test_settings_that_are_no_json_are_left_alone(
    dragoman: Dragoman, env: dict[str, str], data: Path
) -> None:
    (data / "settings.json").write_text('{"a": 1} // mine')
    done = dragoman("q", env=env)
    assert done.returncode == 1
    error, hint = done.stderr.splitlines()[-2:]
    assert "settings.json is not a plain JSON object" in error
    assert "not changed" in hint
    assert (data / "settings.json").read_text() == '{"a": 1} // mine'
    assert not Path(env["REPORT"]).exists()


def test_a_database_of_another_kind_is_no_obstacle(
    dragoman: Dragoman, env: dict[str, str], data: Path
) -> None:
    (data / "data.sqlite3").write_bytes(b"")
    done = dragoman("q", env=env)
    assert "Amazon Q will ask you to log in" in done.stderr
    assert "You are not logged in" in done.stdout
    assert done.returncode == 1


def test_killed_the_launcher_leaves_its_settings_to_the_next_start_of_any(
    launch: Any, dragoman: Dragoman, env: dict[str, str], data: Path, tmp_path: Path
) -> None:
    killed = launch()
    killed.await_report()
    killed.process.kill()
    killed.process.wait()
    assert not is_untouched(data)
    assert len(logins(data)) == 1
    done = dragoman("pi", env={"PATH": str(tmp_path)})  # it is not even installed
    told = f"restored: {data / 'settings.json'}, {data / 'data.sqlite3'}"
    assert [told in line for line in done.stderr.splitlines()].count(True) == 1
    assert is_untouched(data)
    assert logins(data) == []


def test_killed_with_everything_the_next_q_starts_as_if_nothing_was(
    launch: Any, dragoman: Dragoman, env: dict[str, str], data: Path
) -> None:
    killed = launch()
    first = killed.await_report()
    os.killpg(killed.process.pid, signal.SIGKILL)
    killed.process.wait()
    assert dragoman("q", env=env).returncode == 0
    assert report_of(env)["endpoint"] == first["endpoint"]
    assert is_untouched(data)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 5), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_ctrl_c_and_a_closed_terminal_are_a_normal_end(
    launch: Any, data: Path, number: signal.Signals, code: int
) -> None:
    running = launch()
    running.await_report()
    os.killpg(running.process.pid, number)  # as the terminal does
    assert running.process.wait(20) == code
    assert is_untouched(data)
    assert logins(data) == []


def test_of_two_at_once_the_last_one_out_restores(launch: Any, data: Path) -> None:
    first, second = launch(), launch(DRAGOMAN_SERVER_PORT="0")  # with a gateway of its own
    one, two = first.await_report(), second.await_report()
    assert one["endpoint"] != two["endpoint"]
    ours = {one["endpoint"], two["endpoint"]}
    assert first.end() == 0
    assert read_endpoint(data) in ours
    assert len(logins(data)) == 1
    assert second.end() == 0
    assert is_untouched(data)
    assert logins(data) == []


def test_of_two_at_once_one_may_be_killed(launch: Any, data: Path) -> None:
    first, second = launch(), launch()
    first.await_report()
    second.await_report()
    second.process.kill()
    second.process.wait()
    assert first.end() == 0
    assert is_untouched(data)
    assert logins(data) == []


def read_endpoint(data: Path) -> str:
    return str(json.loads((data / "settings.json").read_text())["api.codewhisperer.service"]["endpoint"])


@pytest.mark.parametrize("logged_in", [False, True])
def test_kiro_runs_on_the_gateway_with_and_without_a_login(
    dragoman: Dragoman, env: dict[str, str], tmp_path: Path, logged_in: bool
) -> None:
    folder = tmp_path / ".local" / "share" / "kiro-cli"
    folder.mkdir(parents=True)
    if logged_in:
        with sqlite3.connect(folder / "data.sqlite3") as database:
            database.execute("CREATE TABLE auth_kv (key TEXT PRIMARY KEY, value TEXT)")
            database.execute("INSERT INTO auth_kv VALUES ('kirocli:odic:token', ?)", (LOGIN,))
        database.close()
    settings = tmp_path / ".kiro" / "settings" / "cli.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"chat.uiMode": "v3"}')
    done = dragoman("kiro", "chat", env=env | {"STAND_IN": "kiro", "KIRO_API_KEY": "ksk_of_the_users"})
    assert done.returncode == 0, done.stderr
    report = report_of(env)
    assert report["token"] == ("aoa-real" if logged_in else f"ksk_{KEY}")
    assert report["id"].startswith("req_")
    assert status_of(report["endpoint"], report["token"]) == 200
    assert {"api.krs.service", "api.cps.service", "api.codewhisperer.service"} <= set(report["settings"])
    assert settings.read_text() == '{"chat.uiMode": "v3"}'
    assert logins(folder) == ([LOGIN] if logged_in else [])
