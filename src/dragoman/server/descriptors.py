"""File descriptors: as many as we may have, and never more connections than there are descriptors for."""

from __future__ import annotations

import logging
import resource

import msgspec

from dragoman.config import Config

_OWN = 100  # files, the store, the loop
_PER_REQUEST = 2  # the client's connection and ours to Google
_log = logging.getLogger("dragoman")


def fit_to_descriptors(config: Config) -> Config:
    """The settings with as many connections and requests as this process can really have."""
    server = config.server
    wanted = _OWN + server.max_connections + server.max_requests
    room = max(1, (raise_limit(wanted) - _OWN) // _PER_REQUEST)
    if wanted <= _OWN + _PER_REQUEST * room:
        return config
    connections, requests = min(server.max_connections, room), min(server.max_requests, room)
    _log.warning(
        "descriptors are short (ulimit -n): %d connections, %d requests at once", connections, requests
    )
    fitting = msgspec.structs.replace(server, max_connections=connections, max_requests=requests)
    return msgspec.structs.replace(config, server=fitting)


def raise_limit(wanted: int) -> int:
    """So many descriptors, or as many as this process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft == unlimited or soft >= wanted:
        return wanted if soft == unlimited else soft
    soft = wanted if hard == unlimited else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft
