"""The head of a request in HTTP/2, as strict as one of HTTP/1.1: a wrong one ends its stream, not the connection."""

from __future__ import annotations

import re

from dragoman.http1.heads import MAX_FIELDS, BadMessage, Fields

#: What belongs to a connection of HTTP/1.1 and to none of HTTP/2.
NOT_HERE = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"proxy-connection"})

_PSEUDO = frozenset({b":method", b":scheme", b":path", b":authority"})
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]++")
_BREAK = re.compile(rb"[\x00\r\n]")
_METHOD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++")
_TARGET = re.compile(rb"/[\x21\x22\x24-\x7e]*+")  # a whole address would name a host beside :authority
_FIELD_BYTES = 32  # that a field counts beside its own (RFC 9113, 6.5.2)


def read_head(raw: Fields, max_head_bytes: int) -> tuple[str, bytes, Fields]:
    """Method, target, and fields with the host among them."""
    if len(raw) > MAX_FIELDS + len(_PSEUDO) or _size(raw) > max_head_bytes:
        raise BadMessage("the headers are too many, or too long", 431)
    pseudo: dict[bytes, bytes] = {}
    fields: Fields = []
    for name, value in raw:
        if _BREAK.search(value):
            raise BadMessage("a header has a line break in it")
        if not name.startswith(b":"):
            fields.append((_checked(name, value), value.strip(b" \t")))
        elif fields or name in pseudo or name not in _PSEUDO:
            raise BadMessage("the pseudo headers are not as they should be")
        else:
            pseudo[name] = value
    method, target = pseudo.get(b":method", b""), pseudo.get(b":path", b"")
    known = _TARGET.fullmatch(target) or (target == b"*" and method == b"OPTIONS")
    if not (_METHOD.fullmatch(method) and known and pseudo.get(b":scheme")):
        raise BadMessage("method, scheme or path cannot be read")
    return method.decode("ascii"), target, _with_host(pseudo.get(b":authority"), fields)


def _size(raw: Fields) -> int:
    return sum(len(name) + len(value) + _FIELD_BYTES for name, value in raw)


def _checked(name: bytes, value: bytes) -> bytes:
    if not _NAME.fullmatch(name) or name in NOT_HERE or (name == b"te" and value != b"trailers"):
        raise BadMessage("a header is none of HTTP/2")
    return name


def _with_host(authority: bytes | None, fields: Fields) -> Fields:
    hosts = [value for name, value in fields if name == b"host"]
    if authority is not None:
        hosts.append(authority)
    if not hosts or hosts.count(hosts[0]) != len(hosts):
        raise BadMessage("a request names its host, once")
    return [(b"host", hosts[0]), *((name, value) for name, value in fields if name != b"host")]
