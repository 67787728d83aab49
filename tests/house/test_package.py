"""The package as others get it: built clean, complete, and alive in an environment that never saw this folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
MOST_DEPENDENCIES = 15
BUILD = """
import os
from setuptools import build_meta
os.mkdir("dist")
build_meta.build_sdist("dist")
build_meta.build_wheel("dist")
"""


def build(folder: Path) -> Path:
    """Both forms, with what is installed here and no network; the folder is left with a `dist`."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-c", BUILD],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    assert not re.search(r"warning|deprecat", done.stdout + done.stderr, re.IGNORECASE), (
        done.stdout + done.stderr
    )
    return folder / "dist"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "MANIFEST.in", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
    return build(folder)


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (wheel,) = dist.glob("*.whl")
    return wheel


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_file_of_the_source_is_in_the_wheel_and_nothing_else(dist: Path, wheel: Path) -> None:
    source = dist.parent / "src"
    wanted = {
        str(path.relative_to(source))
        for path in (source / "dragoman").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = names_in(wheel)
    assert {name for name in names if ".dist-info/" not in name} == wanted
    assert {"dragoman/py.typed", "dragoman/emulator/fields.json"} <= names


def test_nothing_in_the_wheel_runs_by_itself(wheel: Path) -> None:
    """Known problem Q1: a .pth is executed at every start of Python."""
    assert not [name for name in names_in(wheel) if name.endswith(".pth") or "sitecustomize" in name]


def test_the_sdist_makes_the_same_wheel(dist: Path, wheel: Path, tmp_path: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    (again,) = build(folder).glob("*.whl")
    assert names_in(again) == names_in(wheel)


def test_the_wheel_lives_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """Installed by pip without a network; what it depends on is lent by the folder these tests run in."""
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True, timeout=110)
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "DRAGOMAN_SERVER_PORT": "0",
        "PYTHONPATH": sysconfig.get_path("purelib"),  # no .pth of it is read, so our own source is not there
    }

    def run(*argv: str) -> str:
        command = [str(tmp_path / "venv" / "bin" / "dragoman"), *argv]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("--version").strip() == f"dragoman {PROJECT['version']}"
    code = "import dragoman, dragoman.cli.main; print(dragoman.cli.main.__file__)"
    where = subprocess.run([str(python), "-c", code], env=env, capture_output=True, text=True, check=True)
    assert where.stdout.startswith(str(tmp_path / "venv"))
    assert "all checks passed" in run("doctor", "--no-clients")
    assert "say hello" not in run("run", "please say that it lives")
    assert "every setting" in run("--help")


def test_dependencies_are_few_and_each_has_its_reason() -> None:
    page = (ROOT / "docs/decisions/0001-dependencies.md").read_text("utf-8")
    assert len(PROJECT["dependencies"]) <= MOST_DEPENDENCIES
    extras = {
        name: PROJECT["optional-dependencies"][name]
        for name in ("redis", "otel", "mitm", "mcp", "strict", "vertex")
    }
    reasons = {
        name.lower(): reason.strip()
        for name, reason in re.findall(r"^\| ([\w-]+)[^|]*\|([^|]+)\|", page, re.MULTILINE)
    }
    for requirement in (*PROJECT["dependencies"], *(one for extra in extras.values() for one in extra)):
        name = re.match(r"[\w-]+", requirement)
        assert name
        assert reasons.get(name[0].lower()), requirement


def test_the_extra_all_is_all_of_them_that_go_together() -> None:
    """mitmproxy for Python 3.11 wants older packages than MCP's does: it has an environment of its own."""
    (everything,) = PROJECT["optional-dependencies"]["all"]
    named = set(everything.partition("[")[2].rstrip("]").split(","))
    assert named == set(PROJECT["optional-dependencies"]) - {"all", "bench", "dev", "docs", "mitm", "release"}


@pytest.mark.clients
@pytest.mark.timeout(600)
def test_pip_finds_versions_that_fit_together(wheel: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    command = [*pip, "install", "--dry-run", "--ignore-installed", f"{wheel}[all]"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
