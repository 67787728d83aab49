"""A real terminal for tests: a program on a pseudo-terminal, keys in, what it printed out."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

ENTER, ALT_ENTER, CTRL_C, CTRL_D, UP = "\r", "\x1b\r", "\x03", "\x04", "\x1b[A"

_WHERE_IS_THE_CURSOR = b"\x1b[6n"
_SEQUENCE = re.compile(r"\x1b(\[[0-9;?<>=]*[A-Za-z]|\][^\x07\x1b]*(\x07|\x1b\\)|[()][A-Z0-9]|[=>78cM])")
_PATIENCE_S = 20.0


class Terminal:
    """`type` keys, `wait` for words; words that were waited for are behind us."""

    def __init__(
        self, command: list[str], *, cwd: Path, env: dict[str, str], columns: int = 100, rows: int = 40
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,
        )
        os.close(slave)
        self.raw = b""
        self._seen = 0

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def wait(self, words: str) -> str:
        """What was printed up to these words, without the sequences a terminal obeys."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            text = self.text
            place = text.find(words, self._seen)
            if place >= 0:
                before, self._seen = text[self._seen : place], place + len(words)
                return before
            if time.monotonic() > deadline or not self._read():
                raise AssertionError(
                    f"{words!r} did not come; since the last words came:\n{text[self._seen :]}"
                )

    @property
    def text(self) -> str:
        return _SEQUENCE.sub("", self.raw.decode("utf-8", "replace")).replace("\r", "")

    def finish(self) -> int:
        """The exit code, once the program has ended by itself."""
        while self._read():
            pass
        return self._process.wait(_PATIENCE_S)

    def kill(self) -> None:
        """kill -9: nothing can be saved any more."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        self.kill()
        os.close(self._master)

    def _read(self) -> bool:
        """Whether the program is still there."""
        ready, _, _ = select.select([self._master], [], [], 1.0)
        if not ready:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux: the other end is closed
            return False
        if _WHERE_IS_THE_CURSOR in data:
            os.write(self._master, b"\x1b[1;1R")
        self.raw += data
        return bool(data)
