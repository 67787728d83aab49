"""The listening socket, bound by ourselves.

What the kernel is to do for us (bounded buffers, giving up on readers who do not read)
is said to the listening socket; connections inherit it.
"""

from __future__ import annotations

import errno
import socket
import sys

from dragoman.config import ServerConfig
from dragoman.errors import ConfigError

_SEND_BUFFER_BYTES = 256 * 1024  # a slow reader's share of the kernel's memory; by itself it grows to 4 MB


def bind(address: str, port: int, settings: ServerConfig, *, shared: bool = False) -> socket.socket:
    """A socket of our own; `shared` lets other processes of this user bind the same port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    bound = socket.socket(family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    if sys.platform == "linux":
        idle_ms = round(settings.reader_idle_s * 1000)
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, idle_ms)
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        bound.bind((address, port))
    except OSError as error:
        bound.close()
        why = f"port {port} on {address} cannot be used: {error.strerror}"
        raise ConfigError(why, code="port" if error.errno == errno.EADDRINUSE else "") from None
    return bound


def resolve(host: str) -> str:
    """The server takes addresses, people write names."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigError(
            f"the host {host!r} is not known here: {error.strerror}", where="server.host"
        ) from None
    return str(min(found, key=lambda entry: entry[0] != socket.AF_INET)[4][0])


def place_of(listener: socket.socket) -> tuple[str, int]:
    """Where this machine reaches it."""
    address, port = listener.getsockname()[:2]
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address), port  # noqa: S104


def url_of(listener: socket.socket) -> str:
    address, port = place_of(listener)
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
