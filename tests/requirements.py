"""Programs that a test needs and a machine may lack: without them the test is skipped."""

from __future__ import annotations

import os
import shutil

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
