"""The house rules that a reviewer would otherwise repeat."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements import require_program

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MAX_LINES = 400


def tracked_files() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("needs a clone made by git")
    command = [require_program("git"), "ls-files", "-co", "--exclude-standard"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_a_file_is_short_and_says_what_it_is_for(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.count("\n") <= MAX_LINES
    assert not text.strip() or text.startswith('"""'), "a module begins with its docstring"


def test_nothing_is_called_utils() -> None:
    vague = re.compile(r"(utils?|helpers?|common|managers?|misc)(\.py)?$")
    assert [path for path in SOURCES if vague.fullmatch(path.name) or vague.fullmatch(path.parent.name)] == []


def test_no_registry_address_is_committed() -> None:
    address = re.compile(
        r"https?://[^\s\"']*(pypi\.org|pythonhosted|npmjs|/simple/)[^\s\"']*|\"resolved\":|--(extra-)?index-url"
    )
    for name in tracked_files():
        path = ROOT / name
        if path.suffix in {".txt", ".toml", ".json", ".cfg", ".lock", ".yml", ".md", ""} and path.is_file():
            assert not address.search(path.read_text("utf-8", "replace")), name


def test_versions_are_pinned_exactly() -> None:
    lines = (ROOT / "constraints.txt").read_text().split()
    assert lines
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)


def test_the_command_line_starts_without_the_heavy_parts() -> None:
    """known problem O3"""
    code = (
        "import sys; from dragoman.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print([m for m in ('aiohttp', 'h2', 'google', 'sqlite3', 'shtab') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")
