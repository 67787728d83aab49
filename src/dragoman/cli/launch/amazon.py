"""Amazon Q and Kiro, which only their settings can point to a gateway (docs/amazon-q.md)."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

from dragoman.cli.client_env import child_env
from dragoman.cli.home import data_folder, home_directory
from dragoman.cli.launch.client import Env, GatewayEndpoint, LaunchableClient, LaunchPlan, SettingsEdit
from dragoman.cli.launch.places import AuthKvTable, JsonSettingsFile

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


def _q(link: GatewayEndpoint, env: Env, argv: list[str]) -> LaunchPlan:
    """Override the endpoint; add a placeholder token if the user is not logged in."""
    own = child_env(env, added={})
    if argv and argv[0] in _OWN_COMMANDS:
        return LaunchPlan(env=own)
    folder = data_folder(env) / "amazon-q"
    settings = str(folder / "settings.json")
    login = SettingsEdit(
        file=AuthKvTable(path=str(folder / "data.sqlite3")),
        values={"codewhisperer:odic:token": _PLACEHOLDER_LOGIN},
        only_missing=True,
        created_by="whoami",
        applied_message="you are not logged in to Amazon Q, and need not be: a placeholder stands in for this run",
        unusable_message="Amazon Q will ask you to log in: a free Builder ID will do,"
        " nothing is sent to Amazon but the login",
    )
    return LaunchPlan(
        env=own,
        edits=(
            SettingsEdit(
                file=JsonSettingsFile(path=settings, lock=settings),
                values=_service_endpoints(link, _Q_SERVICES),
            ),
            login,
        ),
    )


def _kiro(link: GatewayEndpoint, env: Env, argv: list[str]) -> LaunchPlan:
    """Override the endpoints; set an API key, which replaces the login, and variables for the third engine."""
    if argv and argv[0] in _OWN_COMMANDS:
        return LaunchPlan(env=child_env(env, added={}))
    settings = Path(env.get("KIRO_HOME") or home_directory(env) / ".kiro") / "settings" / "cli.json"
    added = {
        "KIRO_API_KEY": f"ksk_{link.token}",
        "KIRO_KAS_ENDPOINT": link.base_url,
        "KIRO_KAS_CONTROL_PLANE_ENDPOINT": link.base_url,
    }
    place = JsonSettingsFile(path=str(settings), lock=f"{settings}.lock")
    return LaunchPlan(
        env=child_env(env, added=added),
        edits=(SettingsEdit(file=place, values=_service_endpoints(link, _KIRO_SERVICES)),),
    )


def _service_endpoints(link: GatewayEndpoint, names: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Return the endpoint settings.

    The key is part of the URL, because the user's own login occupies the Authorization header.
    """
    # quoted twice: servers decode the path once before routing
    key = quote(quote(link.token, safe=""), safe="")
    return {name: {"endpoint": f"{link.base_url}/key/{key}", "region": _REGION} for name in names}


_RESTORED_NOTE = """\
what they were, also after a crash: the next start of any launcher puts them back.
A login of yours is used and stays as it is; without one {instead}.
More: docs/amazon-q.md"""

AMAZON_Q = LaunchableClient(
    title="Amazon Q Developer CLI",
    program="q",
    install="see https://docs.aws.amazon.com/amazonq/latest/qdeveloper-ug/command-line-installing.html",
    about="Only its settings can lead it to a gateway. While it runs, api.codewhisperer.service in\n"
    "amazon-q/settings.json of your data folder leads here; afterwards your settings are\n"
    + _RESTORED_NOTE.format(instead="a placeholder stands in while it runs"),
    prepare=_q,
)
KIRO = LaunchableClient(
    title="Kiro CLI",
    program="kiro-cli",
    command="kiro",
    install="see https://kiro.dev/cli",
    about="Only its settings can lead it to a gateway. While it runs, api.krs.service, api.cps.service and\n"
    "api.codewhisperer.service in ~/.kiro/settings/cli.json lead here; afterwards your settings are\n"
    + _RESTORED_NOTE.format(instead="KIRO_API_KEY is set for it"),
    prepare=_kiro,
)
