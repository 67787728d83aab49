"""Python programs with packages of their own: an environment each in the cache, never the project's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.e2e.clients import RUN_S, MissingProgram, install_once
from tests.e2e.gateway import GATEWAY_KEY


def install_packages(folder: str, requirements: Sequence[str]) -> Path:
    """The Python of an environment with these packages."""

    def make(prefix: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(prefix)], check=True)
        pip = [str(prefix / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*pip, *requirements], capture_output=True, text=True, check=False)
        if done.returncode:
            raise MissingProgram(f"pip could not install {requirements}:\n{done.stderr}")

    return install_once(folder, make) / "bin" / "python"


def run_program(python: Path, program: str, url: str, *argv: str) -> dict[str, Any]:
    """What it reports with `report(name, value)`; it finds the gateway in BASE and KEY."""
    done = subprocess.run(
        [str(python), "-W", "ignore", "-c", _PREAMBLE + program, *argv],
        env={"PATH": os.environ["PATH"], "BASE": url, "KEY": GATEWAY_KEY, "NO_PROXY": "127.0.0.1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-6000:]}"
    return dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))


_PREAMBLE = """
import json, os, sys
BASE, KEY = os.environ["BASE"], os.environ["KEY"]

def report(name, value):
    print(json.dumps([name, value]), flush=True)

def use(tool, /, **args):
    return f"use {tool} with {json.dumps(args)}"
"""
