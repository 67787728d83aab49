"""The direction `fs_path->decision`: a path and a tool, in a project made for the case."""

from __future__ import annotations

import asyncio
import base64
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from dragoman.ir import ToolCall
from dragoman.tools.fs import FileLimits, file_tools
from dragoman.tools.handler import Handler
from dragoman.tools.registry import Registry

_MORE = {
    "write_file": {"content": "x"},
    "edit_file": {"old": "x", "new": "y"},
    "search_files": {"pattern": "x"},
}


def _decision(given: dict[str, Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        project.mkdir()
        _set_up(project, given["setup"])
        limits = FileLimits(state=Path(folder) / "state")
        handler = Handler(Registry(file_tools(project, limits=limits)))
        args = {"path": _filled(given["path"], project), **_MORE.get(given["tool"], {})}
        call = ToolCall(id="1", name=given["tool"], args=msgspec.json.encode(args))
        return {"allowed": not asyncio.run(handler.execute(call)).is_error}


def _set_up(project: Path, setup: dict[str, Any]) -> None:
    content = {path: text.encode() for path, text in setup.get("files", {}).items()}
    content |= {path: base64.b64decode(data) for path, data in setup.get("files_b64", {}).items()}
    content |= {path: b"x" * size for path, size in setup.get("sizes", {}).items()}
    for path, data in content.items():
        place = project / _filled(path, project)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    for path, target in setup.get("symlinks", {}).items():
        place = project / _filled(path, project)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(_filled(target, project))


def _filled(text: str, project: Path) -> str:
    return text.replace("$PROJECT_NAME", project.name).replace("$PROJECT", str(project))


RUNNERS = {"fs_path->decision": _decision}
