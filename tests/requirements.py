"""Programs that a test needs and a machine may lack: without them the test is skipped."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest


def require_program(*names: str, package: str = "") -> str:
    """The path of the first of these programs that is installed; `package` is Debian's, if it has another name."""
    path = (
        f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"  # an ordinary user's PATH lacks the last two
    )
    for name in names:
        if found := shutil.which(name, path=path):
            return found
    pytest.skip(f"needs {names[0]}: apt-get install {package or names[0]}")


def require_bubblewrap() -> str:
    """Its program, if it works: many containers forbid the namespaces that it needs."""
    program = require_program("bwrap", package="bubblewrap")
    command = [program, "--ro-bind", "/", "/", "--unshare-user", "--unshare-pid", "--unshare-net", "true"]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"needs user namespaces, which this machine forbids: {tried.stderr.strip()}")
    return program
