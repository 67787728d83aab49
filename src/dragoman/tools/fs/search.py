"""Search the files of a project with one of two engines: ripgrep if it is installed, Python otherwise.

This module has the interface and the Python engine, which runs `grep_child` in a process that can be killed;
`ripgrep` has the other one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from pathlib import Path

import msgspec

from dragoman.tools.errors import ToolFailed
from dragoman.tools.fs import grep_child
from dragoman.tools.fs.glob import Glob
from dragoman.tools.fs.sandbox import Sandbox
from dragoman.tools.fs.tree import ListingFilter, list_tree

_MAX_LINE_BYTES = 16 * 1024 * 1024


class ChildProcess:
    """A running child process; `code` is set once it has exited by itself."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.exit_code: int | None = None

    async def lines(self) -> AsyncGenerator[bytes]:
        assert self._process.stdout  # noqa: S101  (a pipe, see below)
        async for line in self._process.stdout:
            yield line
        self.exit_code = await self._process.wait()


@contextlib.asynccontextmanager
async def start_process(
    argv: Sequence[str], *, stdin: bytes = b"", cwd: str = "/", keep: Sequence[int] = ()
) -> AsyncIterator[ChildProcess]:
    """Start a program with an empty environment; `keep` are the descriptors it inherits. Kill it at the end."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=cwd,
        env={},
        pass_fds=keep,
        limit=_MAX_LINE_BYTES,
    )
    feeding = asyncio.ensure_future(_feed(process, stdin))
    try:
        yield ChildProcess(process)
    finally:
        feeding.cancel()
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await asyncio.gather(feeding, process.wait(), return_exceptions=True)
        if process.stdout:
            await process.stdout.read()  # read to the end, so that the pipe's transport is closed


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin  # noqa: S101
    with contextlib.suppress(ConnectionError):  # the child exited before it had read everything
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


_MAX_LINE_CHARS = 500
_FIRST_FILES = 2000
_MAX_CPU_S = 60  # limit for a child process that outlives us


class SearchQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A search: a regular expression, and the files to search in."""

    pattern: str
    path: str = "."
    glob: str = "**/*"
    max_results: int = 100
    include_ignored: bool = False
    max_file_bytes: int = 1024 * 1024


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """The first match in a line; line and column count from 1, columns in characters."""

    path: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        text = self.text if len(self.text) <= _MAX_LINE_CHARS else f"{self.text[:_MAX_LINE_CHARS]}…"
        return f"{self.path}:{self.line}:{self.column}: {text}"


class SearchResults(msgspec.Struct, frozen=True, kw_only=True):
    """The hits, and a note if they are incomplete."""

    hits: list[SearchHit]
    note: str = ""


#: Yields hits in a stable order, as they are found.
SearchEngine = Callable[[Sandbox, SearchQuery], AsyncGenerator[SearchHit]]


async def search(
    sandbox: Sandbox, query: SearchQuery, engine: SearchEngine, *, timeout_s: float
) -> SearchResults:
    """Return at most `max_results` hits. After `timeout_s` return what was found so far, with a note.

    Raises `ToolFailed` for an invalid pattern, or if nothing was found before the timeout.
    """
    if "\0" in query.pattern or not _is_unicode(query.pattern):
        raise ToolFailed("the pattern contains a character that no text has")
    hits: list[SearchHit] = []
    work = asyncio.ensure_future(_collect(engine(sandbox, query), query.max_results, hits))
    try:
        done, _ = await asyncio.wait({work}, timeout=timeout_s)
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    if not done:
        note = f"the search was stopped after {timeout_s:g} s: a simpler pattern or fewer files would help"
        if not hits:
            raise ToolFailed(note)
        return SearchResults(hits=hits, note=note)
    work.result()
    note = f"only the first {query.max_results} lines are shown" if len(hits) > query.max_results else ""
    return SearchResults(hits=hits[: query.max_results], note=note)


async def _collect(found: AsyncGenerator[SearchHit], limit: int, hits: list[SearchHit]) -> None:
    """Append hits to `hits`, where they survive a timeout; one more than the limit shows that there are more."""
    async with contextlib.aclosing(found):
        async for hit in found:
            hits.append(hit)
            if len(hits) > limit:
                return


async def python_engine(sandbox: Sandbox, query: SearchQuery) -> AsyncGenerator[SearchHit]:
    """Search in a child process, which opens files relative to the root's descriptor without following symlinks."""
    wanted = ListingFilter(glob=Glob(query.glob), include_ignored=query.include_ignored)
    some = msgspec.structs.replace(wanted, limit=_FIRST_FILES)
    found = 0
    for listed in (some, wanted):  # a frequent match is found before all files are listed
        paths = await asyncio.to_thread(list_tree, sandbox, query.path, listed)
        chosen = paths if listed is some else paths[_FIRST_FILES:]
        async with contextlib.aclosing(_in_child(sandbox, query, chosen)) as hits:
            async for hit in hits:
                found += 1
                yield hit
        if found > query.max_results or len(paths) < _FIRST_FILES:
            return


async def _in_child(sandbox: Sandbox, query: SearchQuery, paths: list[str]) -> AsyncGenerator[SearchHit]:
    readable = [path for path in paths if not any(map(sandbox.names.refusal, path.split("/")))]
    with sandbox.open_directory(".") as (root, _):
        order = {
            "folder": root,
            "pattern": query.pattern,
            "max_hits": query.max_results + 1,
            "max_bytes": query.max_file_bytes,
            "cpu_s": _MAX_CPU_S,
        }
        argv = [sys.executable, "-I", "-S", str(Path(grep_child.__file__))]
        stdin = msgspec.json.encode(order) + b"\n" + b"\0".join(map(os.fsencode, readable))
        async with start_process(argv, stdin=stdin, keep=(root,)) as child:
            async for line in child.lines():
                yield _decode_hit(line)


def _decode_hit(line: bytes) -> SearchHit:
    found = msgspec.json.decode(line)
    if isinstance(found, str):
        raise ToolFailed(f"the pattern is no regular expression: {found}")
    path, number, column, text = found
    return SearchHit(path=path, line=number, column=column, text=text)


def _is_unicode(pattern: str) -> bool:
    try:
        pattern.encode()
    except UnicodeEncodeError:
        return False
    return True
