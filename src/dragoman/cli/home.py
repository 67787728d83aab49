"""The state folder and the gateway key in it."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

from dragoman.config import check_gateway_key
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
        raise ConfigError(f"{reason}\ndelete the file and a new key is made", where=str(path)) from None
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
    return (f"{path} could be read by others and was closed; delete it to have a new key made",)


def _unusable_path(path: Path, error: OSError) -> ConfigError:
    hint = "point DRAGOMAN_HOME to a folder you own"
    return ConfigError(f"cannot be used: {error.strerror}\n{hint}", where=str(path))
