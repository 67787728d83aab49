"""What a launcher has to know about a client, and what it starts it with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from dragoman.cli.launch.places import Place

#: The variable that carries the gateway key to clients which can be told its name.
KEY_VARIABLE = "DRAGOMAN_GATEWAY_KEY"

Env = Mapping[str, str]


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model a client can offer its user; the limits are Gemini's unless the gateway says otherwise."""

    id: str
    context_window: int = 1_048_576
    max_output_tokens: int = 65_536


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway as a client meets it, and a folder that lives no longer than the client."""

    base_url: str
    token: str
    models: tuple[Model, ...]  # the first one is the default
    folder: Path

    @property
    def model(self) -> str:
        return self.models[0].id


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of a place of the client's own that hold a value of ours for as long as the client runs."""

    place: Place
    values: Mapping[str, Any]
    #: Leave alone what is there.
    only_missing: bool = False
    #: The command of the client that makes the place where it has never run.
    made_by: str = ""
    #: Told when a key was set, and when the place cannot be used although the start may go on without.
    when_put: str = ""
    otherwise: str = ""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """One start: the whole environment, arguments in front of the user's, the folder's files and links.

    `edits` touch the user's own files, and are undone: the last resort for a client that offers nothing better.
    """

    env: dict[str, str]
    args: list[str] = []
    files: dict[str, str] = {}
    links: dict[str, Path] = {}
    edits: tuple[Edit, ...] = ()


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table; `prepare` only looks: at the user's environment, arguments and settings."""

    title: str
    program: str
    prepare: Callable[[Link, Env, list[str]], Setup]
    #: The command of ours, where it is not the program's name.
    command: str = ""
    #: How to get it: a package of npm's, or in words.
    package: str = ""
    install: str = ""
    #: What its user should know that the others' need not.
    about: str = ""
    #: What in the user's own files leads past the gateway whatever we set.
    conflicts: Callable[[Env], list[str]] = lambda _env: []

    @property
    def name(self) -> str:
        return self.command or self.program

    @property
    def variable(self) -> str:
        """Names another program than the one on the path."""
        return f"DRAGOMAN_{self.name.upper()}"

    @property
    def source(self) -> str:
        return self.install or f"npm install -g {self.package}"


def flag_value(argv: list[str], *flags: str) -> str:
    """What the user gave as `--flag value` or `--flag=value`, or nothing."""
    for arg, following in pairwise([*argv, ""]):
        flag, equals, value = arg.partition("=")
        if flag in flags:
            return value if equals else following
    return ""
