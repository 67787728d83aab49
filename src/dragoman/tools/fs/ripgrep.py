"""Searching with ripgrep, which is fast but opens files by their names: it is trusted with hints only.

A directory may become a link while ripgrep walks. So every line it reports is read again through the sandbox,
and shown from there or not at all; what is ignored or secret is decided again, too, by our own rules.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import os
import shutil
from collections.abc import AsyncGenerator

import msgspec

from dragoman.tools.errors import ToolError
from dragoman.tools.fs.children import started
from dragoman.tools.fs.glob import Glob
from dragoman.tools.fs.search import Engine, Hit, Query, python_engine
from dragoman.tools.fs.text import detect
from dragoman.tools.fs.tree import Wanted, list_tree
from dragoman.tools.sandbox import Sandbox

_OPTIONS = (
    "--no-config --json --hidden --no-messages --no-follow --no-require-git --no-ignore-global "
    "--no-ignore-dot --no-ignore-exclude --no-ignore-parent --glob=!.git"
).split()
_ENOUGH = 20  # hints for each line that is wanted: some are dropped, and sorting wants to see them all
_FAILED = 2  # ripgrep's exit code; 1 is "nothing found"


class Text(msgspec.Struct, frozen=True):
    """A string of ripgrep's JSON: text, or base64 where it is no UTF-8."""

    text: str = ""
    bytes: str = ""

    def __str__(self) -> str:
        return self.text or base64.b64decode(self.bytes).decode("latin-1")


class Submatch(msgspec.Struct, frozen=True):
    start: int = 0


class Hint(msgspec.Struct, frozen=True):
    path: Text = Text()
    lines: Text = Text()
    line_number: int = 0
    submatches: tuple[Submatch, ...] = (Submatch(),)


class Message(msgspec.Struct, frozen=True):
    type: str
    data: Hint = Hint()


def find_ripgrep(sandbox: Sandbox, name: str = "rg") -> str:
    """The program, unless the project brought it along; empty when there is none."""
    found = shutil.which(name)
    if not found or not os.path.isdir("/proc/self/fd"):
        return ""
    real = os.path.realpath(found)
    return "" if sandbox.inside(real) is not None else real


def ripgrep_engine(program: str) -> Engine:
    """Patterns that ripgrep does not understand (look-around…) are left to Python."""

    async def engine(sandbox: Sandbox, query: Query) -> AsyncGenerator[Hit]:
        with sandbox.directory(query.path) as (folder, real):
            hints = await _hints(program, folder, query)
        witness = _Witness(sandbox, query, f"{real}/" if real else "")
        confirmed = await asyncio.to_thread(witness.confirmed, hints or [])
        # A flood of hints that were dropped may hide good ones: Python looks at every file.
        flooded = hints is not None and _is_flood(hints, query) and len(confirmed) <= query.max_results
        if hints is not None and not flooded:
            for hit in confirmed:
                yield hit
            return
        async with contextlib.aclosing(python_engine(sandbox, query)) as hits:
            async for hit in hits:
                yield hit

    return engine


async def _hints(program: str, folder: int, query: Query) -> list[Hint] | None:
    """Sorted; when there are too many, those that come first by ripgrep's own, slower, order."""
    found = await _run(program, folder, query, [])
    if found is not None and _is_flood(found, query):
        found = await _run(program, folder, query, ["--sort=path"])
    return found and sorted(found, key=lambda hint: (_order(str(hint.path)), hint.line_number))


async def _run(program: str, folder: int, query: Query, more: list[str]) -> list[Hint] | None:
    options = [*_OPTIONS, *more, f"--max-filesize={query.max_file_bytes}", f"--regexp={query.pattern}"]
    if query.include_ignored:
        options.append("--no-ignore")
    if "/" not in query.glob:  # a type is about names, and unlike --glob leaves .gitignore in force
        options += ["--type-add", f"wanted:{query.glob}", "--type", "wanted"]
    hints: list[Hint] = []
    cwd = f"/proc/{os.getpid()}/fd/{folder}"
    async with started([program, *options, "--", "."], cwd=cwd) as child:
        async with contextlib.aclosing(child.lines()) as lines:
            async for line in lines:
                message = msgspec.json.decode(line, type=Message)
                if message.type == "match":
                    hints.append(message.data)
                if _is_flood(hints, query):
                    break
        return None if child.code == _FAILED and not hints else hints


def _is_flood(hints: list[Hint], query: Query) -> bool:
    return len(hints) >= query.max_results * _ENOUGH


class _Witness:
    """Reads again what ripgrep reported, through the sandbox; `prefix` is where ripgrep stood."""

    def __init__(self, sandbox: Sandbox, query: Query, prefix: str) -> None:
        self._sandbox = sandbox
        self._query = query
        self._prefix = prefix
        self._glob = Glob(query.glob)
        self._folder: tuple[str, set[str]] = ("\0", set())
        self._file: tuple[str, list[str]] = ("\0", [])

    def confirmed(self, hints: list[Hint]) -> list[Hit]:
        """One more than wanted, at most: that says there are more."""
        return list(itertools.islice(filter(None, map(self._check, hints)), self._query.max_results + 1))

    def _check(self, hint: Hint) -> Hit | None:
        path = self._prefix + str(hint.path).removeprefix("./")
        said = str(hint.lines).rstrip("\r\n")
        try:
            lines = self._lines(path) if self._is_wanted(path) else []
        except ToolError:  # gone, a link by now, a secret
            return None
        if not 0 < hint.line_number <= len(lines) or lines[hint.line_number - 1] != said:
            return None
        column = len(said.encode()[: hint.submatches[0].start].decode("utf-8", "ignore")) + 1
        return Hit(path=path, line=hint.line_number, column=column, text=said)

    def _is_wanted(self, path: str) -> bool:
        folder, slash, name = path.rpartition("/")
        if not self._glob.pick((folder + slash)[len(self._prefix) :], [name]):
            return False
        if folder != self._folder[0]:
            wanted = Wanted(glob=Glob("/*"), include_ignored=self._query.include_ignored)
            self._folder = (folder, set(list_tree(self._sandbox, folder, wanted)))
        return path in self._folder[1]

    def _lines(self, path: str) -> list[str]:
        if path != self._file[0]:
            with self._sandbox.place(path) as place:
                data, _ = place.read(self._query.max_file_bytes)
            encoding = detect(data)
            text = encoding.decode(data) if encoding else ""
            self._file = (path, [line.rstrip("\r") for line in text.split("\n")])
        return self._file[1]


def _order(path: str) -> list[tuple[bool, str]]:
    """A folder's own files come before those of its folders, as in a listing."""
    *folders, name = path.split("/")
    return [*((True, folder) for folder in folders), (False, name)]
