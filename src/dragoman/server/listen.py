"""The listening socket, which we create ourselves in order to set its options.

The options (a bounded send buffer, a timeout for clients that do not read) are inherited by accepted
connections.
"""

from __future__ import annotations

import errno
import socket
import sys

from dragoman.config import ServerConfig
from dragoman.errors import ConfigError

_SEND_BUFFER_BYTES = 256 * 1024  # kernel memory per slow reader; by default it grows to 4 MB


def bind(address: str, port: int, settings: ServerConfig, *, shared: bool = False) -> socket.socket:
    """Return a bound socket; with `shared` (SO_REUSEPORT) other processes of this user may bind the port too.

    Raises ConfigError if the port cannot be used; its code is `port` if another process has it.
    """
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
    """Return an IP address of a host name, IPv4 if there is one; raise ConfigError if it has none."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigError(
            f"the host {host!r} is not known here: {error.strerror}", where="server.host"
        ) from None
    return str(min(found, key=lambda entry: entry[0] != socket.AF_INET)[4][0])


def connect_address(listener: socket.socket) -> tuple[str, int]:
    """Return the address and port at which this machine can connect to the listener."""
    address, port = listener.getsockname()[:2]
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address), port  # noqa: S104


def url_of(listener: socket.socket) -> str:
    address, port = connect_address(listener)
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
