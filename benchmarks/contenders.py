"""What is measured, each as a process of its own: the direct way, the floor, Dragoman."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from benchmarks.http import Style
from benchmarks.procfs import rss_kib, tree

_ROOT = Path(__file__).parents[1]
_START_S = 20.0
_STOP_S = 10.0
_SETTLE_S = 0.3


class Contender(msgspec.Struct, frozen=True, kw_only=True):
    """A running server; `start_s` is the time from its start to its first sign of life."""

    name: str
    url: str
    style: Style
    pid: int
    start_s: float
    idle_rss_kib: int

    @property
    def pids(self) -> list[int]:
        return tree(self.pid)


@contextmanager
def start_fake() -> Iterator[Contender]:
    with _running("direct", "gemini", [sys.executable, "-m", "benchmarks.fake"]) as fake:
        yield fake


@contextmanager
def start_floor(kind: str, upstream: str, folder: Path) -> Iterator[Contender]:
    """nginx, or where it is not installed the plainest splice Python can do."""
    if kind == "nginx":
        command, url = _nginx_command(upstream, folder)
        with _running("nginx", "gemini", command, url) as floor:
            yield floor
        return
    place = urlsplit(upstream)
    command = [sys.executable, "-m", "benchmarks.splice", str(place.hostname), str(place.port)]
    with _running("splice", "gemini", command) as floor:
        yield floor


@contextmanager
def start_dragoman(upstream: str, folder: Path) -> Iterator[Contender]:
    home = folder / "home"
    home.mkdir()
    command = [sys.executable, "-m", "benchmarks.gateway", upstream, str(home)]
    with _running("dragoman", "anthropic", command) as gateway:
        yield gateway


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
def _running(name: str, style: Style, command: list[str], url: str = "") -> Iterator[Contender]:
    """Started, ready, and stopped at the end by its own pid; without `url` it says its address itself."""
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True)
    try:
        url = url or _said_url(process)
        _wait_for(url, process)
        start_s = time.perf_counter() - began
        time.sleep(_SETTLE_S)
        yield Contender(
            name=name,
            url=url,
            style=style,
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


def _said_url(process: subprocess.Popen[str]) -> str:
    line = process.stdout.readline() if process.stdout is not None else ""
    word, _, url = line.strip().partition(" ")
    if word != "ready":
        raise RuntimeError(f"{process.args!r} did not start: {line!r}")
    return url


def _wait_for(url: str, process: subprocess.Popen[str]) -> None:
    place = urlsplit(url)
    deadline = time.perf_counter() + _START_S
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
