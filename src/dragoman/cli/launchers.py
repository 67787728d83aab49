"""The clients that `dragoman` can launch: one row each. Help, completion, banner, launcher and doctor read this table.

It is separate from `cli.launch`, and uses the standard library only, because `dragoman --help` imports it. A row names
functions of `cli.launch.clients`, which are imported when a client is launched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from dragoman.cli.launch.client import GatewayEndpoint, LaunchPlan


class LaunchableClient(NamedTuple):
    """One client: how it is called, installed, pointed at the gateway, and tried by `dragoman doctor`."""

    title: str
    program: str
    #: A function of `cli.launch.clients` with the arguments of `prepare`.
    prepare_function: str
    #: Arguments that ask one question (`{}`) without a terminal, and variables that keep the client off the network.
    probe_args: tuple[str, ...]
    probe_env: Mapping[str, str] = {}
    #: The subcommand of dragoman, if it is not the program's name.
    command: str = ""
    #: How to install it: an npm package, or instructions.
    package: str = ""
    install: str = ""
    #: Additional help text.
    about: str = ""
    #: The version that the test suite runs; Amazon Q and Kiro are not available there.
    tested_version: str = ""
    #: A function of `cli.launch.clients` that returns warnings about user settings that bypass the gateway.
    conflicts_function: str = ""

    @property
    def name(self) -> str:
        return self.command or self.program

    @property
    def variable(self) -> str:
        """Return the variable with the path of the program, which overrides PATH."""
        return f"DRAGOMAN_{self.name.upper()}"

    @property
    def source(self) -> str:
        return self.install or f"npm install -g {self.package}"

    def prepare(self, endpoint: GatewayEndpoint, env: Mapping[str, str], argv: list[str]) -> LaunchPlan:
        """Plan a run from the user's environment, arguments and settings; change nothing."""
        plan: LaunchPlan = _function(self.prepare_function)(endpoint, env, argv)
        return plan

    def conflicts(self, env: Mapping[str, str]) -> list[str]:
        """Return warnings about user settings that bypass the gateway."""
        return list(_function(self.conflicts_function)(env)) if self.conflicts_function else []


def _function(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(import_module("dragoman.cli.launch.prepare"), name)
    return function


_RESTORED_NOTE = """\
restored; after a crash, the next start of any launcher restores them.
Your login is used and not changed; without one, {instead}.
More: docs/amazon-q.md"""

_ROWS = (
    LaunchableClient(
        title="Claude Code",
        program="claude",
        package="@anthropic-ai/claude-code",
        tested_version="2.1.325",
        prepare_function="prepare_claude",
        conflicts_function="claude_conflicts",
        probe_args=("-p", "{}"),
        probe_env={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"},
    ),
    LaunchableClient(
        title="Codex",
        program="codex",
        package="@openai/codex",
        tested_version="0.166.0",
        prepare_function="prepare_codex",
        probe_args=("exec", "--skip-git-repo-check", "{}"),
    ),
    LaunchableClient(
        title="Gemini CLI",
        program="gemini",
        package="@google/gemini-cli",
        tested_version="0.61.0",
        prepare_function="prepare_gemini",
        conflicts_function="gemini_conflicts",
        probe_args=("--skip-trust", "-p", "{}"),
    ),
    LaunchableClient(
        title="opencode",
        program="opencode",
        package="opencode-ai",
        tested_version="1.18.33",
        prepare_function="prepare_opencode",
        probe_args=("run", "{}"),
        probe_env={"OPENCODE_DISABLE_AUTOUPDATE": "1"},
    ),
    LaunchableClient(
        title="Qwen Code",
        program="qwen",
        package="@qwen-code/qwen-code",
        tested_version="0.24.4",
        prepare_function="prepare_qwen",
        probe_args=("-p", "{}"),
    ),
    LaunchableClient(
        title="pi",
        program="pi",
        package="@mariozechner/pi-coding-agent",
        tested_version="0.73.1",
        prepare_function="prepare_pi",
        probe_args=("-p", "{}"),
        probe_env={"PI_OFFLINE": "1"},
    ),
    LaunchableClient(
        title="GitHub Copilot CLI",
        program="copilot",
        package="@github/copilot",
        tested_version="1.0.102",
        prepare_function="prepare_copilot",
        probe_args=("--silent", "-p", "{}"),
        probe_env={"COPILOT_OFFLINE": "true"},
    ),
    LaunchableClient(
        title="Amazon Q Developer CLI",
        program="q",
        install="see https://docs.aws.amazon.com/amazonq/latest/qdeveloper-ug/command-line-installing.html",
        about="Only its settings can point it to a gateway. While it runs, api.codewhisperer.service in\n"
        "amazon-q/settings.json of your data folder points here; afterwards your settings are\n"
        + _RESTORED_NOTE.format(instead="a placeholder login is used"),
        prepare_function="prepare_amazon_q",
        probe_args=("chat", "--no-interactive", "{}"),
    ),
    LaunchableClient(
        title="Kiro CLI",
        program="kiro-cli",
        command="kiro",
        install="see https://kiro.dev/cli",
        about="Only its settings can point it to a gateway. While it runs, api.krs.service, api.cps.service and\n"
        "api.codewhisperer.service in ~/.kiro/settings/cli.json point here; afterwards your settings are\n"
        + _RESTORED_NOTE.format(instead="KIRO_API_KEY is set for it"),
        prepare_function="prepare_kiro",
        probe_args=("chat", "--no-interactive", "{}"),
    ),
)
#: The clients by the name of their subcommand.
CLIENTS = {client.name: client for client in _ROWS}
