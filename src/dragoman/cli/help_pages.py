"""The help pages of the commands: options, examples, environment, files and exit codes."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

# Each variable and file is described once; the pages of the commands refer to them by name.
VARIABLES = {
    "DRAGOMAN_HOME": "the state folder (default: dragoman in your data folder)",
    "DRAGOMAN_CONFIG": "the settings file, instead of config.toml in the state folder",
    "DRAGOMAN_…": "every setting of docs/configuration.md, as in DRAGOMAN_SERVER_PORT=9000",
    "DRAGOMAN_GATEWAY_KEY": "the gateway key, instead of the one in gateway.key",
    "DRAGOMAN_DEBUG": "1: print tracebacks",
    "GEMINI_API_KEY": "the Google API key; without it the built-in emulator answers",
    "GEMINI_BASE_URL": "the base URL to use instead of Google's",
    "GOOGLE_CLOUD_PROJECT": "use Vertex AI with this project",
    "HTTPS_PROXY, NO_PROXY": "the proxy, and hosts that need none",
    "NO_COLOR": "any value: no colours",
    "SHELL": "the default shell",
}
FILES = {
    "config.toml": "settings (dragoman init writes one)",
    "gateway.key": "the key that clients send (mode 0600)",
    "state.db": "conversations, thought signatures, quota usage",
    "state-ledger.db": "records and totals of past requests, for dragoman usage and the dashboard",
    "sessions.db": "sessions of dragoman chat and run",
    "captures/": "captured requests, without secrets",
    "audit.jsonl": "the log of tool executions",
    "launcher.log": "output of gateways that a launcher started",
    "tools/": "your own tools, as Python files",
    "lent/": "the original settings of clients while a launcher overrides them",
    "mitm/": "the certificate authority of dragoman mitm",
}
_SETTINGS = ("DRAGOMAN_HOME", "DRAGOMAN_CONFIG", "DRAGOMAN_…")
_GOOGLE = ("GEMINI_API_KEY", "GEMINI_BASE_URL", "GOOGLE_CLOUD_PROJECT", "HTTPS_PROXY, NO_PROXY")
_USUAL_EXIT_CODES: Mapping[int, str] = MappingProxyType(
    {0: "done", 1: "the command failed", 2: "invalid usage or settings"}
)


class HelpPage(msgspec.Struct, frozen=True, kw_only=True):
    """The variables, files and exit codes of one command."""

    env: tuple[str, ...] = _SETTINGS
    files: tuple[str, ...] = ("config.toml",)
    codes: Mapping[int, str] = _USUAL_EXIT_CODES


_AGENT = ("config.toml", "sessions.db", "tools/", "audit.jsonl", "launcher.log")
HELP_PAGES = {
    "serve": HelpPage(
        env=(*_SETTINGS, "DRAGOMAN_GATEWAY_KEY", *_GOOGLE),
        files=("config.toml", "gateway.key", "state.db", "captures/"),
        codes={
            0: "stopped by a signal",
            1: "it failed while running",
            2: "invalid usage or settings, or the port is taken",
        },
    ),
    "chat": HelpPage(env=(*_SETTINGS, *_GOOGLE, "NO_COLOR"), files=_AGENT),
    "run": HelpPage(
        env=(*_SETTINGS, *_GOOGLE, "NO_COLOR"),
        files=_AGENT,
        codes={
            0: "done",
            1: "the model failed, refused or was cut off",
            2: "invalid usage or settings",
            3: "a limit was reached",
            4: "the model repeated the same calls",
            130: "interrupted",
        },
    ),
    "translate": HelpPage(),
    "tools": HelpPage(
        files=("config.toml", "tools/", "audit.jsonl"),
        codes={
            0: "done",
            1: "the command failed",
            2: "invalid usage or settings",
            3: "refused by the sandbox or a rule",
            4: "the tool failed",
        },
    ),
    "explain": HelpPage(env=(*_SETTINGS, "NO_COLOR"), files=("config.toml", "captures/")),
    "replay": HelpPage(
        env=(*_SETTINGS, *_GOOGLE, "NO_COLOR"),
        files=("config.toml", "captures/"),
        codes={
            0: "the requests to Google are the same",
            1: "the replay failed",
            2: "invalid usage or settings",
            3: "the requests to Google differ",
        },
    ),
    "capture": HelpPage(env=(*_SETTINGS, "NO_COLOR"), files=("config.toml", "captures/")),
    "config": HelpPage(env=(*_SETTINGS, *_GOOGLE)),
    "init": HelpPage(
        env=("DRAGOMAN_HOME", "DRAGOMAN_CONFIG"),
        codes={0: "written", 1: "the file exists already, or cannot be written", 2: "invalid usage"},
    ),
    "doctor": HelpPage(
        env=(*_SETTINGS, *_GOOGLE, "NO_COLOR"),
        files=("config.toml", "gateway.key", "state.db", "lent/"),
        codes={0: "all checks passed", 1: "a check failed", 2: "invalid usage"},
    ),
    "completion": HelpPage(
        env=("SHELL",),
        files=(),
        codes={0: "done", 1: "the command failed", 2: "invalid usage, or an unknown shell"},
    ),
    "usage": HelpPage(env=(*_SETTINGS, "NO_COLOR"), files=("config.toml", "state-ledger.db")),
    "emulator": HelpPage(
        env=("DRAGOMAN_DEBUG",),
        files=(),
        codes={
            0: "stopped by a signal",
            1: "the script was not followed",
            2: "invalid usage, or the port is taken",
        },
    ),
    "mitm": HelpPage(env=(*_SETTINGS, *_GOOGLE), files=("config.toml", "state.db", "tools/", "mitm/")),
    "audit": HelpPage(env=(*_SETTINGS, "NO_COLOR"), files=("config.toml", "audit.jsonl")),
}
#: The page of all launchers.
LAUNCHER_PAGE = HelpPage(
    env=(*_SETTINGS, "DRAGOMAN_GATEWAY_KEY", *_GOOGLE),
    files=("config.toml", "gateway.key", "state.db", "launcher.log"),
    codes={1: "the client could not be started", 2: "invalid settings"},
)


def new_parser(command: str, description: str, examples: str) -> argparse.ArgumentParser:
    """Return a parser with a complete help page: options, examples, environment, files and exit codes."""
    return argparse.ArgumentParser(
        prog=f"dragoman {command}",
        description=description,
        epilog=f"{examples.rstrip()}\n\n{help_sections(HELP_PAGES[command])}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def help_sections(page: HelpPage) -> str:
    """Return the sections of a page that come from these tables."""
    parts = [_section("environment:", {name: VARIABLES[name] for name in page.env})]
    if page.files:
        parts.append(_section("files, in the state folder:", {name: FILES[name] for name in page.files}))
    else:
        parts.append("files:\n  none")
    parts.append(_section("exit codes:", {str(code): meaning for code, meaning in page.codes.items()}))
    return "\n\n".join(parts)


def _section(title: str, rows: Mapping[str, str]) -> str:
    width = max(map(len, rows))
    return "\n".join([title, *(f"  {name:<{width}}  {meaning}" for name, meaning in rows.items())])
