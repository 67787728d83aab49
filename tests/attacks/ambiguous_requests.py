"""Requests that two readers could read differently. Each tries to get `GET /smuggled` past the first reader."""

from __future__ import annotations

import msgspec

SMUGGLED = b"GET /smuggled HTTP/1.1\r\nhost: localhost\r\n\r\n"


class Case(msgspec.Struct, frozen=True):
    """With a `body` the request is valid and must arrive with it; otherwise it may be refused.

    `pipelined`: the second request is one by the rules, and every reader must see it.
    """

    data: bytes
    body: bytes | None = None
    pipelined: bool = False

    def numbered(self, number: int) -> Case:
        """The same bytes with other targets of the same length, so that it is known which case arrived."""
        return msgspec.structs.replace(
            self, data=_numbered(self.data, number), body=self.body and _numbered(self.body, number)
        )


def first_target(number: int) -> str:
    return f"/f{number:04}"


def smuggled_target(number: int) -> str:
    return f"/s{number:07}"


def _numbered(data: bytes, number: int) -> bytes:
    data = data.replace(b"/first", first_target(number).encode())
    return data.replace(b"/smuggled", smuggled_target(number).encode())


def _post(
    fields: bytes, rest: bytes, *, line: bytes = b"POST /first HTTP/1.1", host: bytes = b"host: localhost\r\n"
) -> bytes:
    return line + b"\r\n" + host + fields + b"\r\n" + rest


def _length(value: bytes, rest: bytes, name: bytes = b"content-length: ") -> bytes:
    return _post(name + value + b"\r\n", rest)


def _coding(field: bytes, rest: bytes = b"") -> bytes:
    """Read as chunks the body ends early; read by its length it contains the second request."""
    rest = rest or b"0\r\n\r\n" + SMUGGLED
    return _post(b"content-length: %d\r\n%b\r\n" % (len(rest), field), rest)


def _chunks(rest: bytes, fields: bytes = b"transfer-encoding: chunked\r\n") -> bytes:
    return _post(fields, rest)


_END = b"0\r\n\r\n"
_HIDDEN = b"5\r\nhello\r\n" + _END + SMUGGLED  # read as a length: too long; read as chunks: five bytes
_L = b"%d" % len(SMUGGLED)
_X = b"%x" % len(SMUGGLED)
_UPGRADE_H2C = b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n"
_UPGRADE_WEBSOCKET = (
    b"connection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)

CASES: dict[str, Case] = {
    # A length and chunks.
    "CL and TE": Case(_coding(b"transfer-encoding: chunked")),
    "TE and CL": Case(
        _chunks(_HIDDEN, b"transfer-encoding: chunked\r\ncontent-length: %d\r\n" % len(_HIDDEN))
    ),
    "CL 0 and TE": Case(
        _post(
            b"content-length: 0\r\ntransfer-encoding: chunked\r\n", _X + b"\r\n" + SMUGGLED + b"\r\n" + _END
        )
    ),
    "short CL and TE": Case(
        _post(
            b"content-length: 4\r\ntransfer-encoding: chunked\r\n", _X + b"\r\n" + SMUGGLED + b"\r\n" + _END
        )
    ),
    # Transfer codings that one of two readers does not recognise.
    **{
        f"TE {field!r}": Case(_coding(field))
        for field in (
            b"transfer-encoding: xchunked",
            b"transfer-encoding: chunked, identity",
            b"transfer-encoding: identity, chunked",
            b"transfer-encoding: gzip, chunked",
            b"transfer-encoding: chunked, chunked",
            b"transfer-encoding: chunked,",
            b"transfer-encoding: ,chunked",
            b"transfer-encoding: identity",
            b"transfer-encoding:",
            b"transfer-encoding: \x0bchunked",
            b"transfer-encoding: chunked\x0b",
            b"transfer-encoding: chunked\x00",
            b'transfer-encoding: "chunked"',
            b"transfer-encoding: chunked;q=1",
            b"transfer-encoding:\tchunked\t",
            b"transfer-encoding: CHUNKED",
            b"transfer-encoding : chunked",
            b"transfer-encoding\t: chunked",
            b" transfer-encoding: chunked",
            b"transfer_encoding: chunked",
            b"transfer-encoding: x\r\n chunked",
            b"transfer-encoding:\r\n chunked",
            b"x: y\r\n transfer-encoding: chunked",
            b"x: y\ntransfer-encoding: chunked",
            b"x: y\rtransfer-encoding: chunked",
            b"x: y\x00\r\ntransfer-encoding: chunked",
            b"transfer-encoding: identity\r\ntransfer-encoding: chunked",
            b"transfer-encoding: chunked\r\ntransfer-encoding: identity",
            b"transfer-encoding: chunked\r\ntransfer-encoding: chunked",
            b"transfer-encoding: \xc4\xb0chunked",
            b"\xefransfer-encoding: chunked",
        )
    },
    # Lengths.
    "CL twice": Case(_post(b"content-length: 0\r\ncontent-length: %b\r\n" % _L, SMUGGLED)),
    "CL twice, the longer first": Case(_post(b"content-length: %b\r\ncontent-length: 0\r\n" % _L, SMUGGLED)),
    "CL twice, equal": Case(_post(b"content-length: %b\r\ncontent-length: %b\r\n" % (_L, _L), SMUGGLED)),
    **{
        f"CL {value!r}": Case(_length(value, SMUGGLED))
        for value in (
            b"+%b" % _L,
            b"-1",
            b"-0",
            b"0, %b" % _L,
            b"%b, %b" % (_L, _L),
            b"%b,%b" % (_L, _L),
            b"0x%x" % len(SMUGGLED),
            b"%b.0" % _L,
            b"4 4",
            b"4_4",
            b"0%b" % _L,
            b'"%b"' % _L,
            b"%b\x0b" % _L,
            b"%b\x00" % _L,
            b"",
            b"\xd9\xa4\xd9\xa4",
            b"18446744073709551616",
            b"18446744073709551660",
            b"99999999999999999999999999999999",
            b"%b;" % _L,
        )
    },
    "CL with a space before the colon": Case(_length(_L, SMUGGLED, b"content-length : ")),
    "CL folded": Case(_post(b"content-length:\r\n %b\r\n" % _L, SMUGGLED)),
    "CL with an underscore": Case(_length(_L, SMUGGLED, b"content_length: "), pipelined=True),
    "CL on a GET": Case(
        _post(b"content-length: %b\r\n" % _L, SMUGGLED, line=b"GET /first HTTP/1.1"), SMUGGLED
    ),
    "TE on a GET": Case(
        _post(
            b"transfer-encoding: chunked\r\n",
            _X + b"\r\n" + SMUGGLED + b"\r\n" + _END,
            line=b"GET /first HTTP/1.1",
        ),
        SMUGGLED,
    ),
    "CL on a HEAD": Case(
        _post(b"content-length: %b\r\n" % _L, SMUGGLED, line=b"HEAD /first HTTP/1.1"), SMUGGLED
    ),
    "CL on OPTIONS": Case(
        _post(b"content-length: %b\r\n" % _L, SMUGGLED, line=b"OPTIONS /first HTTP/1.1"), SMUGGLED
    ),
    # Chunk sizes; the body would hold the second request.
    **{
        f"chunk size {size!r}": Case(_chunks(size + b"\r\n" + SMUGGLED + b"\r\n" + _END))
        for size in (
            b"0x" + _X,
            b"+" + _X,
            b"-" + _X,
            b" " + _X,
            _X + b" ",
            _X + b"\t",
            _X + b"_",
            b"2_c",
            b"0" * 100 + _X,
            b"10000000000000000" + _X,
            b"1000000000000000" + _X,
            b"ffffffffffffffff",
            b"fffffffffffffffff",
            b"80000000000000" + _X,
            b"",
            b";a",
            b"\xef\xbc\x92c",
            _X + b"\x00",
            _X + b"\r",
            _X + b"g",
        )
    },
    # Chunk extensions and line ends.
    **{
        f"chunk line {line!r}": Case(_chunks(line + SMUGGLED + b"\r\n" + _END))
        for line in (
            _X + b"\n",
            _X + b"\r",
            _X + b"\r\r\n",
            _X + b";\n",
            _X + b";a\nb\r\n",
            _X + b";a\rb\r\n",
            _X + b";\r\n",
            _X + b';a="\r\n',
            _X + b';a="\n"\r\n',
            _X + b";a=\x00\r\n",
            _X + b" ;a\r\n",
        )
    },
    "chunk data longer than its size": Case(_chunks(b"3\r\nhelloXX" + _END + SMUGGLED)),
    "chunk data ends with a bare LF": Case(_chunks(b"5\r\nhello\n" + _END + SMUGGLED)),
    "chunk data ends with other bytes": Case(_chunks(b"5\r\nhelloab" + _END + SMUGGLED)),
    "an extension with a line feed hides a chunk": Case(
        _chunks(b"0;\n" + _X + b"\r\n" + SMUGGLED + b"\r\n" + _END)
    ),
    "last chunk with bare LFs": Case(_chunks(b"5\r\nhello\r\n0\n\n" + SMUGGLED)),
    "last chunk, then CR only": Case(_chunks(b"5\r\nhello\r\n0\r\n\r" + SMUGGLED)),
    # Trailers.
    "trailer content-length": Case(_chunks(b"5\r\nhello\r\n0\r\ncontent-length: %b\r\n\r\n" % _L)),
    "trailer transfer-encoding": Case(_chunks(b"5\r\nhello\r\n0\r\ntransfer-encoding: chunked\r\n\r\n")),
    "trailer host": Case(_chunks(b"5\r\nhello\r\n0\r\nhost: smuggled\r\n\r\n")),
    "trailer with a bare LF": Case(_chunks(b"5\r\nhello\r\n0\r\nx: y\n\n" + SMUGGLED)),
    "trailer that is none": Case(_chunks(b"5\r\nhello\r\n0\r\n" + SMUGGLED)),
    # Lines of the head.
    "bare LFs": Case(b"POST /first HTTP/1.1\nhost: localhost\ncontent-length: %b\n\n" % _L + SMUGGLED),
    "a bare LF ends the head": Case(
        b"POST /first HTTP/1.1\r\nhost: localhost\r\ncontent-length: %b\r\n\n" % _L + SMUGGLED
    ),
    "bare CRs": Case(b"POST /first HTTP/1.1\rhost: localhost\rcontent-length: %b\r\r" % _L + SMUGGLED),
    "a bare CR in a value": Case(_post(b"x: y\rcontent-length: %b\r\n" % _L, SMUGGLED)),
    "a NUL in a value": Case(_post(b"x: y\x00\r\ncontent-length: %b\r\n" % _L, SMUGGLED)),
    "a NUL in a name": Case(_post(b"x\x00: y\r\ncontent-length: %b\r\n" % _L, SMUGGLED)),
    "a line without a colon": Case(_post(b"x\r\ncontent-length: %b\r\n" % _L, SMUGGLED)),
    "an empty name": Case(_post(b": x\r\ncontent-length: %b\r\n" % _L, SMUGGLED)),
    "a folded first line": Case(
        b"POST /first HTTP/1.1\r\n host: localhost\r\ncontent-length: %b\r\n\r\n" % _L + SMUGGLED
    ),
    # Versions, targets, hosts.
    "TE in HTTP/1.0": Case(
        _post(
            b"connection: keep-alive\r\ntransfer-encoding: chunked\r\n", _HIDDEN, line=b"POST /first HTTP/1.0"
        )
    ),
    "CL and TE in HTTP/1.0": Case(
        _post(
            b"connection: keep-alive\r\ncontent-length: %d\r\ntransfer-encoding: chunked\r\n" % len(_HIDDEN),
            _HIDDEN,
            line=b"POST /first HTTP/1.0",
        )
    ),
    "HTTP/0.9": Case(b"GET /first\r\n\r\n" + SMUGGLED),
    "HTTP/1.2": Case(_post(b"content-length: %b\r\n" % _L, SMUGGLED, line=b"POST /first HTTP/1.2")),
    "HTTP/1.1 with a space": Case(
        _post(b"content-length: %b\r\n" % _L, SMUGGLED, line=b"POST /first HTTP/1.1 ")
    ),
    "a space in the target": Case(
        _post(b"content-length: %b\r\n" % _L, SMUGGLED, line=b"POST /first /smuggled HTTP/1.1")
    ),
    "a tab in the line": Case(
        _post(b"content-length: %b\r\n" % _L, SMUGGLED, line=b"POST\t/first\tHTTP/1.1")
    ),
    "a line break in the target": Case(_post(b"", b"", line=b"GET /first%0d%0aGET%20/smuggled HTTP/1.1")),
    "absolute form, another host": Case(
        _post(b"content-length: 5\r\n", b"hello", line=b"POST http://evil.example/first HTTP/1.1")
    ),
    "two hosts": Case(_post(b"host: evil.example\r\ncontent-length: %b\r\n" % _L, SMUGGLED)),
    "no host": Case(_post(b"content-length: %b\r\n" % _L, SMUGGLED, host=b"")),
    "a host with a space before the colon": Case(
        _post(b"content-length: %b\r\n" % _L, SMUGGLED, host=b"host : localhost\r\n")
    ),
    # Other protocols.
    "upgrade to h2c": Case(
        _post(
            _UPGRADE_H2C + b"content-length: %b\r\n" % _L,
            SMUGGLED,
        )
    ),
    "upgrade to websocket": Case(
        _post(
            _UPGRADE_WEBSOCKET,
            SMUGGLED,
            line=b"GET /first HTTP/1.1",
        ),
        pipelined=True,
    ),
    "CONNECT": Case(_post(b"", SMUGGLED, line=b"CONNECT localhost:80 HTTP/1.1")),
    "CONNECT with a length": Case(
        _post(b"content-length: %b\r\n" % _L, SMUGGLED, line=b"CONNECT localhost:80 HTTP/1.1")
    ),
    "expect 100-continue": Case(
        _post(b"expect: 100-continue\r\ncontent-length: %b\r\n" % _L, SMUGGLED), SMUGGLED
    ),
    "expect something else": Case(_post(b"expect: 200-ok\r\ncontent-length: %b\r\n" % _L, SMUGGLED)),
    # Valid, and proof that the others would be noticed.
    "a length": Case(_post(b"content-length: %b\r\n" % _L, SMUGGLED), SMUGGLED),
    "chunks": Case(_chunks(_X + b"\r\n" + SMUGGLED + b"\r\n" + _END), SMUGGLED),
    "chunks with extensions": Case(_chunks(_X + b';a=b;c="d"\r\n' + SMUGGLED + b"\r\n0;e\r\n\r\n"), SMUGGLED),
    "chunks with trailers": Case(_chunks(_X + b"\r\n" + SMUGGLED + b"\r\n0\r\nx: y\r\n\r\n"), SMUGGLED),
}
