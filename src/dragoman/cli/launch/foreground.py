"""Run a program in the foreground as a shell does: with the terminal, signals and exit code."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from types import FrameType

from dragoman.cli.terminal import CommandError

SignalHandler = Callable[[int, FrameType | None], None]


def run_foreground(command: list[str], env: Mapping[str, str]) -> int:
    """Return the exit code of the program, 128 + N if signal N ended it."""
    try:
        child = subprocess.Popen(command, env=dict(env))  # noqa: S603
    except OSError as error:
        raise CommandError(f"{command[0]} cannot be started: {error.strerror}") from None
    with _forward_signals(child):
        code = _wait(child)
    return 128 - code if code < 0 else code


@contextlib.contextmanager
def signal_handlers(handlers: Mapping[signal.Signals, SignalHandler]) -> Iterator[None]:
    """Install signal handlers for the duration of the block."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _forward_signals(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Forward signals that are sent only to this process; the terminal sends Ctrl-C to the child as well."""

    def ignore(_number: int, _frame: FrameType | None) -> None:
        """Do nothing. SIG_IGN would be inherited by programs that are started meanwhile."""

    def forward(number: int, _frame: FrameType | None) -> None:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, number)

    handlers = {signal.SIGINT: ignore, signal.SIGTERM: forward}
    if hasattr(signal, "SIGHUP"):
        handlers[signal.SIGHUP] = forward
    with signal_handlers(handlers):
        yield


def _wait(child: subprocess.Popen[bytes]) -> int:
    if os.name != "posix":
        return child.wait()
    while True:
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):  # Ctrl-Z: the shell shows its prompt only if this process stops too
            os.kill(os.getpid(), signal.SIGSTOP)
            os.kill(child.pid, signal.SIGCONT)
            continue
        child.returncode = os.waitstatus_to_exitcode(status)
        return child.returncode
