"""Serve the gateway in this process, or in several worker processes that this one supervises."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.config import Config
from dragoman.server.listen import bind, resolve, url_of

OnReady = Callable[[str], None]


def serve(config: Config, *, gateway_key: str | None, on_ready: OnReady) -> None:
    """Serve the gateway until SIGINT or SIGTERM; `on_ready` gets the base URL once it accepts requests.

    State is stored in `config.home`, which must exist. Raises ConfigError if the host or port cannot be used.
    """
    admin_keys = admin_keys_of(config, gateway_key)
    address = resolve(config.server.host)
    if config.server.workers > 1:
        from dragoman.server.supervise import supervise  # a supervisor does not import the gateway

        supervise(config, admin_keys, address, on_ready)
        return
    from dragoman.server.worker import run_gateway

    with bind(address, config.server.port, config.server) as listener:
        url = url_of(listener)
        run_gateway(config, admin_keys, listener, lambda: on_ready(url))


def admin_keys_of(config: Config, gateway_key: str | None) -> tuple[str, ...]:
    """Return the admin keys, including the key that was generated for the user who starts the gateway."""
    own = (gateway_key,) if gateway_key and gateway_key not in config.server.keys else ()
    return (*config.server.admin_keys, *own)
