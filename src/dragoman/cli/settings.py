"""Settings for the commands: which file, which environment, which state folder, which gateway key."""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from dragoman.cli.terminal import print_note
from dragoman.config import Config, LoadedConfig, check_gateway_key, load
from dragoman.errors import ConfigError

KEY_FILE = "gateway.key"
_KEY_PREFIX = "dgm-"


def state_folder(env: Mapping[str, str], *, platform: str = sys.platform, configured: str = "") -> Path:
    """Return DRAGOMAN_HOME, or the default folder of this platform."""
    given = configured or env.get("DRAGOMAN_HOME", "").strip()
    if given:
        return Path(given).expanduser().absolute()
    return data_folder(env, platform=platform) / "dragoman"


def data_folder(env: Mapping[str, str], *, platform: str = sys.platform) -> Path:
    """Return the platform's folder for application data."""
    user = home_directory(env)
    if platform == "win32":
        return Path(env.get("LOCALAPPDATA") or user / "AppData" / "Local")
    if platform == "darwin":
        return user / "Library" / "Application Support"
    xdg = Path(env.get("XDG_DATA_HOME") or "")  # the XDG specification says to ignore relative paths
    return xdg if xdg.is_absolute() else user / ".local" / "share"


def home_directory(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOME") or Path.home())


def make_state_folder(home: Path) -> Path:
    """Create the folder, accessible only by its owner, unless it exists; return it."""
    try:
        if not home.is_dir():
            home.parent.mkdir(parents=True, exist_ok=True)
            home.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _unusable_path(home, error) from None
    return home


def load_gateway_key(home: Path) -> tuple[str, tuple[str, ...]]:
    """Return the gateway key, created at the first start, and notes for the user.

    Raise `ConfigError` if the file cannot be used or holds an invalid key.
    """
    path = home / KEY_FILE
    try:
        if not path.exists():
            _create_key_file(path)
        notes = _restrict_access(path)
        key = path.read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise _unusable_path(path, error) from None
    try:
        check_gateway_key(key, str(path))
    except ConfigError as error:
        reason = error.message.partition("\n")[0]
        raise ConfigError(
            f"{reason}\ndelete the file; the next start creates a new key", where=str(path)
        ) from None
    return key, notes


def _create_key_file(path: Path) -> None:
    """Create the key file atomically; if two gateways start at once, the key of the first one stays."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{_KEY_PREFIX}{secrets.token_urlsafe(32)}\n")
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    except OSError:  # the file system has no hard links
        draft.replace(path)
    draft.unlink(missing_ok=True)


def _restrict_access(path: Path) -> tuple[str, ...]:
    if os.name != "posix" or not path.stat().st_mode & 0o077:
        return ()
    path.chmod(0o600)
    return (f"{path} was readable by others and is now restricted; delete it to create a new key",)


def _unusable_path(path: Path, error: OSError) -> ConfigError:
    hint = "point DRAGOMAN_HOME to a folder you own"
    return ConfigError(f"cannot be used: {error.strerror}\n{hint}", where=str(path))


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

    Never the working directory: a hostile project could redirect the API key (known problem Q12).
    """
    if given:
        return Path(given).expanduser()
    file = home / CONFIG_FILE
    return file if file.is_file() else None


def _read_settings_file(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError("this is not UTF-8 text", where=str(file)) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(file)) from None
