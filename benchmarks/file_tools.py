"""The file tools on a generated repository of 50,000 files: how long typical calls take."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from dragoman.ir import ToolCall
from dragoman.tools.fs import FileLimits, FileTools
from dragoman.tools.fs.search import python_engine
from dragoman.tools.handler import Handler
from dragoman.tools.registry import Registry

_PACKAGES, _MODULES, _FILES = 50, 20, 50
_ENDINGS = ("py", "rs", "md", "ts", "json")
_ROUNDS = 5
_PATH = "pkg07/mod03/file04.json"

_CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "list everything, first 1,000": ("list_files", {}),
    "list *.rs, all 10,000": ("list_files", {"pattern": "*.rs", "limit": 10_000}),
    "list pkg07/**/*.py": ("list_files", {"pattern": "pkg07/**/*.py"}),
    "list what does not exist": ("list_files", {"pattern": "*.nothing"}),
    "read a file": ("read_file", {"path": _PATH}),
    "write a file": ("write_file", {"path": _PATH, "content": ""}),
    "search one package": ("search_files", {"pattern": "function_7_3_4_1", "path": "pkg07"}),
    "search, common word": ("search_files", {"pattern": "return"}),
    "search *.rs, one hit": ("search_files", {"pattern": r"function_7_3_1_1\b", "glob": "*.rs"}),
    "search everything, one hit": ("search_files", {"pattern": r"function_7_3_4_1\b"}),
}


def print_files() -> None:
    """Return the elapsed time of the fastest round, through the handler as an agent calls it."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        _generate(root)
        files = FileTools(root, limits=FileLimits(state=Path(folder) / "state"))
        found = files.engine is not python_engine
        print(f"{_PACKAGES * _MODULES * _FILES:,} files; ripgrep {'found' if found else 'not found'}\n")
        for engine in [files.engine, python_engine] if found else [python_engine]:
            files.engine = engine
            print("searching in Python" if engine is python_engine else "searching with ripgrep")
            for title, (name, args) in _CALLS.items():
                print(f"  {title:32}{asyncio.run(_quickest(files, name, args)):>9.1f} ms")


async def _quickest(files: FileTools, name: str, args: dict[str, Any]) -> float:
    handler = Handler(Registry(files.definitions()))
    times = []
    for number in range(_ROUNDS):
        given = {**args, "content": f"{number} {time.time_ns()}"} if "content" in args else args
        call = ToolCall(id="1", name=name, args=msgspec.json.encode(given))
        started = time.perf_counter()
        result = await handler.execute(call)
        times.append(time.perf_counter() - started)
        if result.is_error:
            raise RuntimeError(result.content)
    return min(times) * 1000


def _generate(root: Path) -> None:
    for package in range(_PACKAGES):
        for module in range(_MODULES):
            folder = root / f"pkg{package:02d}" / f"mod{module:02d}"
            folder.mkdir(parents=True)
            for number in range(_FILES):
                prefix = f"function_{package}_{module}_{number}"
                lines = (f"def {prefix}_{line}(x): return x + {line}\n" for line in range(20))
                (folder / f"file{number:02d}.{_ENDINGS[number % 5]}").write_text("".join(lines))
    rules = "node_modules/ *.pyc __pycache__ /build *.log .venv dist/ !keep.log *.egg-info/ target .DS_Store"
    (root / ".gitignore").write_text(rules.replace(" ", "\n"))
