"""One gateway process: prepare the process, open the application, and run its life cycle.

`python -m dragoman.process.worker` runs one worker of a supervisor. It reads its configuration as a line of
JSON from standard input, reports on standard output that it is ready or why not, and stops when standard
input is closed.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable

import msgspec

from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.gateway.app import open_gateway_app
from dragoman.incremental.lru import set_shared_limit
from dragoman.observe.logs import configure_logging
from dragoman.process.lifecycle import GatewayProcess
from dragoman.process.serve import bind
from dragoman.process.supervisor import WorkerConfig, WorkerReady
from dragoman.process.tuning import fit_limits_to_descriptors, run_loop, tune_malloc


def main() -> None:
    line = sys.stdin.buffer.readline()
    if not line:  # the supervisor has exited
        return
    config = msgspec.json.decode(line, type=WorkerConfig)
    threading.Thread(target=_stop_with_stdin, daemon=True).start()
    try:
        listener = bind(config.address, config.port, config.config.server, shared=True)
        run_gateway(config.config, config.admin_keys, listener, lambda: _report(WorkerReady()))
    except ConfigError as error:
        _report(WorkerReady(wrong=error.message, where=error.where))
        raise SystemExit(2) from None


def run_gateway(
    config: Config, admin_keys: tuple[str, ...], listener: socket.socket, on_ready: Callable[[], None]
) -> None:
    """Serve until SIGINT or SIGTERM; state is stored in `config.home`, which must exist."""
    config = fit_limits_to_descriptors(config)
    tune_malloc()
    set_shared_limit(config.server.cache_bytes)
    run_loop(_run(config, admin_keys, listener, on_ready))


async def _run(
    config: Config, admin_keys: tuple[str, ...], listener: socket.socket, on_ready: Callable[[], None]
) -> None:
    async with open_gateway_app(config, admin_keys) as app:
        configure_logging(app.gateway.redactor, form=config.observe.log_format)
        await GatewayProcess(app, listener).run(on_ready)


def _report(ready: WorkerReady) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(ready) + b"\n")
    sys.stdout.flush()


def _stop_with_stdin() -> None:
    """Stop when the supervisor closes standard input, which happens however it dies."""
    while os.read(0, 1024):  # not sys.stdin: its lock would be held at interpreter shutdown
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
