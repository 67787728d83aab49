"""How each client of `cli.launchers` is pointed at a gateway, in the least invasive way (docs/clients.md).

Variables and flags are preferred, then temporary files; the user's own files are the last resort: only Amazon Q and
Kiro need that (docs/amazon-q.md).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dragoman.cli.launch.client import (
    CONTEXT_TOKENS,
    KEY_VARIABLE,
    ClientModel,
    Env,
    GatewayEndpoint,
    LaunchPlan,
    SettingsEdit,
    child_env,
    claude_env,
    flag_value,
    settings_conflicts,
)
from dragoman.cli.launch.settings_files import AuthKvTable, JsonSettingsFile
from dragoman.cli.settings import data_folder, home_directory

# Settings with the endpoint of the service. The value must be an object: a string is silently ignored.
_Q_SERVICES = ("api.codewhisperer.service",)
_KIRO_SERVICES = ("api.krs.service", "api.cps.service", "api.codewhisperer.service")
_REGION = "us-east-1"
# Subcommands without a model: they run with the user's own settings and login.
_OWN_COMMANDS = frozenset(
    "-V -h --help --help-all --version dashboard debug diagnostic diagnostics doctor help init inline install "
    "integrations issue launch login logout mcp profile quit restart setting settings theme uninstall update user "
    "version whoami".split()
)
# A placeholder for the login. It is sent only to the gateway, which does not use it, and never expires.
_PLACEHOLDER_LOGIN = json.dumps(
    {
        "access_token": "placeholder-of-dragoman",
        "expires_at": "2999-01-01T00:00:00Z",
        "refresh_token": None,
        "region": _REGION,
        "start_url": "https://view.awsapps.com/start",
        "oauth_flow": "DeviceCode",
        "scopes": ["codewhisperer:completions", "codewhisperer:analysis", "codewhisperer:conversations"],
    }
)


def prepare_amazon_q(endpoint: GatewayEndpoint, env: Env, argv: list[str]) -> LaunchPlan:
    """Override the endpoint; add a placeholder token if the user is not logged in."""
    user_env = child_env(env, added={})
    if argv and argv[0] in _OWN_COMMANDS:
        return LaunchPlan(env=user_env)
    folder = data_folder(env) / "amazon-q"
    settings = str(folder / "settings.json")
    login = SettingsEdit(
        file=AuthKvTable(path=str(folder / "data.sqlite3")),
        values={"codewhisperer:odic:token": _PLACEHOLDER_LOGIN},
        only_missing=True,
        created_by="whoami",
        applied_message="you are not logged in to Amazon Q; this run uses a placeholder login",
        unusable_message="Amazon Q will ask you to log in; a free Builder ID is enough:"
        " only the login is sent to Amazon",
    )
    return LaunchPlan(
        env=user_env,
        edits=(
            SettingsEdit(
                file=JsonSettingsFile(path=settings, lock=settings),
                values=_service_endpoints(endpoint, _Q_SERVICES),
            ),
            login,
        ),
    )


def prepare_kiro(endpoint: GatewayEndpoint, env: Env, argv: list[str]) -> LaunchPlan:
    """Override the endpoints; set an API key, which replaces the login, and variables for the third engine."""
    if argv and argv[0] in _OWN_COMMANDS:
        return LaunchPlan(env=child_env(env, added={}))
    settings = Path(env.get("KIRO_HOME") or home_directory(env) / ".kiro") / "settings" / "cli.json"
    added = {
        "KIRO_API_KEY": f"ksk_{endpoint.token}",
        "KIRO_KAS_ENDPOINT": endpoint.base_url,
        "KIRO_KAS_CONTROL_PLANE_ENDPOINT": endpoint.base_url,
    }
    file = JsonSettingsFile(path=str(settings), lock=f"{settings}.lock")
    return LaunchPlan(
        env=child_env(env, added=added),
        edits=(SettingsEdit(file=file, values=_service_endpoints(endpoint, _KIRO_SERVICES)),),
    )


def _service_endpoints(endpoint: GatewayEndpoint, names: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Return the endpoint settings.

    The key is part of the URL, because the user's own login occupies the Authorization header.
    """
    # quoted twice: servers decode the path once before routing
    key = quote(quote(endpoint.token, safe=""), safe="")
    return {name: {"endpoint": f"{endpoint.base_url}/key/{key}", "region": _REGION} for name in names}


# Subcommands without a model, which do not accept the added arguments.
_PI_COMMANDS = frozenset({"config", "install", "list", "remove", "uninstall", "update"})
_QWEN_COMMANDS = frozenset(
    {"auth", "board", "channel", "extensions", "hooks", "mcp", "sandbox", "serve", "sessions", "update"}
)
# The variables that Qwen Code reads for each protocol: URL, key, and the path to add to the URL.
_QWEN_VARIABLES = {
    "gemini": ("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY", ""),
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_KEY", "/v1"),
    "openai-responses": ("OPENAI_BASE_URL", "OPENAI_API_KEY", "/v1"),
    "anthropic": ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", ""),
}
# Variables of Google's SDK that select another key, cloud or login.
GOOGLE_CONFLICTS = frozenset(
    {
        "GEMINI_CLI_USE_COMPUTE_ADC",
        "GEMINI_DEFAULT_AUTH_TYPE",
        "GOOGLE_API_KEY",
        "GOOGLE_GENAI_USE_ENTERPRISE",
        "GOOGLE_GENAI_USE_GCA",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GOOGLE_VERTEX_BASE_URL",
    }
)
COPILOT_CONFLICTS = frozenset(
    {
        "COPILOT_PROVIDER_API_KEY_COMMAND",
        "COPILOT_PROVIDER_AZURE_API_VERSION",
        "COPILOT_PROVIDER_BEARER_TOKEN",
        "COPILOT_PROVIDER_HEADERS",
        "COPILOT_PROVIDER_MODEL_ID",
        "COPILOT_PROVIDER_TRANSPORT",
        "COPILOT_PROVIDER_WIRE_MODEL",
    }
)


def prepare_claude(endpoint: GatewayEndpoint, env: Env, _argv: list[str]) -> LaunchPlan:
    return LaunchPlan(env=claude_env(env, base_url=endpoint.base_url, token=endpoint.token))


def claude_conflicts(env: Env) -> list[str]:
    """Warn about Claude Code's settings file, which overrides the environment."""
    file = Path(env.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / "settings.json"
    found = settings_conflicts(_read_json(file))
    return [f"{file} sets {', '.join(found)}, so Claude Code may bypass this gateway"] if found else []


def prepare_codex(endpoint: GatewayEndpoint, env: Env, _argv: list[str]) -> LaunchPlan:
    """Override settings with `-c` flags; sessions, rules and servers are kept. A later `-m` wins."""
    provider = (
        f'{{name="Dragoman",base_url={json.dumps(endpoint.base_url + "/v1")},'
        f'wire_api="responses",env_key="{KEY_VARIABLE}"}}'
    )
    settings = (
        'model_provider="dragoman"',
        f"model_providers.dragoman={provider}",
        f"model={json.dumps(endpoint.model)}",
        f"model_context_window={CONTEXT_TOKENS}",
    )
    args = [word for setting in settings for word in ("-c", setting)]
    return LaunchPlan(env=child_env(env, added={KEY_VARIABLE: endpoint.token}), args=args)


def prepare_opencode(endpoint: GatewayEndpoint, env: Env, _argv: list[str]) -> LaunchPlan:
    """Pass settings in a variable, which opencode merges over its files; the user's `--model` wins."""
    provider = {
        "npm": "@ai-sdk/google",
        "name": "Dragoman",
        "options": {"baseURL": f"{endpoint.base_url}/v1beta", "apiKey": f"{{env:{KEY_VARIABLE}}}"},
        "models": {model.id: _opencode_model(model) for model in endpoint.models},
    }
    ours = {
        "provider": {"dragoman": provider},
        "model": f"dragoman/{endpoint.model}",
        "small_model": f"dragoman/{endpoint.model}",
    }
    given = _parse_json(env.get("OPENCODE_CONFIG_CONTENT", ""))
    added = {"OPENCODE_CONFIG_CONTENT": json.dumps(_merge(given, ours)), KEY_VARIABLE: endpoint.token}
    return LaunchPlan(env=child_env(env, added=added))


def _opencode_model(model: ClientModel) -> dict[str, Any]:
    return {
        "name": model.id,
        "reasoning": True,
        "tool_call": True,
        "attachment": True,
        "limit": {"context": model.context_window, "output": model.max_output_tokens},
        "modalities": {"input": ["text", "image", "pdf"], "output": ["text"]},
    }


def prepare_gemini(endpoint: GatewayEndpoint, env: Env, _argv: list[str]) -> LaunchPlan:
    """Set variables; if the user's settings select a login, also use a temporary home that selects a key."""
    added = {"GOOGLE_GEMINI_BASE_URL": endpoint.base_url, "GEMINI_API_KEY": endpoint.token}
    home = _gemini_home(env)
    settings = _read_json(home / ".gemini" / "settings.json")
    login = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    if settings == _merge(settings, login):
        return LaunchPlan(env=child_env(env, without=GOOGLE_CONFLICTS, added=added))
    return LaunchPlan(
        env=child_env(env, without=GOOGLE_CONFLICTS, added=added | {"GEMINI_CLI_HOME": str(endpoint.folder)}),
        files={".gemini/settings.json": json.dumps(_merge(settings, login))},
        links=_gemini_links(home),
    )


def _gemini_links(home: Path) -> dict[str, Path]:
    """Link all other files of the user; session folders are linked even if they do not exist yet."""
    own = home / ".gemini"
    found = {entry.name for entry in own.iterdir()} if own.is_dir() else set()
    links = {f".gemini/{name}": own / name for name in (found | {"history", "tmp"}) - {"settings.json"}}
    agents = home / ".agents"
    return links | ({".agents": agents} if agents.is_dir() else {})


def gemini_conflicts(env: Env) -> list[str]:
    file = _gemini_home(env) / ".gemini" / "settings.json"
    unread = file.exists() and _read_json(file) is None
    return [f"{file} is not plain JSON, so this run ignores these settings"] if unread else []


def _gemini_home(env: Env) -> Path:
    return Path(env.get("GEMINI_CLI_HOME") or Path.home())


def prepare_qwen(endpoint: GatewayEndpoint, env: Env, argv: list[str]) -> LaunchPlan:
    """Add flags unless the user gave them: Qwen Code rejects duplicates.

    The Anthropic protocol is the default: its variables override Qwen Code's settings, and it carries thought
    signatures.
    """
    kind = flag_value(argv, "--auth-type")
    args = [] if kind else ["--auth-type", "anthropic"]
    if not flag_value(argv, "-m", "--model"):
        args += ["--model", endpoint.model]
    url, key, path = _QWEN_VARIABLES.get(kind or "anthropic", _QWEN_VARIABLES["anthropic"])
    added = {url: endpoint.base_url + path, key: endpoint.token}
    return LaunchPlan(
        env=child_env(env, without=GOOGLE_CONFLICTS, added=added),
        args=[] if argv and argv[0] in _QWEN_COMMANDS else args,
    )


def prepare_pi(endpoint: GatewayEndpoint, env: Env, argv: list[str]) -> LaunchPlan:
    """Load a temporary extension that registers the gateway as a provider; a later `--model` wins."""
    name = "dragoman.js"
    provider = {
        "name": "Dragoman",
        "baseUrl": f"{endpoint.base_url}/v1beta",
        "api": "google-generative-ai",
        "apiKey": KEY_VARIABLE,
        "models": [_pi_model(model) for model in endpoint.models],
    }
    extension = f'export default (pi) => pi.registerProvider("dragoman", {json.dumps(provider)});\n'
    args = ["--extension", str(endpoint.folder / name)]
    if not flag_value(argv, "--provider"):
        args += ["--provider", "dragoman", "--model", endpoint.model]
    return LaunchPlan(
        env=child_env(env, added={KEY_VARIABLE: endpoint.token}),
        args=[] if argv and argv[0] in _PI_COMMANDS else args,
        files={name: extension},
    )


def _pi_model(model: ClientModel) -> dict[str, Any]:
    return {
        "id": model.id,
        "name": model.id,
        "reasoning": True,
        "input": ["text", "image"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        "contextWindow": model.context_window,
        "maxTokens": model.max_output_tokens,
    }


def prepare_copilot(endpoint: GatewayEndpoint, env: Env, _argv: list[str]) -> LaunchPlan:
    """Set variables only; the user's `--model` or COPILOT_MODEL wins."""
    default = endpoint.models[0]
    return LaunchPlan(
        env=child_env(
            env,
            without=COPILOT_CONFLICTS,
            defaults={
                "COPILOT_MODEL": default.id,
                "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": str(default.context_window),
                "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": str(default.max_output_tokens),
            },
            added={
                "COPILOT_PROVIDER_BASE_URL": f"{endpoint.base_url}/v1",
                "COPILOT_PROVIDER_TYPE": "openai",
                "COPILOT_PROVIDER_WIRE_API": "completions",
                "COPILOT_PROVIDER_API_KEY": endpoint.token,
            },
        )
    )


def _merge(below: object, above: dict[str, Any]) -> dict[str, Any]:
    """Merge `above` into `below` recursively."""
    if not isinstance(below, dict):
        return above
    merged = dict(below)
    for key, value in above.items():
        merged[key] = _merge(below.get(key), value) if isinstance(value, dict) else value
    return merged


def _read_json(file: Path) -> object:
    try:
        return _parse_json(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def _parse_json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
