"""The conventions of the code and its documents that a reviewer would otherwise have to repeat."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.requirements import require_program

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "dragoman"
SOURCES = sorted(PACKAGE.rglob("*.py"))
MAX_MODULES = 400
MAX_MODULES_IN_A_FOLDER = 20
KNOWN_PROBLEMS = ROOT / "docs" / "known-problems.md"
#: The primitives that the glossary of docs/architecture.md explains.
GLOSSARY = {
    "AttemptPlan",
    "Dialect",
    "Event",
    "Exchange",
    "Note",
    "Request",
    "RequestContext",
    "Store",
    "Target",
    "ToolLoop",
}


def tracked_files() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("needs a clone made by git")
    command = [require_program("git"), "ls-files", "-co", "--exclude-standard"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def test_every_module_has_a_docstring() -> None:
    assert [str(path) for path in SOURCES if not ast.get_docstring(parsed(path))] == []


def test_the_number_of_modules_is_limited() -> None:
    assert len(SOURCES) <= MAX_MODULES
    counts = Counter(path.parent for path in SOURCES)
    assert {str(folder): count for folder, count in counts.items() if count > MAX_MODULES_IN_A_FOLDER} == {}


def test_public_class_names_are_unique_outside_the_dialects() -> None:
    """The dialects have the same parts, so they may share names such as `Body`."""
    places: dict[str, list[str]] = {}
    for path in SOURCES:
        if PACKAGE / "dialects" not in path.parents:
            for node in parsed(path).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_the_names_of_the_glossary_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    glossary = page.partition("\n## Glossary\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|(.*)\| `([\w/]+\.py)` \|$", glossary, re.MULTILINE)
    assert {name for name, _, _ in rows} == GLOSSARY
    for name, meaning, module in rows:
        defined = _defined_names(PACKAGE / module)
        # A term without a class of its own, such as Dialect, names the classes that it stands for.
        wanted = {name} if name in defined else set(re.findall(r"`([A-Z]\w+)`", meaning))
        assert wanted, f"{module} does not define {name}"
        assert wanted <= defined, f"{module} does not define {wanted - defined}"


def _defined_names(path: Path) -> set[str]:
    names = set()
    for node in parsed(path).body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return names


def test_no_document_outside_the_repository_is_cited() -> None:
    files = tracked_files()
    cited_path = re.compile(r"(?<![\w/*{}<>-])(?:\.{1,2}/)*([\w.-]+(?:/[\w.-]+)*\.md)\b")
    wrong = []
    for name in _documents(files):
        text = prose(ROOT / name)
        wrong += [f"{name}: {match[0]}" for match in re.finditer(r"\bpains?\b|(?<!\w)shared/\S*", text)]
        wrong += [
            f"{name}: {cited}"
            for cited in cited_path.findall(text)
            if not any(f"/{file}".endswith(f"/{cited}") for file in files)
        ]
    assert wrong == []


def test_every_cited_known_problem_is_listed() -> None:
    listed = set(re.findall(r'<a id="[a-z]+\d+"></a>([A-Z]\d+)\b', KNOWN_PROBLEMS.read_text("utf-8")))
    citation = re.compile(r"\bknown problems? \[?([A-Z]\d+(?:(?:, | and | or | to )[A-Z]\d+)*)")
    cited = {
        (name, problem)
        for name in _documents(tracked_files())
        for ids in citation.findall(prose(ROOT / name))
        for problem in re.findall(r"[A-Z]\d+", ids)
    }
    assert cited
    assert sorted((name, problem) for name, problem in cited if problem not in listed) == []


def _documents(files: list[str]) -> list[str]:
    """Return the Python modules and pages that people read; recorded data cites documents of other projects."""
    return [
        name
        for name in files
        if name.startswith(("src/", "tests/", "docs/", "README"))
        and name.endswith((".py", ".md"))
        and (ROOT / name).is_file()
    ]


@cache
def prose(path: Path) -> str:
    """Return the text of a page, or the comments and docstrings of a module, on one line."""
    text = path.read_text("utf-8")
    parts = [text] if path.suffix == ".md" else _comments_and_docstrings(path, text)
    return " ".join(" ".join(parts).split())


def _comments_and_docstrings(path: Path, text: str) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.lstrip("#: ")


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
