"""What the heads of both protocols have in common: ASGI's scope, the host that is asked for, the date."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Any
from urllib.parse import unquote

from dragoman.http1.heads import BadMessage, Fields

_ASGI = {"version": "3.0", "spec_version": "2.4"}
_BODILESS = frozenset({204, 304})

Address = tuple[str, int]
TextFields = list[tuple[str, str]]


def make_scope(
    version: str, method: str, target: bytes, fields: Fields, client: Address, server: Address
) -> dict[str, Any]:
    raw_path, _, query = target.partition(b"?")
    path = raw_path.decode("ascii")
    return {
        "type": "http",
        "asgi": _ASGI,
        "http_version": version,
        "scheme": "http",
        "method": method,
        "root_path": "",
        "path": unquote(path) if "%" in path else path,
        "raw_path": raw_path,
        "query_string": query,
        "headers": fields,
        "client": client,
        "server": server,
    }


def split_target(method: str, target: bytes, fields: Fields) -> tuple[bytes, Fields]:
    """Path and query. Who asks for a whole address, as of a proxy, names its host there and nowhere else."""
    if target.startswith(b"/"):
        return target, fields
    if target == b"*" and method == "OPTIONS":
        return target, fields
    scheme, found, rest = target.partition(b"://")
    if not found or scheme.lower() not in (b"http", b"https"):
        raise BadMessage("the address is neither a path nor a whole one")
    ends = [at for at in (rest.find(b"/"), rest.find(b"?")) if at >= 0]
    end = min(ends, default=len(rest))
    host, path = rest[:end], rest[end:]
    if not host or b"@" in host:
        raise BadMessage("the address names no host")
    others = [(name, value) for name, value in fields if name != b"host"]
    return path if path.startswith(b"/") else b"/" + path, [(b"host", host), *others]


def is_bodiless(method: str, status: int) -> bool:
    return method == "HEAD" or status in _BODILESS


class _Clock:
    """The date, written once a second."""

    second = 0
    text = ""


def date() -> str:
    now = int(time.time())
    if now != _Clock.second:
        _Clock.second = now
        _Clock.text = formatdate(now, usegmt=True)
    return _Clock.text
