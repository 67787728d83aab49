"""`dragoman doctor` as a user runs it: what it finds, what it mends, and whether a client's request arrived."""

from __future__ import annotations

import argparse
import io
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import emulator
from dragoman.cli.doctor import CHECK_TITLES, CHECKS, _make_repairs
from dragoman.cli.doctor.finding import DoctorContext, Finding, Repair
from dragoman.cli.launchers import CLIENTS
from tests.e2e.agents import PACKAGES
from tests.e2e.conftest import NEW
from tests.unit.cli.conftest import Dragoman

KEY = "AIzaSy-a-key-of-the-emulator-0123456789"

# Asks one question as Claude Code does, prints the answer, and says its version.
CLAUDE = f"""#!{sys.executable}
import json, os, sys, urllib.request
if "--version" in sys.argv:
    sys.exit(print("9.9.9 (Stand-in)"))
if os.environ.get("SILENT"):
    sys.exit("nobody to talk to")
words = os.environ.get("OTHER") or sys.argv[-1]
body = {{"model": "sonnet", "max_tokens": 50, "messages": [{{"role": "user", "content": words}}]}}
request = urllib.request.Request(
    os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode(),
    {{"content-type": "application/json", "authorization": "Bearer " + os.environ["ANTHROPIC_AUTH_TOKEN"]}})
with urllib.request.urlopen(request) as answer:
    said = json.load(answer)["content"][0]["text"]
print(sys.argv[-1] if os.environ.get("PARROT") else said)
"""


@pytest.fixture
def claude(tmp_path: Path) -> dict[str, str]:
    program = tmp_path / "claude-stand-in"
    program.write_text(CLAUDE)
    program.chmod(0o755)
    return {"DRAGOMAN_CLAUDE": str(program), "PATH": "/usr/bin:/bin", "DRAGOMAN_SERVER_PORT": "0"}


def findings(done: subprocess.CompletedProcess[str], check: str) -> list[dict[str, Any]]:
    document = json.loads(done.stdout)
    assert document["ok"] is (done.returncode == 0)
    return [finding for finding in document["findings"] if finding["check"] == check]


def look(dragoman: Dragoman, check: str, *flags: str, **env: str) -> list[dict[str, Any]]:
    port = {"DRAGOMAN_SERVER_PORT": "0", "PATH": "/usr/bin:/bin"}
    return findings(dragoman("doctor", "--json", "--no-clients", *flags, env=port | env), check)


def test_every_check_has_a_title_and_every_client_a_probe() -> None:
    assert list(CHECK_TITLES) == list(CHECKS)
    assert all("{}" in client.probe_args for client in CLIENTS.values())


def test_proven_versions_are_those_of_our_tests() -> None:
    assert {"claude": NEW[0]} | {name: version for name, (_, version) in PACKAGES.items()} == {
        name: client.tested_version for name, client in CLIENTS.items() if client.tested_version
    }


def test_an_empty_machine_is_well(dragoman: Dragoman, home: Path) -> None:
    done = dragoman("doctor", "--no-clients", env={"DRAGOMAN_SERVER_PORT": "0", "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stdout
    assert "Gemini emulator (no Google API key)" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("all checks passed (")
    assert "\x1b" not in done.stdout + done.stderr
    assert not home.exists()


def test_a_request_of_a_client_is_seen_to_arrive(
    dragoman: Dragoman, claude: dict[str, str], tmp_path: Path
) -> None:
    """Known problem N2: the client really talks to the gateway, or we say that it does not."""
    (tmp_path / "tmp").mkdir()
    done = dragoman("doctor", "--json", "claude", env=claude | {"TMPDIR": str(tmp_path / "tmp")})
    assert done.returncode == 0, done.stdout + done.stderr
    (arrival,) = findings(done, "arrival")
    assert arrival["status"] == "ok"
    assert "request arrived at /v1/messages, response shown" in arrival["what"]
    (version,) = findings(done, "clients")
    assert (
        version["what"]
        == f"Claude Code 9.9.9, newer than {CLIENTS['claude'].tested_version}, the tested version"
    )
    assert not list((tmp_path / "tmp").glob("dragoman-*"))


def test_a_client_that_repeats_the_question_has_not_shown_the_answer(
    dragoman: Dragoman, claude: dict[str, str]
) -> None:
    (arrival,) = findings(dragoman("doctor", "--json", "claude", env=claude | {"PARROT": "1"}), "arrival")
    assert arrival["status"] == "warn"
    assert "but the response did not" in arrival["what"]


def test_a_client_that_asks_nobody_fails(dragoman: Dragoman, claude: dict[str, str]) -> None:
    done = dragoman("doctor", "--json", "claude", env=claude | {"SILENT": "1"})
    assert done.returncode == 1
    (arrival,) = findings(done, "arrival")
    assert arrival["what"] == "Claude Code: ended without a request"
    assert arrival["why"] == "nobody to talk to"


def test_a_request_of_somebody_else_is_no_proof(dragoman: Dragoman, claude: dict[str, str]) -> None:
    (arrival,) = findings(dragoman("doctor", "--json", "claude", env=claude | {"OTHER": "hello"}), "arrival")
    assert arrival["status"] == "fail"


def test_a_client_that_is_asked_for_and_missing_fails(dragoman: Dragoman) -> None:
    done = dragoman("doctor", "--json", "--no-clients", "pi", env={"PATH": "/usr/bin:/bin"})
    assert findings(done, "clients")[0]["what"] == "pi is not installed"
    assert done.returncode == 1


def test_wrong_settings_are_told_and_nothing_is_started(
    dragoman: Dragoman, claude: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text("[server]\nprot = 1\n")
    done = dragoman("doctor", "--json", env=claude | {"DRAGOMAN_CONFIG": str(file)})
    assert done.returncode == 1
    assert "did you mean server.port?" in findings(done, "settings")[0]["what"]
    assert not findings(done, "arrival")


def test_google_is_asked_for_every_model_of_the_settings(dragoman: Dragoman, tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_text('[models]\nopus = "gemini-1.5-pro"\n')
    with emulator.running() as gemini:
        google = {"GEMINI_BASE_URL": gemini.url, "GEMINI_API_KEY": KEY, "DRAGOMAN_CONFIG": str(file)}
        found = look(dragoman, "upstream", **google)
        offline = look(dragoman, "upstream", "--offline", **google)
    assert found[0]["status"] == "ok"
    assert "gemini-flash-latest" in found[0]["what"]
    assert found[1]["status"] == "fail"
    assert found[1]["what"] == "Google does not know the model gemini-1.5-pro"
    assert [finding["what"] for finding in offline] == ["skipped (--offline)"]


def test_a_refused_key_is_told_once(dragoman: Dragoman) -> None:
    with emulator.running(
        {"steps": [{"when": {"method": "count"}, "fault": "bad_key", "times": "always"}]}
    ) as gemini:
        found = look(dragoman, "upstream", GEMINI_BASE_URL=gemini.url, GEMINI_API_KEY=KEY)
    (refusal,) = [finding for finding in found if finding["status"] == "fail"]
    assert "API key not valid" in refusal["what"]
    assert "aistudio.google.com" in refusal["fix"]


def test_every_key_is_tried(dragoman: Dragoman, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(f'[upstream]\napi_keys = ["{KEY}", "{KEY}-bad"]\n')
    step = {
        "when": {"method": "count", "header": {"x-goog-api-key": "-bad$"}},
        "fault": "bad_key",
        "times": "always",
    }
    with emulator.running({"steps": [step]}) as gemini:
        found = look(dragoman, "upstream", GEMINI_BASE_URL=gemini.url, DRAGOMAN_CONFIG=str(file))
    assert found[0]["status"] == "ok"
    (refusal,) = [finding for finding in found if finding["status"] == "fail"]
    assert refusal["what"].startswith("key 2: API key not valid")


def test_a_google_that_cannot_be_reached(dragoman: Dragoman) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        (found,) = look(dragoman, "upstream", GEMINI_BASE_URL=url, GEMINI_API_KEY=KEY)
    assert found["status"] == "fail"
    assert "cannot be reached" in found["what"]
    assert "HTTPS_PROXY" in found["fix"]


def test_a_port_of_somebody_else(dragoman: Dragoman) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        (found,) = look(dragoman, "port", DRAGOMAN_SERVER_PORT=str(other.getsockname()[1]))
    assert found["status"] == "fail"
    assert "Address already in use" in found["what"]


def test_a_state_folder_open_to_others_is_closed_with_consent(dragoman: Dragoman, home: Path) -> None:
    home.mkdir(mode=0o755)
    (home / "gateway.key").write_text("dgm-0123456789abcdef0123456789\n")
    (home / "gateway.key").chmod(0o644)
    first = look(dragoman, "state")
    assert [finding["status"] for finding in first] == ["ok", "warn", "warn"]
    assert all(finding["repairable"] for finding in first[1:])
    refused = dragoman("doctor", "--no-clients", "--fix", env={"DRAGOMAN_SERVER_PORT": "0"})
    assert "not confirmed (use --yes)" in refused.stderr
    assert home.stat().st_mode & 0o777 == 0o755
    assert [finding["status"] for finding in look(dragoman, "state", "--fix", "--yes")] == ["ok"]
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_store_that_is_none(dragoman: Dragoman, home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "state.db").write_bytes(b"this is no database, " * 100)
    (found,) = look(dragoman, "store")
    assert found["status"] == "fail"
    assert "state.db" in found["fix"]


def test_settings_of_claude_code_are_mended_with_a_copy(
    dragoman: Dragoman, claude: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / ".claude" / "settings.json"
    file.parent.mkdir()
    before = '{"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "KEPT": "é"}, "apiKeyHelper": "x", "model": "opus"}'
    file.write_text(before)
    (found,) = findings(dragoman("doctor", "--json", "--no-clients", "claude", env=claude), "files")
    assert found["status"] == "fail"
    assert found["what"] == f"{file} sets apiKeyHelper, env.ANTHROPIC_BASE_URL"
    done = dragoman("doctor", "--json", "claude", "--fix", "--yes", env=claude)
    assert findings(done, "files")[0]["status"] == "ok"
    assert findings(done, "arrival")[0]["status"] == "ok"
    assert json.loads(file.read_text()) == {"env": {"KEPT": "é"}, "model": "opus"}
    (copy,) = file.parent.glob("settings.json.*.bak")
    assert copy.read_text() == before
    assert copy.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("answer", "mended"), [("y\n", True), ("\n", False), ("no\n", False)])
def test_a_repair_waits_for_a_yes(
    answer: str, mended: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[str] = []

    def act() -> str:
        done.append("closed")
        return "it is closed"

    repair = Repair(question="close it", apply=act)
    found = [("disk", Finding(status="warn", what="open", repair=repair))]
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    at = DoctorContext(env={}, home=Path("/nowhere"))
    after = _make_repairs(found, at, argparse.Namespace(yes=False, json=False))
    assert bool(done) is mended
    assert "close it? [y/N]" in capsys.readouterr().err
    assert (after == found) is not mended


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nonsense"], "nonsense is not a supported client"),
        (["--yes"], "--yes requires --fix"),
        (["--wait", "0"], "--wait must be above 0"),
    ],
)
def test_wrong_usage(dragoman: Dragoman, argv: list[str], message: str) -> None:
    done = dragoman("doctor", *argv)
    assert done.returncode == 2
    assert message in done.stderr
