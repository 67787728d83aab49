"""What each client is started with: pointed at the gateway, the user's choices kept, nothing led elsewhere."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from dragoman.cli.launch.client import ClientModel, GatewayEndpoint, LaunchPlan, flag_value
from dragoman.cli.launch.settings_files import AuthKvTable, JsonSettingsFile
from dragoman.cli.launchers import CLIENTS
from dragoman.cli.main import COMMANDS
from dragoman.gateway.asgi import path_and_query

BASE = "http://127.0.0.1:1"
TOKEN = "dgm-secret"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def setup(name: str, *argv: str, **env: str) -> LaunchPlan:
    models = (
        ClientModel(id="gemini-default"),
        ClientModel(id="gemini-other", context_window=7, max_output_tokens=3),
    )
    link = GatewayEndpoint(base_url=BASE, token=TOKEN, models=models, folder=Path("/throw-away"))
    return CLIENTS[name].prepare(link, {"PATH": "/bin", **env}, list(argv))


def test_every_client_is_a_command() -> None:
    launched = {name for name, (module, _) in COMMANDS.items() if module == "dragoman.cli.launch"}
    assert launched == CLIENTS.keys()


@pytest.mark.parametrize("name", CLIENTS)
def test_the_rest_of_the_environment_stays_and_the_key_is_nowhere_else(name: str) -> None:
    made = setup(name, EDITOR="vi", NO_PROXY="corp")
    assert (made.env["PATH"], made.env["EDITOR"]) == ("/bin", "vi")
    assert made.env["NO_PROXY"] == "corp,127.0.0.1,localhost"
    assert TOKEN in str(made.env.values()) + str(made.edits)
    assert TOKEN not in str(made.args) + str(made.files)


@pytest.mark.parametrize(
    ("argv", "value"),
    [
        (["--model", "x"], "x"),
        (["-p", "hi", "-m=y"], "y"),
        (["-m"], ""),
        (["--model-x", "z", "model"], ""),
    ],
)
def test_flags_of_the_user_are_found(argv: list[str], value: str) -> None:
    assert flag_value(argv, "-m", "--model") == value


def codex_settings(made: LaunchPlan) -> dict[str, Any]:
    assert made.args[::2] == ["-c"] * (len(made.args) // 2)
    return tomllib.loads("\n".join(made.args[1::2]))


def test_codex_is_told_on_the_command_line() -> None:
    made = setup("codex", "exec", "hi", CODEX_HOME="/mine")
    settings = codex_settings(made)
    assert settings["model_provider"] == "dragoman"
    assert settings["model"] == "gemini-default"
    assert settings["model_context_window"] == 1_000_000
    provider = settings["model_providers"]["dragoman"]
    assert (provider["base_url"], provider["wire_api"]) == (f"{BASE}/v1", "responses")
    assert made.env[provider["env_key"]] == TOKEN
    assert made.env["CODEX_HOME"] == "/mine"
    assert not made.files


def test_opencode_is_told_in_a_variable_laid_over_the_users() -> None:
    given = json.dumps({"theme": "dark", "model": "else/x", "provider": {"mine": {"name": "Mine"}}})
    made = setup("opencode", OPENCODE_CONFIG_CONTENT=given)
    config = json.loads(made.env["OPENCODE_CONFIG_CONTENT"])
    assert (config["theme"], config["model"]) == ("dark", "dragoman/gemini-default")
    assert set(config["provider"]) == {"mine", "dragoman"}
    provider = config["provider"]["dragoman"]
    assert provider["options"] == {"baseURL": f"{BASE}/v1beta", "apiKey": "{env:DRAGOMAN_GATEWAY_KEY}"}
    assert provider["models"]["gemini-other"]["limit"] == {"context": 7, "output": 3}
    broken = json.loads(setup("opencode", OPENCODE_CONFIG_CONTENT="{").env["OPENCODE_CONFIG_CONTENT"])
    assert broken["model"] == "dragoman/gemini-default"


def test_gemini_needs_only_variables_where_a_key_is_chosen_already(home: Path) -> None:
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(
        json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}})
    )
    made = setup("gemini", GOOGLE_GENAI_USE_VERTEXAI="true", GOOGLE_API_KEY="AIza", GEMINI_API_KEY="AIza")
    assert (made.env["GOOGLE_GEMINI_BASE_URL"], made.env["GEMINI_API_KEY"]) == (BASE, TOKEN)
    assert not {"GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_API_KEY", "GEMINI_CLI_HOME"} & set(made.env)
    assert (made.files, made.links) == ({}, {})


def test_gemini_gets_another_home_where_the_user_logs_in(home: Path) -> None:
    own = home / ".gemini"
    own.mkdir()
    (home / ".agents").mkdir()
    (own / "GEMINI.md").write_text("be kind")
    chosen = {"security": {"auth": {"selectedType": "oauth-personal"}, "folderTrust": True}, "ui": {"x": 1}}
    (own / "settings.json").write_text(json.dumps(chosen))
    made = setup("gemini")
    assert made.env["GEMINI_CLI_HOME"] == "/throw-away"
    assert json.loads(made.files[".gemini/settings.json"]) == {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": True},
        "ui": {"x": 1},
    }
    assert made.links == {
        ".gemini/GEMINI.md": own / "GEMINI.md",
        ".gemini/history": own / "history",
        ".gemini/tmp": own / "tmp",
        ".agents": home / ".agents",
    }


def test_gemini_settings_that_cannot_be_read_are_told(home: Path) -> None:
    assert CLIENTS["gemini"].conflicts({}) == []
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text('{"a": 1} // a remark')
    (told,) = CLIENTS["gemini"].conflicts({})
    assert "not plain JSON" in told
    assert json.loads(setup("gemini").files[".gemini/settings.json"])["security"]


@pytest.mark.parametrize(
    ("argv", "args"),
    [
        (["-p", "hi"], ["--auth-type", "anthropic", "--model", "gemini-default"]),
        (["--model", "gemini-x"], ["--auth-type", "anthropic"]),
        (["--auth-type=openai", "-m", "gemini-x"], []),
        (["mcp", "list"], []),
    ],
)
def test_qwen_takes_no_flag_twice(argv: list[str], args: list[str]) -> None:
    assert setup("qwen", *argv).args == args


@pytest.mark.parametrize(
    ("kind", "variable", "url"),
    [
        ("anthropic", "ANTHROPIC", BASE),
        ("openai", "OPENAI", f"{BASE}/v1"),
        ("openai-responses", "OPENAI", f"{BASE}/v1"),
    ],
)
def test_qwen_is_pointed_here_on_the_protocol_the_user_chose(kind: str, variable: str, url: str) -> None:
    env = setup("qwen", "--auth-type", kind, OPENAI_BASE_URL="https://else").env
    assert (env[f"{variable}_BASE_URL"], env[f"{variable}_API_KEY"]) == (url, TOKEN)
    assert setup("qwen", "--auth-type", "gemini").env["GOOGLE_GEMINI_BASE_URL"] == BASE


def test_pi_gets_an_extension_for_this_run() -> None:
    made = setup("pi", "-p", "hi", ANTHROPIC_API_KEY="sk-mine")
    assert made.args == [
        *("--extension", "/throw-away/dragoman.js", "--provider", "dragoman"),
        *("--model", "gemini-default"),
    ]
    extension = made.files["dragoman.js"]
    provider = json.loads(extension[extension.index("{") : extension.rindex("}") + 1])
    assert provider["baseUrl"] == f"{BASE}/v1beta"
    assert made.env[provider["apiKey"]] == TOKEN
    assert [model["contextWindow"] for model in provider["models"]] == [1_048_576, 7]
    assert made.env["ANTHROPIC_API_KEY"] == "sk-mine"


def test_pi_keeps_its_own_commands_and_a_provider_of_the_users() -> None:
    assert setup("pi", "install", "npm:x").args == []
    assert setup("pi", "--provider", "openai").args == ["--extension", "/throw-away/dragoman.js"]


def test_copilot_is_told_in_variables() -> None:
    env = setup("copilot", COPILOT_PROVIDER_BEARER_TOKEN="x", COPILOT_PROVIDER_TRANSPORT="websockets").env
    assert env["COPILOT_PROVIDER_BASE_URL"] == f"{BASE}/v1"
    assert env["COPILOT_PROVIDER_API_KEY"] == TOKEN
    assert env["COPILOT_MODEL"] == "gemini-default"
    assert env["COPILOT_PROVIDER_MAX_PROMPT_TOKENS"] == "1048576"
    assert not {"COPILOT_PROVIDER_BEARER_TOKEN", "COPILOT_PROVIDER_TRANSPORT", "COPILOT_OFFLINE"} & set(env)
    assert setup("copilot", COPILOT_MODEL="gemini-x").env["COPILOT_MODEL"] == "gemini-x"


def settings_edit(made: LaunchPlan) -> tuple[JsonSettingsFile, dict[str, Any]]:
    edit = made.edits[0]
    assert isinstance(edit.file, JsonSettingsFile)
    assert not edit.only_missing
    return edit.file, dict(edit.values)


SERVICE = {"endpoint": f"{BASE}/key/{TOKEN}", "region": "us-east-1"}


def test_q_is_told_in_its_settings_for_as_long_as_it_runs(home: Path) -> None:
    made = setup("q", "chat", XDG_DATA_HOME="/data")
    place, values = settings_edit(made)
    assert values == {"api.codewhisperer.service": SERVICE}
    assert (place.path, place.lock) == ("/data/amazon-q/settings.json", "/data/amazon-q/settings.json")
    assert settings_edit(setup("q", HOME=str(home)))[0].path == f"{home}/.local/share/amazon-q/settings.json"
    assert TOKEN not in str(made.env)


def test_q_gets_a_placeholder_without_a_secret_where_nobody_is_logged_in() -> None:
    login = setup("q", XDG_DATA_HOME="/data").edits[1]
    assert login.only_missing
    assert login.file == AuthKvTable(path="/data/amazon-q/data.sqlite3")
    token = json.loads(login.values["codewhisperer:odic:token"])
    assert token["expires_at"] > "2900"
    assert (token["refresh_token"], token["oauth_flow"]) == (None, "DeviceCode")
    assert TOKEN not in str(login.values)


def test_kiro_is_told_in_its_settings_and_gets_a_key_of_its_kind(home: Path) -> None:
    made = setup("kiro", KIRO_API_KEY="ksk_mine", KIRO_KAS_ENDPOINT="https://else")
    place, values = settings_edit(made)
    assert values == {
        "api.krs.service": SERVICE,
        "api.cps.service": SERVICE,
        "api.codewhisperer.service": SERVICE,
    }
    assert place.path == f"{home}/.kiro/settings/cli.json"
    assert place.lock == f"{home}/.kiro/settings/cli.json.lock"
    assert settings_edit(setup("kiro", KIRO_HOME="/kiro"))[0].path == "/kiro/settings/cli.json"
    assert made.env["KIRO_API_KEY"] == f"ksk_{TOKEN}"
    assert (made.env["KIRO_KAS_ENDPOINT"], made.env["KIRO_KAS_CONTROL_PLANE_ENDPOINT"]) == (BASE, BASE)
    assert len(made.edits) == 1


@pytest.mark.parametrize("name", ["q", "kiro"])
@pytest.mark.parametrize("command", ["login", "logout", "settings", "whoami", "--version", "mcp"])
def test_amazons_commands_without_a_model_are_left_alone(name: str, command: str) -> None:
    made = setup(name, command, "x")
    assert (made.edits, made.args) == ((), [])
    assert TOKEN not in str(made.env)


def test_a_key_with_a_slash_survives_the_address() -> None:
    link = GatewayEndpoint(base_url=BASE, token="a/b+c=%", models=(ClientModel(id="m"),), folder=Path("/x"))
    made = CLIENTS["q"].prepare(link, {}, [])
    endpoint = made.edits[0].values["api.codewhisperer.service"]["endpoint"]
    path, query = path_and_query({"path": unquote(urlsplit(endpoint).path) + "/", "query_string": b""})
    assert (path, query) == ("/", {"key": "a/b+c=%"})


def test_claude_is_told_of_its_own_settings_that_win(home: Path) -> None:
    assert CLIENTS["claude"].conflicts({}) == []
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text(json.dumps({"env": {"ANTHROPIC_BASE_URL": "x"}}))
    (told,) = CLIENTS["claude"].conflicts({})
    assert "env.ANTHROPIC_BASE_URL" in told
    assert CLIENTS["claude"].conflicts({"CLAUDE_CONFIG_DIR": "/nowhere"}) == []
