"""Search files for a regular expression in a separate process, which can be killed; uses only the standard library.

Standard input: a line of JSON (`folder`, the descriptor of the root; `pattern`; `max_hits`; `max_bytes`;
`cpu_s`), then paths below the root, separated by NUL. Standard output: a line of JSON per match,
`[path, line, column, text]`, or a string with the error if the pattern does not compile.
"""

import contextlib
import json
import os
import re
import resource
import stat
import sys

_ENTER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_BOMS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be", b"\xef\xbb\xbf": "utf-8"}


class Opener:
    """Reads files below the root without following symlinks; keeps the last directory open for the next file."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._path = ""
        self._folder = os.dup(root)

    def read(self, path: str, max_bytes: int) -> bytes:
        """Return the content of a regular file, or b"" if it is not regular or longer than `max_bytes`."""
        folder, _, name = path.rpartition("/")
        if folder != self._path:
            self._enter(folder)
        descriptor = os.open(name, _READ, dir_fd=self._folder)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > max_bytes:
                return b""
            return os.read(descriptor, status.st_size)
        finally:
            os.close(descriptor)

    def _enter(self, path: str) -> None:
        os.close(self._folder)
        self._path, self._folder = "", os.dup(self._root)
        for name in path.split("/") if path else ():
            inner = os.open(name, _ENTER, dir_fd=self._folder)
            os.close(self._folder)
            self._folder = inner
        self._path = path


def text_of(data: bytes) -> str:
    """Decode a file, with \\n as line ends; return "" for binary data."""
    for bom, encoding in _BOMS.items():
        if data.startswith(bom):
            return data[len(bom) :].decode(encoding, "replace").replace("\r\n", "\n")
    if b"\0" in data:
        return ""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return text.replace("\r\n", "\n")


def hits_in(text: str, pattern: "re.Pattern[str]") -> "list[tuple[int, int, str]]":
    """Return line, column and text of the first match in each line; both numbers count from 1.

    Matches never span lines. The search in the whole text is a fast check, which \\A and \\Z would defeat.
    """
    if not pattern.search(text) and not re.search(r"\\[AZ]", pattern.pattern):
        return []
    lines = text.removesuffix("\n").split("\n") if text else []
    found = ((number, pattern.search(line), line) for number, line in enumerate(lines, 1))
    return [(number, match.start() + 1, line) for number, match, line in found if match]


def main() -> None:
    query = json.loads(sys.stdin.buffer.readline())
    # The parent may die before it can kill this process, so the kernel limits its CPU time.
    resource.setrlimit(resource.RLIMIT_CPU, (query["cpu_s"], query["cpu_s"]))
    try:
        pattern = re.compile(query["pattern"], re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        print(json.dumps(f"{error}"))  # noqa: T201
        return
    left = query["max_hits"]
    opener = Opener(query["folder"])
    for path in os.fsdecode(sys.stdin.buffer.read()).split("\0"):
        hits: list[tuple[int, int, str]] = []
        with contextlib.suppress(OSError):  # deleted, replaced by a symlink, or not readable
            hits = hits_in(text_of(opener.read(path, query["max_bytes"])), pattern)[:left]
        for line, column, text in hits:
            print(json.dumps([path, line, column, text[:2000]]), flush=True)  # noqa: T201
        left -= len(hits)
        if left <= 0:
            return


if __name__ == "__main__":
    main()
