"""Settings of the HTTP server: address, access and limits; each has its reason beside it."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.config.kinds import KIB, MIB, Count, Name, Port, Seconds, Wait


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits apply to one worker process, not to all of them together."""

    host: Name = "127.0.0.1"  # nobody but this machine, unless asked (pain Q10)
    port: Port = 8377
    workers: Count = 1  # processes that share the port and the state; one for each core that may be busy
    no_auth: bool = False  # loopback only; anything else is refused
    keys: tuple[str, ...] = ()  # gateway keys; empty: one is made at first start
    admin_keys: tuple[
        str, ...
    ] = ()  # gateway keys that may also use the admin paths, as the one made at first start may
    google_callers: Literal["loopback", "always", "never"] = (
        "loopback"  # where a Google key of the caller's own will do: everybody has one (pain Q10)
    )
    allowed_hosts: tuple[
        str, ...
    ] = ()  # names and addresses clients may use; needed when `host` is not loopback (pain Q8)
    max_connections: Count = (
        4096  # idle ones count; they make room, else whoever comes later waits at the door
    )
    max_requests: Count = 2000  # at once; more are refused before their bodies are read
    max_body_bytes: Count = 64 * MIB  # long sessions with screenshots (pain J5)
    max_inflight_bytes: Count = 256 * MIB  # bodies of all running requests; in memory about four times that
    cache_bytes: Count = (
        256 * MIB
    )  # translations of what comes again with every turn; less costs time, nothing else
    max_header_bytes: Count = 64 * KIB  # of one request, all together; never less than 8 KiB
    body_idle_s: Seconds = 30.0  # a body that has stopped coming is not waited for longer
    reader_idle_s: Seconds = 300.0  # a client that takes nothing of its answer for so long is gone
    keep_alive_s: Seconds = 120.0  # of an idle connection; longer than clients and balancers keep theirs
    ping_s: Seconds = 15.0  # Claude Code shows a stall banner at 20 s (pain E4)
    drain_s: Wait = 0.0  # after a stop signal: still open, but not ready, until balancers have noticed
    shutdown_s: Seconds = 30.0  # how long running streams may go on after that
