"""Load custom tools: Python files in the user's folder, and entry points (`dragoman.tools`) of installed packages.

The folder comes from the user's settings and must be absolute, so that a cloned project cannot add code.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import stat
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from dragoman.tools.definition import ToolDefinition, find_definition
from dragoman.tools.errors import InvalidTool

ENTRY_POINTS = "dragoman.tools"
_PREFIX = "dragoman_tools_"
_HAS_FILE_OWNERS = os.name == "posix"  # on other systems a file's mode and owner mean nothing


def load_tools(folder: Path, *, must_exist: bool = False) -> list[ToolDefinition]:
    """Load all tools of the folder and of installed packages. Raise `InvalidTool` for the first problem."""
    found: dict[str, ToolDefinition] = {}
    places: dict[str, str] = {}
    for definition, origin in (*_from_folder(folder, must_exist), *_from_packages()):
        if definition.name in found:
            why = f"there is already a tool {definition.name!r}, from {places[definition.name]}"
            raise InvalidTool(why, where=origin)
        found[definition.name], places[definition.name] = definition, origin
    return list(found.values())


def load_tool_file(folder: Path, name: str) -> list[ToolDefinition]:
    """Load the tools of one file in the folder. Raise `InvalidTool` for the first problem."""
    file = _absolute(folder) / f"{name}.py"
    if not file.is_file():
        raise InvalidTool("there is no such file", where=str(file))
    _check_owner(file.parent)
    _check_owner(file)
    return [definition for definition, _ in _tools_of(_load(file), str(file))]


def _from_folder(folder: Path, must_exist: bool) -> Iterator[tuple[ToolDefinition, str]]:
    folder = _absolute(folder)
    if not folder.is_dir():
        if must_exist:
            raise InvalidTool("there is no such folder", where=str(folder))
        return
    _check_owner(folder)
    for file in sorted(folder.glob("*.py")):
        if not file.name.startswith(("_", ".")):
            _check_owner(file)
            yield from _tools_of(_load(file), str(file))


def _absolute(folder: Path) -> Path:
    folder = folder.expanduser()
    if not folder.is_absolute():
        raise InvalidTool("the folder of your tools must be given with its whole path", where=str(folder))
    return folder


def _check_owner(path: Path) -> None:
    """Raise `InvalidTool` if other users could write code here that would run as this user."""
    if _HAS_FILE_OWNERS:
        found = path.stat()
        if found.st_mode & stat.S_IWOTH or found.st_uid not in _trusted_owners():
            raise InvalidTool("others could put code there: make it yours alone (chmod o-w)", where=str(path))


def _trusted_owners() -> tuple[int, ...]:
    """Return the user ids whose files are trusted: this user and root."""
    return os.getuid(), 0


def _load(file: Path) -> ModuleType:
    name = _PREFIX + file.stem
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None  # noqa: S101 (a source file has one)
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # annotations are resolved there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _locate_error(error, file) from error
    return module


def _locate_error(error: BaseException, file: Path) -> InvalidTool:
    """Return the error with the last line of the file in its traceback."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return InvalidTool(f"SyntaxError: {error.msg}", where=f"{file}:{error.lineno}")
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)
    ]
    where = f"{file}:{lines[-1]}" if lines else str(file)
    words = str(error) if isinstance(error, InvalidTool) else f"{type(error).__name__}: {error}"
    return InvalidTool(words, where=where)


def _from_packages() -> Iterator[tuple[ToolDefinition, str]]:
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        origin = f"entry point {entry.name} = {entry.value}"
        try:
            thing = entry.load()
        except Exception as error:
            raise InvalidTool(f"{type(error).__name__}: {error}", where=origin) from error
        if isinstance(thing, ModuleType):
            yield from _tools_of(thing, origin)
            continue
        for one in thing if isinstance(thing, list | tuple) else [thing]:
            definition = find_definition(one)
            if definition is None:
                raise InvalidTool(
                    "must be a function with @tool, a definition, a list or a module", where=origin
                )
            yield definition, origin


def _tools_of(module: ModuleType, origin: str) -> Iterator[tuple[ToolDefinition, str]]:
    """Yield the tools that the module itself defines; functions it only imports are left out."""
    for thing in vars(module).values():
        definition = find_definition(thing)
        home = getattr(thing, "__module__", module.__name__)
        if definition is not None and (isinstance(thing, ToolDefinition) or home == module.__name__):
            line = getattr(getattr(thing, "__code__", None), "co_firstlineno", None)
            yield definition, f"{origin}:{line}" if line else origin
