"""A recording HTTP server on 127.0.0.1: a function answers, every question and answer is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it arrived; header names in lower case."""

    verb: str
    target: str
    headers: dict[str, str]
    body: bytes


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """One whole answer."""

    status: int
    content_type: str
    body: bytes


class Exchanged(msgspec.Struct, frozen=True, kw_only=True):
    """A question with its answer."""

    asked: Asked
    answered: Answered


class Loopback:
    """What went over the wire so far, and where the server listens."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._log: list[Exchanged] = []
        self._lock = threading.Lock()

    def keep(self, exchanged: Exchanged) -> None:
        with self._lock:
            self._log.append(exchanged)

    def seen(self) -> list[Exchanged]:
        with self._lock:
            return list(self._log)

    def forget(self) -> None:
        with self._lock:
            self._log.clear()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that leaves in the middle is part of the tests."""


@contextmanager
def listen(answer: Callable[[Asked], Answered]) -> Iterator[Loopback]:
    """Serve until the block ends, on a port of the system's choice."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60
        wbufsize = -1  # head and body in one packet: two would wait for an acknowledgement

        def handle_any(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(verb=self.command, target=self.path, headers=headers, body=self.rfile.read(length))
            answered = answer(asked)
            loopback.keep(Exchanged(asked=asked, answered=answered))
            self.send_response(answered.status)
            self.send_header("content-type", answered.content_type)
            self.send_header("content-length", str(len(answered.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answered.body)

        do_GET = do_POST = do_HEAD = handle_any  # noqa: N815 (the library's names)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the library's name)
            """The log is ours."""

    server = _Server(("127.0.0.1", 0), Handler)
    loopback = Loopback(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield loopback
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
