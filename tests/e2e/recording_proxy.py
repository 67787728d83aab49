"""A wire tap in front of the gateway: passes everything on as it comes and keeps what went by."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tests.e2e.recording_server import Answered, Asked, Exchanged

_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "upgrade", "content-length"})
_PASS_S = 120.0


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that leaves early is not our affair."""


class Tap:
    """Where the client is to connect, and what it asked so far."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._seen: list[Exchanged] = []
        self._lock = threading.Lock()

    def keep(self, exchanged: Exchanged) -> None:
        with self._lock:
            self._seen.append(exchanged)

    def seen(self) -> list[Exchanged]:
        with self._lock:
            return list(self._seen)

    def paths(self) -> list[str]:
        """Method and path of each request, in the order of the answers' ends."""
        return [f"{one.asked.verb} {urlsplit(one.asked.target).path}" for one in self.seen()]

    def bodies(self, path: str) -> list[dict[str, Any]]:
        """The JSON bodies sent to a path."""
        return [
            msgspec.json.decode(one.asked.body)
            for one in self.seen()
            if urlsplit(one.asked.target).path == path and one.asked.body
        ]

    def refused(self) -> list[str]:
        """Every answer from 400 on, with the request it belongs to."""
        return [_show(one) for one in self.seen() if one.answered.status >= 400]


@contextmanager
def recording_proxy(gateway_url: str) -> Iterator[Tap]:
    """Listen in until the block ends; a refusal by the gateway fails the test."""
    target = urlsplit(gateway_url)
    host, port = target.hostname or "", target.port or 80

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60

        def handle_any(self) -> None:
            asked = self._read()
            upstream = http.client.HTTPConnection(host, port, timeout=_PASS_S)
            try:
                upstream.request(asked.verb, asked.target, body=asked.body or None, headers=asked.headers)
                self._pass_on(asked, upstream.getresponse())
            finally:
                upstream.close()

        def _read(self) -> Asked:
            if self.headers.get("transfer-encoding", "").lower() == "chunked":
                body = b"".join(iter(self._read_chunk, b""))
            else:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {
                name.lower(): value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP
            }
            return Asked(verb=self.command, target=self.path, headers=headers, body=body)

        def _read_chunk(self) -> bytes:
            size = int(self.rfile.readline().partition(b";")[0], 16)
            chunk = self.rfile.read(size)
            self.rfile.readline()
            return chunk

        def _pass_on(self, asked: Asked, response: http.client.HTTPResponse) -> None:
            self.send_response_only(response.status)
            for name, value in response.getheaders():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            pieces = []
            while piece := response.read1(65536):
                pieces.append(piece)
                if asked.verb != "HEAD":
                    self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                    self.wfile.flush()
            kind = response.getheader("content-type") or ""
            answered = Answered(status=response.status, content_type=kind, body=b"".join(pieces))
            tap.keep(Exchanged(asked=asked, answered=answered))
            if asked.verb != "HEAD":
                self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = do_HEAD = do_DELETE = handle_any  # noqa: N815 (the library's names)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the library's name)
            """The record is ours."""

    server = _Server(("127.0.0.1", 0), Handler)
    tap = Tap(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield tap
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _show(one: Exchanged) -> str:
    asked, answered = one.asked, one.answered
    return (
        f"{answered.status} for {asked.verb} {asked.target}: {answered.body.decode(errors='replace')}\n"
        f"{asked.body.decode(errors='replace')[-4000:]}"
    )
