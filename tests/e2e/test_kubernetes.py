"""The manifest of deploy/, read by somebody who knows Kubernetes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.clients import install_once
from tests.load_balancers import DEPLOY

VALIDATOR = "kubernetes-validate==1.37.0"


@pytest.mark.clients
def test_kubernetes_takes_the_manifest() -> None:
    def make(prefix: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(prefix)], check=True)
        pip = [str(prefix / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "--disable-pip-version-check", VALIDATOR], check=True)

    program = install_once(VALIDATOR.replace("==", "-"), make) / "bin" / "kubernetes-validate"
    subprocess.run([str(program), "--strict", "--quiet", str(DEPLOY / "kubernetes.yaml")], check=True)
