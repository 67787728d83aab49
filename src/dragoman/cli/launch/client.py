"""The description of a client, and how it is started."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from dragoman.cli.launch.places import SettingsFile

#: The variable with the gateway key, for clients that read their key from a variable of any name.
KEY_VARIABLE = "DRAGOMAN_GATEWAY_KEY"

Env = Mapping[str, str]


class ClientModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that a client can offer; the default limits are Gemini's."""

    id: str
    context_window: int = 1_048_576
    max_output_tokens: int = 65_536


class GatewayEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway for one client run, and a temporary folder for its files."""

    base_url: str
    token: str
    models: tuple[ClientModel, ...]  # the first one is the default
    folder: Path

    @property
    def model(self) -> str:
        return self.models[0].id


class SettingsEdit(msgspec.Struct, frozen=True, kw_only=True):
    """Keys in a settings file or table of the client that are overridden while it runs."""

    file: SettingsFile
    values: Mapping[str, Any]
    #: Keep existing values.
    only_missing: bool = False
    #: The client's subcommand that creates the file if the client has never run.
    created_by: str = ""
    #: Messages: after a key was set, and if the file cannot be used but the client can start without it.
    applied_message: str = ""
    unusable_message: str = ""


class LaunchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How to start a client: environment, arguments before the user's, files and links in the folder.

    `edits` change the user's own files and are undone; only for clients that offer nothing better.
    """

    env: dict[str, str]
    args: list[str] = []
    files: dict[str, str] = {}
    links: dict[str, Path] = {}
    edits: tuple[SettingsEdit, ...] = ()


class LaunchableClient(msgspec.Struct, frozen=True, kw_only=True):
    """One client; `prepare` reads the user's environment, arguments and settings, and changes nothing."""

    title: str
    program: str
    prepare: Callable[[GatewayEndpoint, Env, list[str]], LaunchPlan]
    #: The subcommand of dragoman, if it is not the program's name.
    command: str = ""
    #: How to install it: an npm package, or instructions.
    package: str = ""
    install: str = ""
    #: Additional help text.
    about: str = ""
    #: Returns warnings about user settings that bypass the gateway.
    conflicts: Callable[[Env], list[str]] = lambda _env: []

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


def flag_value(argv: list[str], *flags: str) -> str:
    """Return the value of `--flag value` or `--flag=value`, or ""."""
    for arg, following in pairwise([*argv, ""]):
        flag, equals, value = arg.partition("=")
        if flag in flags:
            return value if equals else following
    return ""
