"""The commands that need no server: help, version, config, and how errors look."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from dragoman.cli.launchers import CLIENTS
from dragoman.cli.main import COMMANDS
from dragoman.ids import new_id
from tests.unit.cli.conftest import Dragoman


def test_help_lists_every_command(dragoman: Dragoman) -> None:
    done = dragoman("--help")
    assert done.returncode == 0
    assert all(f"\n  {name} " in done.stdout for name in COMMANDS)
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in CLIENTS])
def test_every_command_has_help_with_examples(dragoman: Dragoman, command: str) -> None:
    done = dragoman(command, "--help")
    assert done.returncode == 0
    assert "examples:" in done.stdout
    assert dragoman("help", command).stdout == done.stdout


@pytest.mark.parametrize("name", CLIENTS)
def test_help_of_a_client_says_what_the_launcher_does_with_it(dragoman: Dragoman, name: str) -> None:
    done = dragoman("help", name)
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: dragoman {name} ")
    assert f"Run {CLIENTS[name].title} on Gemini" in done.stdout
    assert f"DRAGOMAN_{name.upper()}=" in done.stdout
    assert ("settings are\nrestored" in done.stdout) == (name in ("q", "kiro"))


def test_help_imports_nothing_heavy(clean_env: dict[str, str]) -> None:
    code = (
        "import sys; from dragoman.cli.main import main; main(['--help']);"
        "print([name for name in ('aiohttp', 'h2', 'asyncio', 'ssl') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean_env, capture_output=True, check=True, text=True
    )
    assert done.stderr.strip() == "[]"


def test_version(dragoman: Dragoman) -> None:
    assert dragoman("--version").stdout.startswith("dragoman 0.")


def test_a_misspelt_command_gets_a_hint(dragoman: Dragoman) -> None:
    done = dragoman("serv")
    assert done.returncode == 2
    assert done.stderr == "dragoman: error: unknown command 'serv'\n  hint: did you mean serve?\n"


def test_config_check_says_what_is_effective(dragoman: Dragoman, tmp_path: Path, home: Path) -> None:
    file = tmp_path / "team.toml"
    file.write_text("[server]\nport = 9999\n[models]\nopus = 'gemini-best'\n")
    done = dragoman("config", "check", str(file))
    assert done.returncode == 0
    assert done.stdout.startswith(f"settings are valid: {file}\n  listens on  127.0.0.1:9999\n")
    assert "Gemini emulator (no Google API key)" in done.stdout
    assert "*opus*     →  gemini-best" in done.stdout
    assert not home.exists()


def test_config_check_refuses_with_place_and_suggestion(dragoman: Dragoman, tmp_path: Path) -> None:
    file = tmp_path / "team.toml"
    file.write_text("[server]\nprot = 9999\n")
    done = dragoman("config", "check", str(file))
    assert done.returncode == 2
    assert done.stderr == f"dragoman: error: {file}: unknown key server.prot; did you mean server.port?\n"


def test_hints_have_their_own_line(dragoman: Dragoman) -> None:
    done = dragoman("config", "check", env={"DRAGOMAN_SERVER_HOST": "0.0.0.0"})
    assert done.returncode == 2
    error, hint = done.stderr.splitlines()
    assert error.endswith("0.0.0.0 can be reached from outside, so gateway keys must be set")
    assert hint == "  hint: set server.keys or DRAGOMAN_GATEWAY_KEY, or bind to 127.0.0.1"


def test_a_missing_file_is_said(dragoman: Dragoman) -> None:
    done = dragoman("config", "check", "/nowhere.toml")
    assert done.returncode == 2
    assert "/nowhere.toml: cannot be read: No such file or directory" in done.stderr


def test_the_file_is_found_by_variable_and_in_the_home(
    dragoman: Dragoman, tmp_path: Path, home: Path
) -> None:
    home.mkdir()
    (home / "config.toml").write_text("[server]\nport = 1001\n")
    other = tmp_path / "other.toml"
    other.write_text("[server]\nport = 1002\n")
    assert "127.0.0.1:1001" in dragoman("config", "check").stdout
    assert "127.0.0.1:1002" in dragoman("config", "check", env={"DRAGOMAN_CONFIG": str(other)}).stdout


def test_q12_nothing_is_read_from_the_working_directory(dragoman: Dragoman, tmp_path: Path) -> None:
    for name in ("config.toml", "dragoman.toml", ".dragoman.toml", ".env"):
        (tmp_path / name).write_text("[upstream]\nbase_url = 'https://evil.example'\n")
    done = dragoman("config", "show", cwd=tmp_path)
    assert tomllib.loads(done.stdout)["upstream"]["base_url"] == ""


@pytest.mark.parametrize("argv", [("config", "check"), ("doctor", "--no-clients", "--offline"), ("serve",)])
def test_strict_validation_without_its_extra_is_refused(
    dragoman: Dragoman, tmp_path: Path, argv: tuple[str, ...]
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['jsonschema_rs'] = None")
    env = {"DRAGOMAN_STRICT_TOOL_VALIDATION": "true", "PYTHONPATH": str(tmp_path)}
    done = dragoman(*argv, env=env)
    assert done.returncode in (1, 2)
    said = done.stdout + done.stderr
    assert "DRAGOMAN_STRICT_TOOL_VALIDATION: strict validation needs the extra" in said
    assert "pip install 'dragoman[strict]'" in said


def test_config_show_is_toml_without_secrets(dragoman: Dragoman) -> None:
    done = dragoman("config", "show", env={"GEMINI_API_KEY": "AIza-very-secret"})
    assert done.returncode == 0
    assert tomllib.loads(done.stdout)["upstream"]["api_key"] == "********"
    assert "AIza-very-secret" not in done.stdout + done.stderr


def test_m7_two_keys_are_told(dragoman: Dragoman) -> None:
    done = dragoman("config", "check", env={"GEMINI_API_KEY": "AIza-a", "GOOGLE_API_KEY": "AIza-b"})
    assert done.returncode == 0
    assert "note: GEMINI_API_KEY and GOOGLE_API_KEY are both set" in done.stderr


def test_tracebacks_only_for_those_who_ask(dragoman: Dragoman) -> None:
    argv = ("config", "check", "/nowhere.toml")
    assert "Traceback" not in dragoman(*argv).stderr
    assert "Traceback" in dragoman(*argv, env={"DRAGOMAN_DEBUG": "1"}).stderr


def test_a_reader_who_leaves_is_no_disaster(clean_env: dict[str, str]) -> None:
    read, write = os.pipe()
    os.close(read)
    argv = [sys.executable, "-m", "dragoman", "config", "show"]
    done = subprocess.run(argv, env=clean_env, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert done.returncode == 1
    assert done.stderr == b""


def test_tokens_are_sixteen_letters_and_digits() -> None:
    tokens = {new_id() for _ in range(1000)}
    assert len(tokens) == 1000
    assert all(len(token) == 16 and token.isalnum() and token.isascii() for token in tokens)


@pytest.mark.skipif(find_spec("mitmproxy") is not None, reason="here it is installed")
def test_the_proxy_says_what_it_needs(dragoman: Dragoman) -> None:
    done = dragoman("mitm", "--run", "read_file")
    assert done.returncode == 2
    assert done.stderr == (
        "dragoman: error: the proxy needs mitmproxy\n  hint: pip install 'dragoman[mitm]'\n"
    )
