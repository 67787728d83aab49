"""What gets onto a machine that installs us: nothing but what is listed, and nothing that runs by itself (pain Q1)."""

from __future__ import annotations

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

from deploy.lock import EXTRAS, MACHINES, render, wanted
from deploy.sbom import make_sbom

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
LOCKED = re.compile(
    r"(?P<name>[\w.-]+)==(?P<version>[\w.]+)(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n"
)
#: What runs at every start of Python, whether anybody imports it or not, or at every installation.
BY_ITSELF = (".pth", ".egg-link")
SITE_MODULES = ("sitecustomize.py", "usercustomize.py")

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
            assert 1 <= len(hashes) == len(set(hashes)) <= len(MACHINES), package


def test_q1_the_lock_has_everything_that_is_asked_for_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    needed = {part["name"] for part in make_sbom()["components"]}
    assert locked("requirements.txt").keys() == needed, "make lock"
    asked = [Requirement(text) for text in wanted(project)["requirements-build.txt"]]
    assert locked("requirements-build.txt").keys() == {canonicalize_name(one.name) for one in asked}
    for name, requirements in wanted(project).items():
        for one in map(Requirement, requirements):
            assert one.specifier.contains(locked(name)[canonicalize_name(one.name)][0]), one


def test_a_lock_names_a_package_once_with_the_files_of_all_machines() -> None:
    assert render([_report(a="1", b="2"), _report(a="3", b="2")]).partition("\n")[2] == (
        f"a==1 \\\n    --hash=sha256:{'1' * 64} \\\n    --hash=sha256:{'3' * 64}\nb==1 \\\n    --hash=sha256:{'2' * 64}\n"
    )


def _report(**digits: str) -> Json:
    return {
        "install": [
            {
                "metadata": {"name": name, "version": "1"},
                "download_info": {"url": "https://x", "archive_info": {"hashes": {"sha256": digit * 64}}},
            }
            for name, digit in digits.items()
        ]
    }


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


def test_q1_the_sbom_is_cyclonedx_and_complete() -> None:
    """The fields that the format requires (CycloneDX 1.6, JSON), and references that lead somewhere."""
    sbom = make_sbom()
    assert (sbom["bomFormat"], sbom["specVersion"], sbom["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", sbom["serialNumber"])
    top = sbom["metadata"]["component"]
    assert (top["type"], top["name"], top["purl"]) == (
        "application", "dragoman", f"pkg:pypi/dragoman@{distribution('dragoman').version}"
    )  # fmt: skip
    parts = [top, *sbom["components"]]
    refs = [part["bom-ref"] for part in parts]
    assert len(refs) == len(set(refs))
    for part in sbom["components"]:
        assert part["type"] == "library"
        assert part["purl"] == f"pkg:pypi/{part['name']}@{part['version']}"
        assert all(
            len(one) == 1 and one.keys() <= {"expression", "license"} for one in part.get("licenses", ())
        )
    needs = {one["ref"]: one["dependsOn"] for one in sbom["dependencies"]}
    assert needs.keys() == set(refs)
    reached, waiting = set(), [top["bom-ref"]]
    while waiting:
        ref = waiting.pop()
        reached.add(ref)
        waiting += [one for one in needs[ref] if one not in reached]
    assert reached == set(refs), "nothing is listed that nothing needs"


def test_the_sbom_of_the_same_packages_is_the_same() -> None:
    assert make_sbom() == make_sbom()
    assert len(make_sbom(extras=())["components"]) < len(make_sbom(extras=EXTRAS)["components"])


def test_the_sbom_is_written_where_it_is_wanted(tmp_path: Path) -> None:
    target = tmp_path / "dist" / "dragoman.cdx.json"
    subprocess.run([sys.executable, "-m", "deploy.sbom", str(target)], cwd=ROOT, check=True)
    assert '"bomFormat": "CycloneDX"' in target.read_text("utf-8")


def test_l9_no_credentials_but_official_ones() -> None:
    """Accounts were disabled for borrowed OAuth clients: none of them, nor of their addresses, is in the source."""
    borrowed = re.compile(r"apps\.googleusercontent\.com|GOCSPX-|cloudcode-pa|client_secret|oauth2/v4/token")
    for path in sorted((ROOT / "src").rglob("*.py")):
        assert not borrowed.search(path.read_text("utf-8")), path
