"""What a launcher has to know about a client, and what it starts it with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import msgspec

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


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """One start: the whole environment, arguments in front of the user's, the folder's files and links."""

    env: dict[str, str]
    args: list[str] = []
    files: dict[str, str] = {}
    links: dict[str, Path] = {}


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table; `prepare` only looks: at the user's environment, arguments and settings."""

    title: str
    program: str
    package: str
    prepare: Callable[[Link, Env, list[str]], Setup]
    #: What in the user's own files leads past the gateway whatever we set.
    conflicts: Callable[[Env], list[str]] = lambda _env: []

    @property
    def variable(self) -> str:
        """Names another program than the one on the path."""
        return f"DRAGOMAN_{self.program.upper()}"


def flag_value(argv: list[str], *flags: str) -> str:
    """What the user gave as `--flag value` or `--flag=value`, or nothing."""
    for arg, following in pairwise([*argv, ""]):
        flag, equals, value = arg.partition("=")
        if flag in flags:
            return value if equals else following
    return ""
