"""A gateway for a launcher: a running one, or a child process that ends with the client."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from dragoman.cli.settings import Settings, make_state_folder
from dragoman.cli.terminal import CommandError, spinner
from dragoman.config import is_loopback

START_S = 30.0
STOP_S = 5.0
_POLL_S = 0.05
_LOG_FILE = "launcher.log"
_MAX_LOG_BYTES = 4 * 1024 * 1024


@contextlib.contextmanager
def open_gateway(settings: Settings, token: str) -> Iterator[str]:
    """Yield the base URL of a gateway that accepts `token`; stop it at the end if it was started here."""
    server = settings.config.server
    host = server.host if is_loopback(server.host) else "127.0.0.1"
    if server.port and _is_usable(host, server.port, token, settings.config.backend):
        yield _url(host, server.port)
        return
    with start_gateway(host, settings.home, os.environ) as port:
        yield _url(host, port)


@contextlib.contextmanager
def start_gateway(host: str, home: Path, env: Mapping[str, str]) -> Iterator[int]:
    """Start a gateway for the duration of the block and yield its port; its output goes to a log in `home`."""
    port = _free_port(host)
    with _open_log(home) as log:
        child = _start(host, port, log, env)
        try:
            with spinner("starting the gateway"):
                _await_ready(child, host, port, log)
            yield port
        finally:
            _stop(child)


def _is_usable(host: str, port: int, token: str, backend: str) -> bool:
    """Return whether a Dragoman gateway with this key and backend runs there."""
    health = get_health(host, port)
    if health is None or health.get("service") != "dragoman" or health.get("backend", backend) != backend:
        return False
    headers = {"authorization": f"Bearer {token}", "anthropic-version": "2023-06-01"}
    return _get(host, port, "/v1/models", headers) is not None


def get_health(host: str, port: int) -> dict[str, object] | None:
    """Return the answer of `/healthz`, None if there is no gateway."""
    return _get(host, port, "/healthz", {})


def _get(host: str, port: int, path: str, headers: Mapping[str, str]) -> dict[str, object] | None:
    """Return a JSON object, None for anything else; never use a proxy."""
    connection = http.client.HTTPConnection(host, port, timeout=2)
    try:
        connection.request("GET", path, headers=dict(headers))
        response = connection.getresponse()
        body = json.loads(response.read(1_000_000))
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return body if response.status == 200 and isinstance(body, dict) else None


def _free_port(host: str) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _open_log(home: Path) -> BinaryIO:
    """Open the log for the output of the child, because the terminal belongs to the client."""
    path = make_state_folder(home) / _LOG_FILE
    fresh = os.O_TRUNC if path.exists() and path.stat().st_size > _MAX_LOG_BYTES else 0
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | fresh, 0o600)
    log = os.fdopen(descriptor, "r+b", buffering=0)
    log.seek(0, os.SEEK_END)
    return log


def _start(host: str, port: int, log: BinaryIO, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-P",  # do not import from the working directory: it may be an untrusted project
        "-m",
        "dragoman",
        "serve",
        "--host",
        host,
        "--port",
        str(port),
        "--until-stdin-closes",
    ]
    # Start a new session, so that Ctrl-C in the terminal reaches only the client.
    return subprocess.Popen(  # noqa: S603
        command, env=dict(env), stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
    )


def _await_ready(child: subprocess.Popen[bytes], host: str, port: int, log: BinaryIO) -> None:
    start = log.tell()
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        health = get_health(host, port)
        if health is not None and health.get("service") == "dragoman":
            return
        if child.poll() is not None:
            raise _child_failure(log, start, child.returncode)
        time.sleep(_POLL_S)
    raise CommandError(f"the gateway did not start within {START_S:.0f} s", hint=f"its log is {log.name}")


def _child_failure(log: BinaryIO, start: int, code: int) -> CommandError:
    log.seek(start)
    lines = log.read().decode("utf-8", "replace").strip().splitlines()
    why = next(
        (line.partition("error:")[2].strip() for line in lines if "error:" in line), f"exit code {code}"
    )
    hint = next(
        (line.partition("hint:")[2].strip() for line in lines if "hint:" in line), "try dragoman serve"
    )
    return CommandError(f"the gateway did not start: {why}", hint=hint, code=code if code == 2 else 1)


def _stop(child: subprocess.Popen[bytes]) -> None:
    if child.stdin is not None:
        child.stdin.close()
    child.terminate()
    try:
        child.wait(STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
