"""Install other gateways from their packages, into a cache outside the checkout."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

_INSTALL_S = 1200.0


class NotInstalled(Exception):
    """The package is not available in the registry or on this machine."""


def install_python(folder: str, *packages: str) -> Path:
    """Create a virtual environment for the package; its interpreter is `bin/python`."""

    def make(prefix: Path) -> None:
        _run([sys.executable, "-m", "venv", str(prefix)])
        _run([str(prefix / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages])

    return _install_once(folder, make)


def install_node(folder: str, package: str) -> Path:
    def make(prefix: Path) -> None:
        npm = shutil.which("npm")
        if npm is None or shutil.which("node") is None:
            raise NotInstalled("there is no node and npm on this machine")
        prefix.mkdir(parents=True, exist_ok=True)
        _run([npm, "install", "--prefix", str(prefix), "--no-audit", "--no-fund", "--save-exact", package])

    return _install_once(folder, make) / "node_modules"


def _install_once(folder: str, make: Callable[[Path], None]) -> Path:
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dragoman-bench"
    cache = Path(os.environ.get("DRAGOMAN_BENCH_CACHE") or default)
    cache.mkdir(parents=True, exist_ok=True)
    prefix = cache / folder
    with (cache / f"{folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (prefix / ".installed").exists():
            shutil.rmtree(prefix, ignore_errors=True)
            make(prefix)
            (prefix / ".installed").touch()
    return prefix


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_INSTALL_S)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"{' '.join(command)} took longer than {_INSTALL_S:g} s") from None
    if done.returncode:
        raise NotInstalled(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-400:]}")
