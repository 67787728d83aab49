"""Metrics of all workers of a machine, available from each of them.

Each worker writes its metrics to a file in the state folder about once a second. The counters of workers that
have ended are added to a common file, so that no counter ever decreases.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from dragoman.observe import metrics as m

METRICS_FOLDER = "metrics"
_ENDED_FILE = "ended.json"
_LOCK_FILE = "lock"
_WRITE_INTERVAL_S = 1.0
_decode = msgspec.json.Decoder(list[m.Series]).decode


class MetricFiles:
    """The metrics of this process and of the other workers, in one folder."""

    def __init__(self, folder: Path, registry: m.MetricRegistry) -> None:
        self._folder = folder
        self._registry = registry
        self._own = folder / f"{os.getpid()}.json"
        self._written = -_WRITE_INTERVAL_S
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._merge_ended_workers()

    @property
    def wait_s(self) -> float:
        """Return the seconds until the next write; other workers see values that are up to a second old."""
        return max(0.0, self._written + _WRITE_INTERVAL_S - time.monotonic())

    def write(self) -> None:
        self._written = time.monotonic()
        with contextlib.suppress(OSError):
            _replace(self._own, self._registry.snapshot())

    def all(self) -> list[m.Series]:
        others = (_read(path) for path in self._folder.glob("*.json") if path != self._own)
        return m.merge([self._registry.snapshot(), *others])

    def _merge_ended_workers(self) -> None:
        with self._locked():
            ended = [path for path in self._folder.glob("[0-9]*.json") if self._has_ended(path)]
            if ended:
                total = m.merge(_read(path) for path in (self._folder / _ENDED_FILE, *ended))
                gauges = {metric.name for metric in m.ALL_METRICS if metric.kind == "gauge"}
                _replace(
                    self._folder / _ENDED_FILE,
                    m.limit_series(one for one in total if one.metric not in gauges),
                )
                for path in ended:
                    path.unlink(missing_ok=True)

    def _has_ended(self, path: Path) -> bool:
        """Return whether the process of this file has ended.

        A file with our own pid is of a predecessor: a container assigns the same pids after every restart.
        """
        return path == self._own or not _is_running(int(path.stem))

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with (self._folder / _LOCK_FILE).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _read(path: Path) -> list[m.Series]:
    try:
        return _decode(path.read_bytes())
    except (OSError, msgspec.DecodeError):
        return []


def _replace(path: Path, series: list[m.Series]) -> None:
    fresh = path.with_suffix(f".{os.getpid()}.new")
    fresh.write_bytes(msgspec.json.encode(series))
    fresh.replace(path)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
