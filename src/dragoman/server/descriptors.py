"""The limit on file descriptors: raise it, and reduce the number of connections to what it allows."""

from __future__ import annotations

import logging
import resource

import msgspec

from dragoman.config import Config

_RESERVED_DESCRIPTORS = 100  # descriptors for files, the store and the event loop
_DESCRIPTORS_PER_REQUEST = 2  # the client's connection and the one to Google
_log = logging.getLogger("dragoman")


def fit_limits_to_descriptors(config: Config) -> Config:
    """Return the settings with `max_connections` and `max_requests` reduced to the available descriptors."""
    server = config.server
    wanted = _RESERVED_DESCRIPTORS + server.max_connections + server.max_requests
    room = max(1, (raise_descriptor_limit(wanted) - _RESERVED_DESCRIPTORS) // _DESCRIPTORS_PER_REQUEST)
    if wanted <= _RESERVED_DESCRIPTORS + _DESCRIPTORS_PER_REQUEST * room:
        return config
    connections, requests = min(server.max_connections, room), min(server.max_requests, room)
    _log.warning(
        "descriptors are short (ulimit -n): %d connections, %d requests at once", connections, requests
    )
    fitting = msgspec.structs.replace(server, max_connections=connections, max_requests=requests)
    return msgspec.structs.replace(config, server=fitting)


def raise_descriptor_limit(wanted: int) -> int:
    """Raise the soft limit to `wanted`, or as far as the hard limit allows, and return the result."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft == unlimited or soft >= wanted:
        return wanted if soft == unlimited else soft
    soft = wanted if hard == unlimited else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft
