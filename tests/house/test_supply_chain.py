"""An installation adds only what is listed, and nothing that runs by itself (known problem Q1)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
LOCKED = re.compile(
    r"(?P<name>[\w.-]+)==(?P<version>[\w.]+)(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n"
)
#: What runs at every start of Python, whether anybody imports it or not, or at every installation.
BY_ITSELF = (".pth", ".egg-link")
SITE_MODULES = ("sitecustomize.py", "usercustomize.py")

#: What the container has besides the plain package; `make lock` names the same.
EXTRAS = ("redis", "strict", "vertex")

Json = dict[str, Any]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """Built from a copy, by the build backend alone: nothing is fetched."""
    place = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place)
    shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    code = "import sys; from setuptools.build_meta import build_wheel; print(build_wheel(sys.argv[1]))"
    command = [sys.executable, "-W", "ignore", "-c", code, str(place / "dist")]
    subprocess.run(command, cwd=place, check=True, capture_output=True)
    (built,) = (place / "dist").glob("*.whl")
    with zipfile.ZipFile(built) as opened:
        yield opened


def locked(name: str) -> dict[str, tuple[str, list[str]]]:
    """Package -> version and hashes; a line that is neither is an error."""
    text = "".join(
        line for line in (DEPLOY / name).read_text("utf-8").splitlines(True) if not line.startswith("#")
    )
    assert LOCKED.sub("", text) == ""
    return {
        canonicalize_name(found["name"]): (found["version"], re.findall(r"[0-9a-f]{64}", found["hashes"]))
        for found in LOCKED.finditer(text)
    }


def pinned() -> dict[str, str]:
    pairs = (line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    return {canonicalize_name(name): version for name, version in pairs}


def test_q1_nothing_in_the_wheel_runs_at_every_start_of_python(wheel: zipfile.ZipFile) -> None:
    """The compromised litellm 1.82.8 had a litellm_init.pth."""
    names = wheel.namelist()
    assert "dragoman/__init__.py" in names
    assert "dragoman/py.typed" in names
    for name in names:
        top = name.partition("/")[0]
        assert top == "dragoman" or re.fullmatch(r"dragoman-[\d.]+\.dist-info", top), name
        assert not name.endswith(BY_ITSELF), name
        assert name.rpartition("/")[2] not in SITE_MODULES, name
        assert (
            name.endswith((".py", ".json", ".typed", ".html", ".css", ".js", ".svg")) or ".dist-info/" in name
        ), name


def test_q1_the_wheel_is_what_is_in_the_tree(wheel: zipfile.ZipFile) -> None:
    copied = Path(str(wheel.filename)).parents[1] / "src"
    for name in wheel.namelist():
        if name.startswith("dragoman/"):
            assert wheel.read(name) == (copied / name).read_bytes(), name


def test_q1_the_wheel_starts_our_command_and_no_other(wheel: zipfile.ZipFile) -> None:
    (listed,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    lines = [line for line in wheel.read(listed).decode().splitlines() if "=" in line]
    assert sorted(lines) == [
        "dragoman = dragoman.cli.main:main",
        "dragoman = dragoman.emulator.pytest_plugin",
    ]
    assert not [name for name in wheel.namelist() if ".data/" in name]


def test_q1_nothing_we_need_to_run_runs_by_itself() -> None:
    for name in locked("requirements.txt"):
        files = [str(path) for path in distribution(name).files or ()]
        assert files, name
        assert not [path for path in files if path.endswith(BY_ITSELF)], name
        assert not [path for path in files if path.rpartition("/")[2] in SITE_MODULES], name


def test_q1_every_package_of_the_container_is_locked_by_hash() -> None:
    """Names and versions are those everything is tested with; each file is known by what is in it."""
    for name in ("requirements.txt", "requirements-build.txt"):
        packages = locked(name)
        assert packages
        for package, (version, hashes) in packages.items():
            assert pinned()[package] == version, package
            assert 1 <= len(hashes) == len(set(hashes)), package


def test_q1_the_lock_has_everything_that_is_asked_for_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert locked("requirements.txt").keys() == needed("dragoman", EXTRAS) - {"dragoman"}, "make lock"
    run = [*project["project"]["dependencies"]]
    run += [one for extra in EXTRAS for one in project["project"]["optional-dependencies"][extra]]
    build = [Requirement(text) for text in project["build-system"]["requires"]]
    assert locked("requirements-build.txt").keys() == {canonicalize_name(one.name) for one in build}
    for name, asked in (("requirements.txt", map(Requirement, run)), ("requirements-build.txt", build)):
        for one in asked:
            assert one.specifier.contains(locked(name)[canonicalize_name(one.name)][0]), one


def needed(name: str, extras: tuple[str, ...]) -> set[str]:
    """The package and everything it requires on this machine, read from the installed metadata."""
    found, waiting = set(), [(name, extras)]
    while waiting:
        name, extras = waiting.pop()
        found.add(name)
        for one in map(Requirement, distribution(name).requires or ()):
            if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                child = canonicalize_name(one.name)
                if child not in found or one.extras:
                    waiting.append((child, tuple(one.extras)))
    return found


def test_the_container_installs_nothing_without_its_hash() -> None:
    container = (DEPLOY / "Containerfile").read_text("utf-8").replace("\\\n", " ")
    runs = [part for line in container.splitlines() if line.startswith("RUN ") for part in line.split("&&")]
    installs = [run for run in runs if " install " in run and "pip" in run]
    assert len(installs) == 3
    for run in installs:
        assert "--require-hashes" in run or ("--no-index" in run and "--no-deps" in run), run
    (built,) = (run for run in runs if "pip wheel" in run)
    assert {"--no-index", "--no-deps", "--no-build-isolation"} <= set(built.split())
    assert "constraint" not in container
    for name in ("requirements.txt", "requirements-build.txt"):
        assert f"-r deploy/{name}" in container
        assert "://" not in (DEPLOY / name).read_text("utf-8")


def test_q1_the_sbom_lists_what_the_container_installs(tmp_path: Path) -> None:
    """`make sbom` installs the lock into a venv of its own and lets cyclonedx-py read it."""
    venv = Path(sys.prefix)
    if not (venv / ".release").exists():
        pytest.skip("needs uv and cyclonedx-bom: make .venv/.release")
    target = tmp_path / "dist" / "dragoman.cdx.json"
    command = ["make", "sbom", f"SBOM={target}", f"VENV={venv}", f"PYTHON={sys.executable}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    sbom: Json = json.loads(target.read_text("utf-8"))
    assert (sbom["bomFormat"], sbom["metadata"]["component"]["name"]) == ("CycloneDX", "dragoman")
    parts = {canonicalize_name(part["name"]): part["version"] for part in sbom["components"]}
    assert parts == {name: version for name, (version, _) in locked("requirements.txt").items()}
    assert all(part["purl"].startswith("pkg:pypi/") and part["licenses"] for part in sbom["components"])
    assert not {"serialNumber", "timestamp"} & (sbom.keys() | sbom["metadata"].keys()), "not reproducible"
    assert reached(sbom) == {part["bom-ref"] for part in sbom["components"]}


def reached(sbom: Json) -> set[str]:
    """Every component that the root needs, directly or through another."""
    needs = {one["ref"]: one.get("dependsOn", []) for one in sbom["dependencies"]}
    found: set[str] = set()
    waiting = [sbom["metadata"]["component"]["bom-ref"]]
    while waiting:
        new = set(needs[waiting.pop()]) - found
        found |= new
        waiting += new
    return found


def test_l9_no_credentials_but_official_ones() -> None:
    """Accounts were disabled for borrowed OAuth clients: none of them, nor of their addresses, is in the source."""
    borrowed = re.compile(r"apps\.googleusercontent\.com|GOCSPX-|cloudcode-pa|client_secret|oauth2/v4/token")
    for path in sorted((ROOT / "src").rglob("*.py")):
        assert not borrowed.search(path.read_text("utf-8")), path
