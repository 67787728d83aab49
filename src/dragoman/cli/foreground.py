"""Run a program as if it had been started by the shell: it has the terminal, the signals and the exit code."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from types import FrameType

from dragoman.cli.screen import Failure

Handler = Callable[[int, FrameType | None], None]


def run_foreground(command: list[str], env: Mapping[str, str]) -> int:
    """The program's exit code, 128 + N when signal N ended it."""
    try:
        child = subprocess.Popen(command, env=dict(env))  # noqa: S603
    except OSError as error:
        raise Failure(f"{command[0]} cannot be started: {error.strerror}") from None
    with _signals_for(child):
        code = _wait(child)
    return 128 - code if code < 0 else code


@contextlib.contextmanager
def handling(handlers: Mapping[signal.Signals, Handler]) -> Iterator[None]:
    """These handlers inside, the ones from before outside."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _signals_for(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ctrl-C reaches the child from the terminal already; what is sent to us alone is passed on."""

    def ignore(_number: int, _frame: FrameType | None) -> None:
        """A handler and not SIG_IGN, which a program started meanwhile would inherit."""

    def forward(number: int, _frame: FrameType | None) -> None:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, number)

    handlers = {signal.SIGINT: ignore, signal.SIGTERM: forward}
    if hasattr(signal, "SIGHUP"):
        handlers[signal.SIGHUP] = forward
    with handling(handlers):
        yield


def _wait(child: subprocess.Popen[bytes]) -> int:
    if os.name != "posix":
        return child.wait()
    while True:
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):  # Ctrl-Z: the shell gets its prompt back only if we stop too
            os.kill(os.getpid(), signal.SIGSTOP)
            os.kill(child.pid, signal.SIGCONT)
            continue
        child.returncode = os.waitstatus_to_exitcode(status)
        return child.returncode
