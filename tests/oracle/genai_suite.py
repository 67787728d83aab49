"""Google's own SDK test suite, as it comes in the wheel: what each test asks, and what the service said.

Only questions and recorded verdicts are taken from it; the replay files it was made for are not in the wheel.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import importlib
import inspect
import io
import os
import re
import ssl
import struct
import sys
import time
import types as python_types
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import google.genai
import msgspec

ROOT = Path(google.genai.__file__).parent / "tests"
PACKAGE = "google.genai.tests"

#: Where the suite talks to methods that the emulator serves.
_FOLDERS = ("models", "chats", "caches", "files", "afc", "public_samples")
_SHARED = tuple(f"shared/{name}" for name in ("models", "chats", "caches", "files"))
#: Plays with a fake HTTP client of a library that we do not have; it asks the service nothing.
_LEFT_OUT = ("files.test_download", "chats.test_continuation_token")


class Case(msgspec.Struct, frozen=True):
    """One recorded test. `run` asks its questions; `expected` maps a back end to words of the refusal."""

    name: str
    run: Callable[[Any], None]
    http_options: dict[str, Any]
    #: None for a test function: it says itself what it expects, by `pytest.raises`.
    expected: dict[str, str] | None


@contextlib.contextmanager
def prepared(folder: Path) -> Iterator[None]:
    """The world the suite wants: its media files, no waiting, no replay folder."""
    names = {
        name
        for path in ROOT.rglob("test_*.py")
        for name in re.findall(r"data/([\w.-]+\.\w+)", path.read_text("utf-8"))
    }
    data = folder / "tests" / "data"
    data.mkdir(parents=True, exist_ok=True)
    for name in names:
        (data / name).write_bytes(_SAMPLES.get(Path(name).suffix, b"text"))
    before = Path.cwd()
    os.chdir(folder)
    opened = _open_in(data)
    try:
        with (
            mock.patch.object(builtins, "open", opened),
            mock.patch.object(io, "open", opened),
            mock.patch.object(time, "sleep"),
            # Every client loads the certificates of the world, for a network that it never sees.
            mock.patch.object(
                ssl, "create_default_context", mock.Mock(return_value=ssl.create_default_context())
            ),
            mock.patch.dict(os.environ, {"UNITTEST_ON_FORGE": "1"}),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        os.chdir(before)


def collect() -> list[Case]:
    """Every table item and every test function that takes a client, in the order of the files."""
    helper = importlib.import_module(f"{PACKAGE}.pytest_helper")
    cases: list[Case] = []
    for path in sorted(ROOT.rglob("test_*.py")):
        module_name = _name(path)
        if str(path.parent.relative_to(ROOT)) not in (*_FOLDERS, *_SHARED) or module_name in _LEFT_OUT:
            continue
        if not re.search(r"\(client\)|TestTableItem", path.read_text("utf-8")):
            continue
        # The SDK looks for mcp when it runs, so the pretended one is there for the import only.
        with (
            mock.patch.object(helper, "setup") as setup,
            _pretended_mcp(),
        ):
            module = importlib.import_module(f"{PACKAGE}.{module_name}")
        for call in setup.call_args_list:
            # One test file imports another: its table belongs to it all the same.
            cases.extend(_table_cases(_name(Path(call.kwargs["file"])), call.kwargs))
        cases.extend(_function_cases(module_name, module))
    return cases


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def _table_cases(module_name: str, table: Mapping[str, Any]) -> Iterator[Case]:
    for item in table.get("test_table") or ():
        refusals = {"studio": item.exception_if_mldev, "vertex": item.exception_if_vertex}
        yield Case(
            f"{module_name}::{item.name}",
            _asker(table["test_method"], item.parameters, table.get("globals_for_file") or {}),
            dict(table.get("http_options") or {}),
            {surface: words for surface, words in refusals.items() if words},
        )


def _asker(method: str, parameters: Any, names: dict[str, Any]) -> Callable[[Any], None]:
    def ask(client: Any) -> None:
        if method in names:
            names[method](client, parameters)
            return
        target = client
        for name in method.split("."):
            target = getattr(target, name)
        answer = target(**vars(parameters))
        if inspect.isgenerator(answer):
            list(answer)

    return ask


def _function_cases(module_name: str, module: python_types.ModuleType) -> Iterator[Case]:
    for name, function in vars(module).items():
        if not name.startswith("test_") or not inspect.isfunction(function):
            continue
        marks = {mark.name for mark in getattr(function, "pytestmark", ())}
        if function.__module__ != module.__name__ or marks & {"skip", "skipif", "parametrize"}:
            continue
        if list(inspect.signature(function).parameters) == ["client"]:
            yield Case(f"{module_name}::{name}", _runner(function), {}, None)


def _runner(function: Callable[[Any], Any]) -> Callable[[Any], None]:
    def run(client: Any) -> None:
        result = function(client)
        if inspect.iscoroutine(result):
            asyncio.run(result)

    return run


def _open_in(data: Path) -> Callable[..., Any]:
    """`open` that finds the suite's media files in our folder, wherever it looks for them."""
    real = io.open

    def opened(file: Any, *rest: Any, **options: Any) -> Any:
        path = str(file)
        if PACKAGE.replace(".", "/") in path and "/data/" in path:
            file = data / Path(path).name
        return real(file, *rest, **options)

    return opened


@contextlib.contextmanager
def _pretended_mcp() -> Iterator[None]:
    """Names to import: of a package that we do not have."""
    package, kinds = python_types.ModuleType("mcp"), python_types.ModuleType("mcp.types")
    package.types, package.ClientSession = kinds, object  # type: ignore[attr-defined]
    sys.modules |= {"mcp": package, "mcp.types": kinds}
    try:
        yield
    finally:
        del sys.modules["mcp"], sys.modules["mcp.types"]


def _png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


_SAMPLES = {
    ".png": _png(),
    ".jpg": b"\xff\xd8\xff\xe0" + bytes(64) + b"\xff\xd9",
    ".pdf": b"%PDF-1.4\n%%EOF\n",
    ".mp4": b"\0\0\0\x18ftypmp42" + bytes(64),
    ".m4a": b"\0\0\0\x18ftypM4A " + bytes(64),
    ".wav": b"RIFF\x24\0\0\0WAVEfmt " + bytes(40),
}
