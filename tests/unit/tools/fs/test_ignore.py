"""What we ignore is what git ignores: asked of git itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.tools.fs.glob import Glob
from dragoman.tools.fs.sandbox import Sandbox
from dragoman.tools.fs.tree import ListingFilter, list_tree
from tests.requirements import require_program

TREE = """
a.py a.pyc b.log keep.log build/x src/build/y src/a.c src/b.o src/deep/er/c.o src/deep/keep.o docs/a.md docs/b/c.md
node_modules/p/i.js src/node_modules/q.js foo/bar/baz foo/x/bar/baz "sp ace" #hash !bang back\\slash a[b].c abc.c axc.c
.hidden .cfg/x temp tmp1 tmp22 logs/debug.log logs/monday/foo.bar logs/latest/foo.bar x/y/z/w UPPER.TXT end. é.txt
""".split()

IGNORES = [
    "*.pyc\n*.log\n!keep.log\n",
    "build/\nnode_modules\n",
    "/build\n",
    "src/build\n",
    "**/build\n",
    "foo/**/bar\n",
    "foo/**\n!foo/bar\n",
    "logs/**/foo.bar\n",
    "docs/*\n!docs/a.md\n",
    "docs\n!docs/a.md\n",
    "# comment\n\\#hash\n\\!bang\n",
    "a[bx]c.c\n",
    "a[!b]c.c\n",
    "a\\[b\\].c\n",
    "[a-c]*.c\n[[:upper:]]*\n",
    "tmp?\n",
    "temp   \n",
    "te\\mp\n",
    "*\n!*/\n!*.md\n",
    "*\n!.hidden\n",
    "/*\n!/src\n/src/*\n!/src/deep\n",
    "\ufeff*.c\r\n*.o\r\n",
    "**\n",
    "**/\n",
    "/\n//\n\n   \n!\n",
    "x/**/w\nx/**/**/q\n",
    "**/deep/**\n",
    "src/**/*.o\n!src/deep/keep.o\n",
    "*a*\n",
    "back\\\\slash\n",
    "[\n[a\na[\n[[:nonsense:]]\nx\\\n",
    "é*\n.*\n",
    "src/d*/er\n",
    "a**c.c\nfoo**/x\n",
    "end.\n*.\n",
    "//**\n//a.py\nsrc//a.c\n**//x\n",
    "x\\/**\nback\\\\slash/\nfoo\\/\n",
    "***/x\nsrc/***/c.o\n",
    "[[:space:]]*\n[[:digit:][:alpha:]]*.md\n[\\]a]*.py\n",
    "[]a]*.py\n[^]b]*.log\n[z-a]*\n",
]


def build(root: Path, ignores: dict[str, str]) -> None:
    for name in TREE:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    for folder, text in ignores.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / ".gitignore").write_bytes(text.encode())
    subprocess.run([require_program("git"), "init", "-q"], cwd=root, check=True)


def by_git(root: Path) -> list[str]:
    git = ["git", "-c", "core.quotepath=off", "-c", "core.excludesFile=/dev/null"]
    asked = [*git, "ls-files", "-z", "--others", "--exclude-standard"]
    out = subprocess.run(asked, cwd=root, check=True, capture_output=True).stdout.decode()
    return sorted(filter(None, out.split("\0")))


def by_us(root: Path, path: str = ".") -> list[str]:
    return sorted(list_tree(Sandbox(root, secrets=()), path, ListingFilter(glob=Glob("**/*"))))


@pytest.mark.parametrize("text", IGNORES, ids=ascii)
def test_a_gitignore_means_what_git_means(text: str, root: Path) -> None:
    build(root, {".": text})
    assert by_us(root) == by_git(root)


@pytest.mark.parametrize(
    "ignores",
    [
        {".": "*.o\n", "src": "!b.o\n"},
        {".": "!b.o\n", "src": "*.o\n"},
        {".": "*.md\n", "docs": "!a.md\n", "docs/b": "/c.md\n"},
        {"src/deep": "/er\n", "logs": "*\n!.gitignore\n"},
        {".": "src\n", "src": "!a.c\n"},
        {"foo": "/bar\nx/bar\n", "x/y": "z/w\n"},
    ],
    ids=ascii,
)
def test_nested_files_decide_for_what_is_below_them(ignores: dict[str, str], root: Path) -> None:
    build(root, ignores)
    assert by_us(root) == by_git(root)
    for folder in ("src", "docs", "x/y", "logs"):
        assert by_us(root, folder) == [path for path in by_git(root) if path.startswith(f"{folder}/")]


def test_the_exclude_file_of_the_repository_counts(root: Path) -> None:
    build(root, {".": "!a.c\n"})
    (root / ".git/info/exclude").write_text("*.c\n")
    assert by_us(root) == by_git(root)


LINE = st.builds(
    "".join,
    st.lists(
        st.sampled_from([*"abcx*?!/.\\ ", "**/", "/**", "src", "foo", "[a-c]", "[!x]", "*."]), max_size=6
    ),
).filter(lambda line: "\\/" not in line)  # git itself reads an escaped slash in two ways


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(lines=st.lists(LINE, min_size=1, max_size=4))
def test_any_gitignore_means_what_git_means(
    lines: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("project")
    build(root, {".": "\n".join(lines) + "\n"})
    assert by_us(root) == by_git(root)
