"""Check whether the gateway's port is free, or used by a gateway or another program."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from dragoman.cli.doctor.finding import DoctorContext, Finding
from dragoman.cli.gateway import get_health
from dragoman.config import is_loopback


def check_port(at: DoctorContext) -> Iterator[Finding]:
    if at.settings is None:
        return
    config = at.settings.config
    host, port = config.server.host, config.server.port
    if not port:
        yield Finding(status="ok", what="any free one")
        return
    near = host if is_loopback(host) else "127.0.0.1"
    health = get_health(near, port)
    if health is not None and health.get("service") == "dragoman":
        backend = health.get("backend", "")
        yield Finding(status="ok", what=f"a gateway answers on {near}:{port} (backend {backend})")
        if backend != config.backend:
            yield Finding(
                status="warn",
                what=f"that gateway leads to {backend}, your settings to {config.backend}",
                why="it was started with other settings; launchers start one of their own beside it",
                fix="stop it and start dragoman serve again",
            )
        return
    why = _cannot_bind(host, port)
    if not why:
        yield Finding(status="ok", what=f"{host}:{port} is free")
        return
    yield Finding(
        status="fail",
        what=f"{host}:{port} cannot be used: {why}",
        why="dragoman serve would not start; launchers take a free port by themselves",
        fix="end the program that listens there, or set server.port (DRAGOMAN_SERVER_PORT)",
    )


def _cannot_bind(host: str, port: int) -> str:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return error.strerror or str(error)
    return ""
