"""The packages of the container, each with its version and the sha256 of its files, as pip itself finds them.

`make lock` writes them anew: `requirements.txt` is what runs, `requirements-build.txt` what builds our own wheel. Both
say nothing about where a file comes from: any index or mirror will do, as long as the bytes are the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
#: What the container has besides the plain package.
EXTRAS = ("redis", "strict", "vertex")
PYTHON = "3.11"
#: The C library of the image is newer than what any of these asks for.
_GLIBC = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
MACHINES = ("x86_64", "aarch64")
_HEAD = "# Written by `make lock` for CPython {python} on Linux ({machines}). Do not edit.\n"

Json = dict[str, Any]


def wanted(project: Json) -> dict[str, list[str]]:
    """File -> the requirements that must be met in it."""
    run = list(project["project"]["dependencies"])
    for extra in EXTRAS:
        run += project["project"]["optional-dependencies"][extra]
    return {"requirements.txt": run, "requirements-build.txt": list(project["build-system"]["requires"])}


def resolve(requirements: Iterable[str], machine: str) -> Json:
    """Pip's own report of what it would install there; nothing is installed."""
    with tempfile.TemporaryDirectory() as nowhere:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        command += ["--dry-run", "--ignore-installed", "--report", "-", "--target", nowhere]
        command += ["--only-binary", ":all:", "--python-version", PYTHON]
        command += [word for libc in _GLIBC for word in ("--platform", f"{libc}_{machine}")]
        command += ["--constraint", str(ROOT / "constraints.txt"), *requirements]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)  # noqa: S603 (our own words)
    report: Json = json.loads(done.stdout)
    return report


def render(reports: Iterable[Json]) -> str:
    """One line a package; of a package with a file per machine all hashes."""
    hashes: dict[tuple[str, str], set[str]] = {}
    for report in reports:
        for one in report["install"]:
            package = one["metadata"]["name"], one["metadata"]["version"]
            hashes.setdefault(package, set()).add(one["download_info"]["archive_info"]["hashes"]["sha256"])
    return _HEAD.format(python=PYTHON, machines=", ".join(MACHINES)) + "".join(
        f"{name}=={version}{_options(hashes[name, version])}\n"
        for name, version in sorted(hashes, key=lambda package: package[0].lower())
    )


def _options(hashes: Iterable[str]) -> str:
    return "".join(f" \\\n    --hash=sha256:{value}" for value in sorted(hashes))


def lock(files: Mapping[str, Iterable[str]], folder: Path) -> None:
    for name, requirements in files.items():
        (folder / name).write_text(render([resolve(requirements, machine) for machine in MACHINES]), "utf-8")


if __name__ == "__main__":
    lock(wanted(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))), DEPLOY)
