"""Settings for the commands: which file, which environment, which gateway key."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

import msgspec

from dragoman.cli.home import KEY_FILE, load_gateway_key, make_state_folder, state_folder
from dragoman.cli.screen import print_note
from dragoman.config import Config, LoadedConfig, load
from dragoman.errors import ConfigError

CONFIG_FILE = "config.toml"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The loaded settings, their file if there is one, and the state folder."""

    loaded: LoadedConfig
    file: Path | None
    home: Path

    @property
    def config(self) -> Config:
        return self.loaded.config


class ClientKey(msgspec.Struct, frozen=True, kw_only=True):
    """The key for clients on this machine, and a shell expression for it that does not reveal it."""

    secret: str
    expression: str


def add_config_flag(parser: argparse.ArgumentParser) -> None:
    """Add the `--config` flag, which all commands that read settings share."""
    parser.add_argument(
        "--config", metavar="FILE", help="settings file (default: DRAGOMAN_CONFIG, then HOME/config.toml)"
    )


def read_settings(path: str | None = None, flags: Mapping[str, object] | None = None) -> Settings:
    """Load the settings from a flag's file, DRAGOMAN_CONFIG or the state folder, never from the project."""
    env = os.environ
    file = _find_file(path or env.get("DRAGOMAN_CONFIG", ""), state_folder(env))
    text = _read_settings_file(file) if file else None
    loaded = load(file_text=text, file_name=str(file or ""), env=env, flags=flags or {})
    home = state_folder(env, configured=loaded.config.home)
    config = msgspec.structs.replace(loaded.config, home=str(home))
    return Settings(loaded=msgspec.structs.replace(loaded, config=config), file=file, home=home)


def print_setting_notes(settings: Settings) -> None:
    for note in settings.loaded.notes:
        print_note(note)


def find_client_key(settings: Settings) -> ClientKey | None:
    """Return the key for clients on this machine, created if necessary; None if authentication is off."""
    server = settings.config.server
    given = os.environ.get("DRAGOMAN_GATEWAY_KEY", "").strip()
    if server.no_auth:
        return None
    if given:
        return ClientKey(secret=given, expression="$DRAGOMAN_GATEWAY_KEY")
    keys = server.keys or server.admin_keys
    if keys:
        setting = "server.keys" if server.keys else "server.admin_keys"
        return ClientKey(secret=keys[0], expression=f"one of your {setting}")
    secret, notes = load_gateway_key(make_state_folder(settings.home))
    for note in notes:
        print_note(note)
    return ClientKey(secret=secret, expression=f"$(cat {shlex.quote(str(settings.home / KEY_FILE))})")


def _find_file(given: str, home: Path) -> Path | None:
    """Return the settings file.

    Never the working directory: a hostile project could redirect the API key (pain Q12).
    """
    if given:
        return Path(given).expanduser()
    file = home / CONFIG_FILE
    return file if file.is_file() else None


def _read_settings_file(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError("this is not a UTF-8 text", where=str(file)) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(file)) from None
