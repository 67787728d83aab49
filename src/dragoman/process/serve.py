"""Open the listening socket, and serve the gateway in this process or in several workers that this one supervises.

We create the socket ourselves in order to set its options (a bounded send buffer, a timeout for clients that do not
read), which accepted connections inherit. The gateway is imported only where it is needed: a supervisor runs without it.
"""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Callable

from dragoman.config import Config, ServerConfig
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


OnReady = Callable[[str], None]


def serve(config: Config, *, gateway_key: str | None, on_ready: OnReady) -> None:
    """Serve the gateway until SIGINT or SIGTERM; `on_ready` gets the base URL once it accepts requests.

    State is stored in `config.home`, which must exist. Raises ConfigError if the host or port cannot be used.
    """
    admin_keys = admin_keys_of(config, gateway_key)
    address = resolve(config.server.host)
    if config.server.workers > 1:
        from dragoman.process.supervisor import supervise  # a supervisor does not import the gateway

        supervise(config, admin_keys, address, on_ready)
        return
    from dragoman.process.worker import run_gateway

    with bind(address, config.server.port, config.server) as listener:
        url = url_of(listener)
        run_gateway(config, admin_keys, listener, lambda: on_ready(url))


def admin_keys_of(config: Config, gateway_key: str | None) -> tuple[str, ...]:
    """Return the admin keys, including the key that was generated for the user who starts the gateway."""
    own = (gateway_key,) if gateway_key and gateway_key not in config.server.keys else ()
    return (*config.server.admin_keys, *own)
