"""Single checks on situations that are hard to come by with a whole machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from email.utils import formatdate
from pathlib import Path

import pytest

from dragoman.cli.doctor import all_passed, summary
from dragoman.cli.doctor.client_settings_checks import check_environment, check_files
from dragoman.cli.doctor.finding import DoctorContext, Finding
from dragoman.cli.doctor.local_checks import check_disk
from dragoman.cli.doctor.upstream_checks import UpstreamProbe, _clock_findings, check_ca, check_proxy
from dragoman.cli.settings import Settings
from dragoman.config import load


def situation(tmp_path: Path, env: Mapping[str, str] | None = None, *clients: str) -> DoctorContext:
    env = {"HOME": str(tmp_path), **(env or {})}
    settings = Settings(
        loaded=load(file_text=None, file_name="", env=env, flags={}), file=None, home=tmp_path
    )
    return DoctorContext(env=env, home=tmp_path, settings=settings, clients=clients)


def told(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.status, finding.what) for finding in findings]


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, [("ok", "no conflicting variables")]),
        ({"ANTHROPIC_API_KEY": "x"}, [("note", "ANTHROPIC_API_KEY is set")]),
        (
            {"CLAUDE_CODE_USE_BEDROCK": "1", "ANTHROPIC_API_KEY": "x"},
            [("note", "ANTHROPIC_API_KEY, CLAUDE_CODE_USE_BEDROCK are set")],
        ),
        (
            {"ANTHROPIC_BASE_URL": "http://127.0.0.1:8377"},
            [("ok", "ANTHROPIC_BASE_URL points to this gateway")],
        ),
        (
            {"OPENAI_BASE_URL": "http://localhost:8377/"},
            [("warn", "OPENAI_BASE_URL points to this gateway, but with the path /")],
        ),
        (
            {"OPENAI_BASE_URL": "https://api.example.com/v1"},
            [("note", "OPENAI_BASE_URL points to api.example.com, not to this gateway")],
        ),
        (
            {"GEMINI_BASE_URL": "http://127.0.0.1:8377"},
            [("fail", "env GEMINI_BASE_URL points to the gateway itself")],
        ),
        ({"GOOGLE_API_KEY": "AIza-meant-for-the-gateway"}, [("ok", "no conflicting variables")]),
    ],
)
def test_variables(tmp_path: Path, env: dict[str, str], expected: list[tuple[str, str]]) -> None:
    assert told(list(check_environment(situation(tmp_path, env)))) == expected


def test_only_variables_of_the_wanted_clients_count(tmp_path: Path) -> None:
    at = situation(tmp_path, {"ANTHROPIC_API_KEY": "x"}, "pi")
    assert told(list(check_environment(at))) == [("ok", "no conflicting variables")]


@pytest.mark.parametrize(
    ("variables", "statuses", "words"),
    [
        ({}, ["ok"], "none"),
        (
            {"HTTP_PROXY": "http://proxy:3128"},
            ["warn", "ok"],
            "NO_PROXY does not name 127.0.0.1 and localhost",
        ),
        (
            {"HTTPS_PROXY": "http://me:secret@proxy:3128", "NO_PROXY": "127.0.0.1,localhost"},
            ["ok"],
            "generativelanguage.googleapis.com is reached through proxy:3128",
        ),
        ({"HTTPS_PROXY": "ftp://me:secret@proxy:21"}, ["fail"], "cannot be used"),
        ({"HTTPS_PROXY": "socks5://proxy"}, ["ok"], "is reached through proxy:1080"),
        ({"ALL_PROXY": "http://proxy:1", "NO_PROXY": "127.0.0.1,localhost"}, ["ok"], "through proxy:1"),
        ({"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "*"}, ["ok"], "set, and not used for"),
    ],
)
def test_proxies(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    statuses: list[str],
    words: str,
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = list(check_proxy(situation(tmp_path, variables)))
    assert [finding.status for finding in found] == statuses
    assert words in found[0].what
    assert "secret" not in str(found)


def test_a_socks_proxy_without_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks5://proxy:1080")
    monkeypatch.setattr("dragoman.cli.doctor.upstream_checks.find_spec", lambda _name: None)
    (found,) = check_proxy(situation(tmp_path, {}))
    assert (found.status, found.fix) == ("fail", "pip install 'dragoman[socks]'")


def test_certificates_that_are_no_file(tmp_path: Path) -> None:
    found = list(
        check_ca(situation(tmp_path, {"SSL_CERT_FILE": "/nowhere", "NODE_EXTRA_CA_CERTS": "/nowhere"}))
    )
    assert [finding.status for finding in found] == ["fail", "warn"]


def test_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for free, status in ((10**6, "fail"), (10**8, "warn"), (10**10, "ok")):
        monkeypatch.setattr("shutil.disk_usage", lambda _path, free=free: type("Usage", (), {"free": free}))
        assert [finding.status for finding in check_disk(situation(tmp_path / "not" / "yet"))] == [status]


@pytest.mark.parametrize(
    ("file", "text", "client", "status", "words"),
    [
        (
            ".codex/config.toml",
            'profile = "work"\n[profiles.work]\nmodel_provider = "openai"\n',
            "codex",
            "fail",
            "profile work",
        ),
        (
            ".codex/config.toml",
            'profile = "work"\n[profiles.work]\nmodel = "x"\n',
            "codex",
            "ok",
            "no conflicting",
        ),
        (".codex/config.toml", "profile = \n", "codex", "fail", "cannot be read"),
        (".gemini/settings.json", "// a comment\n{}", "gemini", "warn", "is not plain JSON"),
        (
            ".gemini/settings.json",
            json.dumps({"security": {"auth": {"enforcedType": "oauth-personal"}}}),
            "gemini",
            "fail",
            "enforces the login oauth-personal",
        ),
        (
            ".gemini/.env",
            "export GOOGLE_GENAI_USE_VERTEXAI=true\n",
            "gemini",
            "warn",
            "GOOGLE_GENAI_USE_VERTEXAI",
        ),
        (
            ".qwen/settings.json",
            json.dumps({"security": {"auth": {"baseUrl": "https://x"}}}),
            "qwen",
            "note",
            "security.auth.baseUrl",
        ),
        (".claude/settings.json", '{"env": {"ANTHROPIC_AUTH_TOKEN": "x"}}', "pi", "ok", "no conflicting"),
        (".claude/settings.json", "[]", "claude", "ok", "no conflicting"),
    ],
)
def test_files_of_clients(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    text: str,
    client: str,
    status: str,
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(text)
    (found,) = check_files(situation(tmp_path, {}, client))
    assert (found.status, words in found.what) == (status, True), found


def test_a_project_that_leads_elsewhere_is_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known problem Q12: what a repository brings along is told, and is not ours to mend."""
    project = tmp_path / "project"
    (project / ".claude").mkdir(parents=True)
    (project / ".claude" / "settings.json").write_text('{"env": {"ANTHROPIC_BASE_URL": "http://evil"}}')
    monkeypatch.chdir(project)
    (found,) = check_files(situation(tmp_path, {}, "claude"))
    assert found.status == "fail"
    assert found.repair is None


@pytest.mark.parametrize(
    ("behind_s", "status", "words"),
    [(3, "ok", "agrees"), (600, "warn", "600 s ahead"), (-600, "warn", "600 s behind")],
)
def test_the_clock_is_compared_with_googles(behind_s: int, status: str, words: str) -> None:
    now_s = 1_800_000_000
    asked = UpstreamProbe(model="m", date=formatdate(now_s - behind_s, usegmt=True))
    (found,) = _clock_findings([UpstreamProbe(model="silent"), asked], now_s)
    assert (found.status, words in found.what) == (status, True)
    assert not list(_clock_findings([UpstreamProbe(model="m", date="nonsense")], now_s))


def test_the_summary_counts() -> None:
    fine = [("key", Finding(status="ok", what="a")), ("key", Finding(status="warn", what="b"))]
    assert summary(fine) == "all checks passed (1 ok, 0 note, 1 warn)"
    assert all_passed(fine)
    assert not all_passed([*fine, ("port", Finding(status="fail", what="c"))])
