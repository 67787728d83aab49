"""The messages between the supervisor and its workers: the configuration, and the report of readiness."""

from __future__ import annotations

import msgspec

from dragoman.config import Config


class WorkerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a worker. It contains secrets, so it is sent through a pipe."""

    config: Config
    admin_keys: tuple[str, ...]
    address: str
    port: int


class WorkerReady(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's only report: it is ready, or `wrong` says why it cannot start."""

    wrong: str = ""
    where: str = ""
