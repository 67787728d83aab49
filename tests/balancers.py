"""nginx and HAProxy with the files of deploy/, installed if this machine has none and we may."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

DEPLOY = Path(__file__).parents[1] / "deploy"
_PACKAGES = {"nginx": "nginx-light", "haproxy": "haproxy", "bwrap": "bubblewrap"}
_LOCK = Path("/run/lock/dragoman-tests-apt")
_START_S = 10.0


class MissingBalancer(Exception):
    """There is no such program, and it cannot be installed from here."""


def find_program(name: str) -> str:
    found = shutil.which(name)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        with _LOCK.open("w") as lock:  # another test may be at it
            fcntl.flock(lock, fcntl.LOCK_EX)
            subprocess.run(["apt-get", "update", "-qq"], check=False)
            env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
            command = ["apt-get", "install", "-y", "-qq", _PACKAGES[name]]
            subprocess.run(command, check=False, env=env, stdout=subprocess.DEVNULL)
        found = shutil.which(name)
    if found is None:
        raise MissingBalancer(f"these tests need {name}: apt-get install {_PACKAGES[name]}")
    return found


@contextmanager
def balancer(name: str, gateways: Sequence[str], folder: Path) -> Iterator[str]:
    """The program in front of these gateways, as deploy/ says; its own address."""
    port = _free_port()
    command = _COMMANDS[name](folder, _filled(_FILES[name], gateways, port))
    log = folder / f"{name}.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink)
    try:
        _await_answer(port, process, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def _filled(file: str, gateways: Sequence[str], port: int) -> str:
    text = (DEPLOY / file).read_text()
    for number, url in enumerate(gateways, 1):
        assert f"gateway-{number}:8377" in text
        text = text.replace(f"gateway-{number}:8377", urlsplit(url).netloc)
    for public in ("listen 8080;", "bind :8080"):
        text = text.replace(public, public.replace(":8080", "8080").replace("8080", f"127.0.0.1:{port}"))
    return text


def _nginx(folder: Path, text: str) -> list[str]:
    """As this user, in this folder, in the foreground."""
    config = folder / "nginx.conf"
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"  {kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    text = text.replace("pid /tmp/nginx.pid;", f"pid {folder}/nginx.pid;")
    config.write_text(text.replace("http {\n", f"http {{\n{places}"))
    folder.chmod(0o755)
    more = "daemon off; user root; error_log stderr warn;"
    return [find_program("nginx"), "-c", str(config), "-p", str(folder), "-g", more]


def _haproxy(folder: Path, text: str) -> list[str]:
    config = folder / "haproxy.cfg"
    config.write_text(text)
    return [find_program("haproxy"), "-f", str(config), "-db"]


_FILES = {"nginx": "nginx.conf", "haproxy": "haproxy.cfg"}
_COMMANDS: dict[str, Callable[[Path, str], list[str]]] = {"nginx": _nginx, "haproxy": _haproxy}


def _await_answer(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_S
    request = b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
                connection.sendall(request)
                if b" 200 " in connection.recv(100):
                    return
        except OSError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"it did not start:\n{log.read_text(errors='replace')}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
