"""Settings from file, environment and flags: what wins, and what every refusal says."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from dragoman.config import Config, McpServer, Profile, load, load_config, show_config
from dragoman.config.model import PriceConfig, QuotaConfig
from dragoman.config.settings import SECRET_MEMBERS, SECRETS, SETTINGS
from tests.unit.config.builders import KEY, loaded, refusal


def test_nothing_given_is_the_defaults() -> None:
    assert load_config(file_text=None, file_name="", env={"PATH": "/bin"}, flags={}) == Config()


def test_flags_win_over_environment_over_file() -> None:
    file = "[server]\nport = 1111\nping_s = 5\nshutdown_s = 7"
    env = {"DRAGOMAN_SERVER_PORT": "2222", "DRAGOMAN_SERVER_PING_S": "6"}
    result = loaded(file, env, server__port=3333)
    server = result.config.server
    assert (server.port, server.ping_s, server.shutdown_s) == (3333, 6.0, 7.0)
    assert result.sources == {
        "server.port": "flag --port",
        "server.ping_s": "env DRAGOMAN_SERVER_PING_S",
        "server.shutdown_s": "my.toml",
    }


def test_flags_not_given_and_empty_variables_change_nothing() -> None:
    assert (
        loaded(None, {"DRAGOMAN_SERVER_PORT": " ", "GEMINI_API_KEY": ""}, server__port=None).config
        == Config()
    )


SAMPLES = {
    "kind": "emulator",
    "api_key": "AIza-abc",
    "base_url": "https://example.com",
    "api_version": "v1beta",
    "keys": f"{KEY}-1, {KEY}-2",
    "admin_keys": f"{KEY}-1, {KEY}-2",
    "rules": "gpt=gemini-x,o3=gemini-y",
    "host": "localhost",
    "google_callers": "never",
    "audit": "full",
    "log": "all",
    "log_format": "json",
    "capture": "errors",
    "isolation": "off",
    "api_keys": "AIza-1, AIza-2",
    "fallbacks": '{"gemini-x": ["gemini-y", "gemini-z"]}',
    "key": '{"day": {"requests": 100, "usd": 2.5}}',
    "session": '{"hour": {"tokens": 5}}',
    "prices": '{"gemini-x": {"input": 1, "output": 2}}',
    "servers": '{"files": {"command": ["files-server", "."], "env": {"TOKEN": "t"}}}',
    "profiles": '{"team": {"tools": ["python:mine"]}}',
}


@pytest.mark.parametrize("key", SETTINGS)
def test_every_setting_has_its_variable(key: str) -> None:
    setting = SETTINGS[key]
    text = SAMPLES.get(key.rpartition(".")[2], "1")
    result = loaded(None, {setting.env: text, "GOOGLE_CLOUD_PROJECT": "p"})
    value: Any = result.config
    for name in key.split("."):
        value = getattr(value, name)
    expected = {
        "server.keys": (f"{KEY}-1", f"{KEY}-2"),
        "server.admin_keys": (f"{KEY}-1", f"{KEY}-2"),
        "server.allowed_hosts": ("1",),
        "models.rules": {"gpt": "gemini-x", "o3": "gemini-y"},
        "upstream.api_keys": ("AIza-1", "AIza-2"),
        "models.fallbacks": {"gemini-x": ("gemini-y", "gemini-z")},
        "limits.key": {"day": QuotaConfig(requests=100, usd=2.5)},
        "limits.session": {"hour": QuotaConfig(tokens=5)},
        "limits.prices": {"gemini-x": PriceConfig(input=1, output=2)},
        "tools.allow": ("1",),
        "tools.ask": ("1",),
        "tools.command_env": ("1",),
        "tools.deny": ("1",),
        "mcp.servers": {"files": McpServer(command=("files-server", "."), env={"TOKEN": "t"})},
        "profiles": {"team": Profile(tools=("python:mine",))},
    }
    assert value == (expected[key] if key in expected else type(value)(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("1", True),
        ("YES", True),
        ("on", True),
        ("false", False),
        ("0", False),
        ("off", False),
    ],
)
def test_switches_take_the_usual_words(text: str, value: bool) -> None:
    assert loaded(None, {"DRAGOMAN_STRICT_TOOL_VALIDATION": text}).config.strict_tool_validation is value


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("[server]\nprot = 1", "my.toml: unknown key server.prot; did you mean server.port?"),
        ("port = 1", "my.toml: unknown key port; did you mean server.port?"),
        ("[servr]\nport = 1", "my.toml: unknown key servr; did you mean server?"),
        ("zzzzzz = 1", "my.toml: unknown key zzzzzz"),
        ("strict_tools_validation = true", "did you mean strict_tool_validation?"),
        ("server = 1", "my.toml: server is a section: write [server] and its keys below"),
        (
            "[server]\nport = '80'",
            "my.toml: server.port: must be a whole number of at least 0 and at most 65535, not '80'",
        ),
        ("[server]\nport = 70000", "at most 65535, not 70000"),
        ("[server]\nport = -1", "at least 0"),
        ("[server]\nport = true", "not True"),
        ("[server]\nping_s = 0", "my.toml: server.ping_s: must be a number above 0"),
        ("[server]\nping_s = nan", "must be a number"),
        ("[server]\nping_s = inf", "must be a number"),
        ("[server]\nkeys = 'abc'", "my.toml: server.keys: must be a list of texts"),
        ("[server]\nhost = ''", "must be a text that is not empty"),
        ("enable_tool_calling = 1", "enable_tool_calling: must be true or false, not 1"),
        ("[upstream]\nkind = 'openai'", "must be one of auto, emulator, gemini, vertex, not 'openai'"),
        ("[upstream]\napi_key = 5", "my.toml: upstream.api_key: must be a text"),
        ("[upstream]\nmax_attempts = 0", "must be a whole number of at least 1, not 0"),
        ("[models]\nrules = 'x'", "must be a table of names and models"),
        ("[models.rules]\n'' = 'gemini-x'", "must be a table of names and models"),
        ("[upstream]\nlocation = 'a b'", "'a b' is no Google Cloud location"),
        ("[upstream]\napi_version = '2'", "must look like v1beta, not '2'"),
        ("port", "my.toml: this is not TOML: "),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(file: str, words: str) -> None:
    assert words in refusal(file)


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (
            {"DRAGOMAN_PORT": "1"},
            "environment: unknown variable DRAGOMAN_PORT; did you mean DRAGOMAN_SERVER_PORT?",
        ),
        ({"DRAGOMAN_SERVER_PRT": "1"}, "did you mean DRAGOMAN_SERVER_PORT?"),
        ({"DRAGOMAN_GATEWAY_KEYS": "1"}, "did you mean DRAGOMAN_GATEWAY_KEY?"),
        ({"DRAGOMAN_SERVER_PORT": "http"}, "DRAGOMAN_SERVER_PORT: must be a whole number"),
        ({"DRAGOMAN_SERVER_NO_AUTH": "maybe"}, "DRAGOMAN_SERVER_NO_AUTH: must be true or false, not 'maybe'"),
        (
            {"GOOGLE_GENAI_USE_VERTEXAI": "maybe"},
            "GOOGLE_GENAI_USE_VERTEXAI: must be true or false, not 'maybe'",
        ),
        ({"GOOGLE_GENAI_USE_VERTEXAI": "1"}, "upstream.project: Vertex AI needs a project or an express key"),
    ],
)
def test_a_wrong_variable_is_refused(env: dict[str, str], words: str) -> None:
    assert words in refusal(None, env)


def test_variables_of_the_commands_are_no_settings() -> None:
    env = {"DRAGOMAN_CONFIG": "x", "DRAGOMAN_DEBUG": "1", "DRAGOMAN_CLAUDE": "x", "DRAGOMAN_GATEWAY_KEY": KEY}
    assert loaded(None, env).config == Config()


def test_home_is_a_setting() -> None:
    assert loaded(None, {"DRAGOMAN_HOME": "/x"}).config.home == "/x"


def test_unknown_flags_are_refused() -> None:
    assert "flags: unknown setting server.prt; did you mean server.port?" in refusal(server__prt=1)


def test_googles_own_variables_are_read() -> None:
    env = {"GOOGLE_API_KEY": " AIza-b\n", "GEMINI_BASE_URL": "https://gw.example.com/"}
    upstream = loaded(None, env).config.upstream
    assert (upstream.api_key, upstream.base_url) == ("AIza-b", "https://gw.example.com")


def test_m7_gemini_key_wins_over_google_key_and_says_so() -> None:
    result = loaded(None, {"GOOGLE_API_KEY": "AIza-b", "GEMINI_API_KEY": "AIza-a"})
    assert result.config.upstream.api_key == "AIza-a"
    assert "GEMINI_API_KEY is used" in result.notes[0]
    assert loaded(None, {"GOOGLE_API_KEY": "AIza-a", "GEMINI_API_KEY": "AIza-a"}).notes == ()


def test_our_own_variable_wins_over_googles() -> None:
    env = {"DRAGOMAN_UPSTREAM_API_KEY": "AIza-ours", "GEMINI_API_KEY": "AIza-a"}
    assert loaded(None, env).config.upstream.api_key == "AIza-ours"


@pytest.mark.parametrize(
    ("env", "backend"),
    [
        ({}, "emulator"),
        ({"GEMINI_API_KEY": "AIza-a"}, "gemini"),
        ({"GEMINI_BASE_URL": "http://localhost:1"}, "gemini"),
        ({"GOOGLE_CLOUD_PROJECT": "p"}, "vertex"),
        ({"GOOGLE_CLOUD_PROJECT": "p", "GEMINI_API_KEY": "AIza-a"}, "gemini"),
        (
            {"GOOGLE_CLOUD_PROJECT": "p", "GEMINI_API_KEY": "AIza-a", "GOOGLE_GENAI_USE_VERTEXAI": "true"},
            "vertex",
        ),
        ({"GOOGLE_API_KEY": "AQ.express", "GOOGLE_GENAI_USE_VERTEXAI": "True"}, "vertex"),
        ({"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_GENAI_USE_VERTEXAI": "false"}, "emulator"),
        ({"GEMINI_API_KEY": "AIza-a", "DRAGOMAN_UPSTREAM_KIND": "emulator"}, "emulator"),
    ],
)
def test_the_environment_decides_who_answers(env: dict[str, str], backend: str) -> None:
    assert loaded(None, env).config.backend == backend


def test_vertex_location_comes_from_the_environment() -> None:
    env = {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "europe-west4"}
    upstream = loaded(None, env).config.upstream
    assert (upstream.project, upstream.location) == ("p", "europe-west4")


def test_show_hides_secrets_and_names_origins() -> None:
    result = loaded(
        f"[server]\nkeys = ['{KEY}']\n[models.rules]\n'gpt-5' = 'gemini-x'", {"GEMINI_API_KEY": "AIza-a"}
    )
    text = show_config(result.config, result.sources)
    assert KEY not in text
    assert "AIza-a" not in text
    assert 'api_key = "********"  # env GEMINI_API_KEY' in text
    assert 'keys = ["********"]  # my.toml' in text


#: Settings that are called like secrets and are none.
OPEN = {"agent.max_tokens", "limits.key"}


def test_o5_every_setting_that_sounds_like_a_secret_is_one() -> None:
    telling = re.compile(r"key|token|secret|passw|credential|auth|\burl$", re.IGNORECASE)
    sounding = {key for key in SETTINGS if telling.search(key.rpartition(".")[2])}
    assert sounding - OPEN - {"server.no_auth", "upstream.base_url"} <= SECRETS
    assert SECRETS | SECRET_MEMBERS.keys() <= SETTINGS.keys()


@pytest.mark.parametrize("key", sorted(SECRETS))
def test_o5_no_secret_is_shown_nor_named_in_a_refusal(key: str) -> None:
    secret = "canary-of-32-characters-0123456"
    value = f"redis://:{secret}@db" if key == "store.url" else secret
    result = loaded(None, {SETTINGS[key].env: value})
    assert secret in repr(result.config)
    assert secret not in show_config(result.config, result.sources)
    section, _, name = key.rpartition(".")
    for wrong in (f'{{ a = "{secret}" }}', f'["{secret}", 1]', f'[["{secret}"]]'):
        assert secret not in refusal(f"[{section}]\n{name} = {wrong}")


def test_o5_what_is_handed_to_mcp_servers_is_not_shown() -> None:
    secret = "canary-of-32-characters-0123456"
    result = loaded(
        f"[mcp.servers.a]\ncommand = ['x']\nenv = {{ TOKEN = '{secret}' }}\n"
        f"[mcp.servers.b]\nurl = 'https://x'\nheaders = {{ Authorization = 'Bearer {secret}' }}"
    )
    text = show_config(result.config, result.sources)
    assert secret not in text
    assert "TOKEN" in text


def test_what_is_shown_loads_again() -> None:
    config = loaded("home = 'C:\\x \"y\"'\n[models.rules]\n'gpt-5' = 'gemini-x'\n[server]\nport = 1").config
    assert loaded(show_config(config)).config == config
    assert set(tomllib.loads(show_config(config))["server"]) == {
        key.partition(".")[2] for key in SETTINGS if key.startswith("server.")
    }


def test_a_gateway_for_others_says_which_names_it_needs() -> None:
    flags = {"server.host": "0.0.0.0", "server.keys": ("k" * 20,)}
    assert any(
        "allowed_hosts" in note for note in load(file_text=None, file_name="", env={}, flags=flags).notes
    )
    named = {**flags, "server.allowed_hosts": ("gateway.example",)}
    assert load(file_text=None, file_name="", env={}, flags=named).notes == ()
    assert load(file_text=None, file_name="", env={}, flags={}).notes == ()
