"""Our own HTTP server: HTTP/1.1 and HTTP/2 on one port, spoken to an ASGI application (decision 11)."""

from dragoman.server.wire.server import Server

__all__ = ["Server"]
