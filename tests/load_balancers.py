"""nginx and HAProxy with the files of deploy/."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.requirements import require_program

DEPLOY = Path(__file__).parents[1] / "deploy"
_START_S = 10.0


@contextmanager
def balancer(
    name: str, gateways: Sequence[str], folder: Path, *, also: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The program in front of these gateways, as deploy/ says; its own address.

    `also` replaces lines of the file.
    """
    port = _free_port()
    text = _filled(_FILES[name], gateways, port)
    for line, other in (also or {}).items():
        assert text.count(line) == 1, line
        text = text.replace(line, other)
    command = _COMMANDS[name](folder, text)
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
    return [require_program("nginx", package="nginx-light"), "-c", str(config), "-p", str(folder), "-g", more]


def _haproxy(folder: Path, text: str) -> list[str]:
    config = folder / "haproxy.cfg"
    config.write_text(text)
    return [require_program("haproxy"), "-f", str(config), "-db"]


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
