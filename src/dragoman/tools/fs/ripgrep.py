"""The ripgrep search engine: fast, but its matches are only hints that must be verified.

ripgrep opens files by name, and a directory may be replaced by a symlink while it walks. Therefore every line it
reports is read again through the sandbox, and our own rules decide again which files are ignored or secret.
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
from dragoman.tools.fs.glob import Glob
from dragoman.tools.fs.read import detect_encoding
from dragoman.tools.fs.sandbox import Sandbox
from dragoman.tools.fs.search import SearchEngine, SearchHit, SearchQuery, python_engine, start_process
from dragoman.tools.fs.tree import ListingFilter, list_tree

_OPTIONS = (
    "--no-config --json --hidden --no-messages --no-follow --no-require-git --no-ignore-global "
    "--no-ignore-dot --no-ignore-exclude --no-ignore-parent --glob=!.git"
).split()
_HINTS_PER_RESULT = 20  # hints per wanted result: some are dropped, and sorting needs all of them
_FAILED = 2  # ripgrep's exit code for errors; 1 means no match


class RipgrepText(msgspec.Struct, frozen=True):
    """A string in ripgrep's JSON output: text, or base64 if it is not valid UTF-8."""

    text: str = ""
    bytes: str = ""

    def __str__(self) -> str:
        return self.text or base64.b64decode(self.bytes).decode("latin-1")


class RipgrepSubmatch(msgspec.Struct, frozen=True):
    start: int = 0


class RipgrepMatch(msgspec.Struct, frozen=True):
    """A matching line as ripgrep reports it, before it is verified."""

    path: RipgrepText = RipgrepText()
    lines: RipgrepText = RipgrepText()
    line_number: int = 0
    submatches: tuple[RipgrepSubmatch, ...] = (RipgrepSubmatch(),)


class RipgrepMessage(msgspec.Struct, frozen=True):
    """One line of ripgrep's JSON output."""

    type: str
    data: RipgrepMatch = RipgrepMatch()


def find_ripgrep(sandbox: Sandbox, name: str = "rg") -> str:
    """Return the path of ripgrep, or "" if it cannot be used.

    It needs /proc/self/fd, and a program that is part of the project is not trusted.
    """
    found = shutil.which(name)
    if not found or not os.path.isdir("/proc/self/fd"):
        return ""
    real = os.path.realpath(found)
    return "" if sandbox.relative_names(real) is not None else real


def ripgrep_engine(program: str) -> SearchEngine:
    """Return an engine that uses ripgrep, and Python for patterns that ripgrep rejects, such as look-around."""

    async def engine(sandbox: Sandbox, query: SearchQuery) -> AsyncGenerator[SearchHit]:
        with sandbox.open_directory(query.path) as (folder, real):
            hints = await _hints(program, folder, query)
        verifier = _Verifier(sandbox, query, f"{real}/" if real else "")
        confirmed = await asyncio.to_thread(verifier.verify, hints or [])
        # If there were too many hints and most were dropped, valid ones may be missing: search with Python.
        incomplete = hints is not None and _too_many(hints, query) and len(confirmed) <= query.max_results
        if hints is not None and not incomplete:
            for hit in confirmed:
                yield hit
            return
        async with contextlib.aclosing(python_engine(sandbox, query)) as hits:
            async for hit in hits:
                yield hit

    return engine


async def _hints(program: str, folder: int, query: SearchQuery) -> list[RipgrepMatch] | None:
    """Return sorted hints, or None if ripgrep failed.

    If there are too many, run again with ripgrep's slower sorted mode, to get the first ones by path.
    """
    found = await _run(program, folder, query, [])
    if found is not None and _too_many(found, query):
        found = await _run(program, folder, query, ["--sort=path"])
    return found and sorted(found, key=lambda hint: (_sort_key(str(hint.path)), hint.line_number))


async def _run(program: str, folder: int, query: SearchQuery, more: list[str]) -> list[RipgrepMatch] | None:
    options = [*_OPTIONS, *more, f"--max-filesize={query.max_file_bytes}", f"--regexp={query.pattern}"]
    if query.include_ignored:
        options.append("--no-ignore")
    if "/" not in query.glob:  # unlike --glob, a type does not override .gitignore
        options += ["--type-add", f"wanted:{query.glob}", "--type", "wanted"]
    hints: list[RipgrepMatch] = []
    cwd = f"/proc/{os.getpid()}/fd/{folder}"
    async with start_process([program, *options, "--", "."], cwd=cwd) as child:
        async with contextlib.aclosing(child.lines()) as lines:
            async for line in lines:
                message = msgspec.json.decode(line, type=RipgrepMessage)
                if message.type == "match":
                    hints.append(message.data)
                if _too_many(hints, query):
                    break
        return None if child.exit_code == _FAILED and not hints else hints


def _too_many(hints: list[RipgrepMatch], query: SearchQuery) -> bool:
    return len(hints) >= query.max_results * _HINTS_PER_RESULT


class _Verifier:
    """Verifies hints by reading the lines again through the sandbox; `prefix` is ripgrep's working directory."""

    def __init__(self, sandbox: Sandbox, query: SearchQuery, prefix: str) -> None:
        self._sandbox = sandbox
        self._query = query
        self._prefix = prefix
        self._glob = Glob(query.glob)
        self._folder: tuple[str, set[str]] = ("\0", set())
        self._file: tuple[str, list[str]] = ("\0", [])

    def verify(self, hints: list[RipgrepMatch]) -> list[SearchHit]:
        """Return the verified hits, at most one more than wanted, which shows that there are more."""
        return list(itertools.islice(filter(None, map(self._check, hints)), self._query.max_results + 1))

    def _check(self, hint: RipgrepMatch) -> SearchHit | None:
        path = self._prefix + str(hint.path).removeprefix("./")
        line_text = str(hint.lines).rstrip("\r\n")
        try:
            lines = self._lines(path) if self._is_wanted(path) else []
        except ToolError:  # deleted, replaced by a symlink, or secret
            return None
        if not 0 < hint.line_number <= len(lines) or lines[hint.line_number - 1] != line_text:
            return None
        column = len(line_text.encode()[: hint.submatches[0].start].decode("utf-8", "ignore")) + 1
        return SearchHit(path=path, line=hint.line_number, column=column, text=line_text)

    def _is_wanted(self, path: str) -> bool:
        folder, slash, name = path.rpartition("/")
        if not self._glob.filter_names((folder + slash)[len(self._prefix) :], [name]):
            return False
        if folder != self._folder[0]:
            wanted = ListingFilter(glob=Glob("/*"), include_ignored=self._query.include_ignored)
            self._folder = (folder, set(list_tree(self._sandbox, folder, wanted)))
        return path in self._folder[1]

    def _lines(self, path: str) -> list[str]:
        if path != self._file[0]:
            with self._sandbox.open_entry(path) as entry:
                data, _ = entry.read(self._query.max_file_bytes)
            encoding = detect_encoding(data)
            text = encoding.decode(data) if encoding else ""
            self._file = (path, [line.rstrip("\r") for line in text.split("\n")])
        return self._file[1]


def _sort_key(path: str) -> list[tuple[bool, str]]:
    """Return the sort key of a path: a folder's files come before those of its subfolders, as in a listing."""
    *folders, name = path.split("/")
    return [*((True, folder) for folder in folders), (False, name)]
