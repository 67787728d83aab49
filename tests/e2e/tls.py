"""TLS on loopback: certificates made by openssl, and a door that passes what comes through it on in the clear."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from tests.requirements import require_program


class Certificates:
    """An authority of its own, and a certificate for 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.authority = folder / "ca.pem"
        self._chain = folder / "server.pem"
        self._key = folder / "server.key"
        names = folder / "names.cnf"
        names.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        self._openssl(
            f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test-authority "
            f"-addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign "
            f"-keyout {folder}/ca.key -out {self.authority}"
        )
        self._openssl(
            f"req -newkey rsa:2048 -nodes -subj /CN=test-server -keyout {self._key} -out {folder}/server.csr"
        )
        self._openssl(
            f"x509 -req -in {folder}/server.csr -CA {self.authority} -CAkey {folder}/ca.key -CAcreateserial "
            f"-days 2 -extfile {names} -out {self._chain}"
        )

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._chain, self._key)
        return context

    @staticmethod
    def _openssl(arguments: str) -> None:
        subprocess.run([require_program("openssl"), *arguments.split()], check=True, capture_output=True)


@contextmanager
def tls_endpoint(url: str, certificates: Certificates) -> Iterator[str]:
    """An https address for a server that speaks http."""
    target = urlsplit(url)
    loop = asyncio.new_event_loop()
    opened: list[asyncio.Server] = []
    ready = threading.Event()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, ssl.SSLError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(target.hostname, target.port)
        try:
            await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))
        finally:
            inner_writer.close()
            writer.close()

    async def start() -> None:
        opened.append(await asyncio.start_server(serve, "127.0.0.1", 0, ssl=certificates.context()))
        ready.set()

    async def end() -> None:
        opened[0].close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(end())
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield f"https://127.0.0.1:{opened[0].sockets[0].getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
