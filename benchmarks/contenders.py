"""Start the servers that are measured, each in its own process: fake Gemini, plain proxy, Dragoman, other gateways."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import msgspec

from benchmarks.http_client import GATEWAY_KEY
from benchmarks.peers import Peer
from benchmarks.procfs import rss_kib, tree
from benchmarks.request_encoders import Style

_ROOT = Path(__file__).parents[1]
_START_S = 20.0
_PEER_START_S = 180.0
_OURS: tuple[Style, ...] = ("anthropic", "openai_chat", "openai_responses", "gemini", "bedrock", "amazonq")
_STOP_S = 10.0
_URL = re.compile(r"http://[\d.]+:\d+")

#: With the fastest options of each server.
ASGI_SERVERS = {
    "uvicorn": (
        *("uvicorn", "--factory", "dragoman.asgi:app", "--port", "{port}"),
        *("--loop", "uvloop", "--http", "httptools", "--log-level", "warning", "--no-access-log"),
    ),
    "hypercorn": (
        *("hypercorn", "dragoman.asgi:app()", "--bind", "127.0.0.1:{port}"),
        *("--worker-class", "uvloop", "--log-level", "warning"),
    ),
}
_SETTLE_S = 0.3


class Contender(msgspec.Struct, frozen=True, kw_only=True):
    """A running server; `start_s` is the time until it accepted a connection."""

    name: str
    url: str
    styles: tuple[Style, ...]
    headers: str = ""
    pid: int
    start_s: float
    idle_rss_kib: int

    @property
    def pids(self) -> list[int]:
        return tree(self.pid)


@contextmanager
def start_fake() -> Iterator[Contender]:
    with _run_server("direct", ("floor",), [sys.executable, "-m", "benchmarks.fake_gemini"]) as fake:
        yield fake


@contextmanager
def start_floor(kind: str, upstream: str, folder: Path) -> Iterator[Contender]:
    """Start nginx, or a minimal TCP proxy in Python where nginx is not installed."""
    if kind == "nginx":
        command, url = _nginx_command(upstream, folder)
        with _run_server("nginx", ("floor",), command, url) as floor:
            yield floor
        return
    place = urlsplit(upstream)
    command = [sys.executable, "-m", "benchmarks.tcp_proxy", str(place.hostname), str(place.port)]
    with _run_server("splice", ("floor",), command) as floor:
        yield floor


@contextmanager
def start_dragoman(
    upstream: str, folder: Path, workers: int = 1, before: Path | None = None
) -> Iterator[Contender]:
    """The gateway of this checkout, or of the checkout `before`, on the same interpreter and packages.

    It is started with `dragoman serve` and environment variables, which are the same in every version: the modules
    of the other checkout may have different names.
    """
    name = "before" if before else "dragoman" if workers == 1 else f"dragoman-{workers}"
    command = [sys.executable, "-m", "dragoman", "serve", "--port", "0", "--workers", str(workers)]
    env = _gateway_env(upstream, folder / f"home-{name}")
    env["PYTHONPATH"] = str((before or _ROOT).resolve() / "src")
    with _run_server(name, _OURS, command, env=env) as gateway:
        yield gateway


@contextmanager
def start_asgi_server(name: str, upstream: str, folder: Path) -> Iterator[Contender]:
    """The same application (`dragoman.asgi:app`) on another ASGI server."""
    port = _free_port()
    command = [sys.executable, "-m", *(word.format(port=port) for word in ASGI_SERVERS[name])]
    env = _gateway_env(upstream, folder / f"home-{name}")
    with (
        (folder / f"{name}.log").open("wb") as log,
        _run_server(name, _OURS, command, f"http://127.0.0.1:{port}", log, env) as started,
    ):
        yield started


def _gateway_env(upstream: str, home: Path) -> dict[str, str]:
    """Create the state folder and return the environment of a gateway, without the settings of this machine's user."""
    home.mkdir()
    return {
        "PATH": os.environ.get("PATH", ""),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "HOME": str(home),
        "DRAGOMAN_HOME": str(home),
        "DRAGOMAN_UPSTREAM_BASE_URL": upstream,
        "DRAGOMAN_UPSTREAM_API_KEY": "AIzaBenchmark",
        "DRAGOMAN_GATEWAY_KEY": GATEWAY_KEY,
    }


@contextmanager
def start_peer(peer: Peer, upstream: str, folder: Path) -> Iterator[Contender]:
    """Start another gateway; its output goes to a file, whose end is reported if it does not start."""
    port = _free_port()
    command = peer.prepare(folder, port, upstream)
    log_file = folder / f"{peer.name}.log"
    env = {"HOME": str(folder), "PATH": os.environ.get("PATH", ""), "NO_PROXY": "127.0.0.1", **command.env}
    url = f"http://127.0.0.1:{port}"
    with (
        log_file.open("wb") as log,
        _run_server(peer.name, peer.styles, command.argv, url, log, env) as started,
    ):
        yield msgspec.structs.replace(started, headers=command.headers)


def best_floor() -> str:
    return "nginx" if shutil.which("nginx") else "splice"


def _nginx_command(upstream: str, folder: Path) -> tuple[list[str], str]:
    port = _free_port()
    text = (Path(__file__).parent / "nginx.conf").read_text()
    for word, value in (("DIR", str(folder)), ("PORT", str(port)), ("UPSTREAM", urlsplit(upstream).netloc)):
        text = text.replace(word, value)
    config = folder / "nginx.conf"
    config.write_text(text)
    folder.chmod(0o755)
    return ["nginx", "-c", str(config), "-p", str(folder)], f"http://127.0.0.1:{port}"


@contextmanager
def _run_server(
    name: str,
    styles: tuple[Style, ...],
    command: list[str],
    url: str = "",
    log: IO[bytes] | None = None,
    env: dict[str, str] | None = None,
) -> Iterator[Contender]:
    """Start a server, wait until it is ready, and stop it by its pid; without `url` it prints its URL."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=_ROOT, stdout=log or subprocess.PIPE, stderr=log, env=env, text=True
    )
    try:
        url = url or _read_url(process)
        _wait_for(url, process, _PEER_START_S if log else _START_S)
        start_s = time.perf_counter() - began
        time.sleep(_SETTLE_S)
        yield Contender(
            name=name,
            url=url,
            styles=styles,
            pid=process.pid,
            start_s=start_s,
            idle_rss_kib=rss_kib(tree(process.pid)),
        )
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _read_url(process: subprocess.Popen[str]) -> str:
    """Return the first URL that the server prints, which it does once it accepts connections."""
    for line in process.stdout or ():
        if found := _URL.search(line):
            return found[0]
    raise RuntimeError(f"{process.args!r} did not start")


def _wait_for(url: str, process: subprocess.Popen[str], limit_s: float) -> None:
    place = urlsplit(url)
    deadline = time.perf_counter() + limit_s
    while True:
        try:
            socket.create_connection((place.hostname, place.port), timeout=1).close()
            return
        except OSError:
            if process.poll() is not None or time.perf_counter() > deadline:
                raise RuntimeError(f"{process.args!r} does not answer at {url}") from None
            time.sleep(0.005)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
