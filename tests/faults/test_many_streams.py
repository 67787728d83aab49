"""A thousand open streams, and readers who do not read: memory has a bound, and everything comes back."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.contenders import start_dragoman, start_fake
from benchmarks.conversation import SMALL
from benchmarks.open_streams import measure_streams
from benchmarks.procfs import rss_kib
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.faults.test_limits import ASK, CHUNKS, TEXT, Torrent

STREAMS = 1_000
STREAM_KIB = 150  # about twice what it is
READERS = 20
READER_KIB = 6_000  # about twice what it is
DESCRIPTORS = 160


async def test_a_thousand_open_streams_weigh_little_and_leave_nothing_behind(tmp_path: Path) -> None:
    with start_fake() as fake, start_dragoman(fake.url, tmp_path) as gateway:
        first, again = [await measure_streams(gateway.url, gateway.pid, SMALL, STREAMS) for _ in range(2)]
        print(f"{first.per_stream_kib:.0f} KB for each of {STREAMS} open streams; {first} {again}")
    assert first.per_stream_kib < STREAM_KIB
    assert (first.leaked_descriptors, again.leaked_descriptors) == (0, 0)
    assert again.open_kib - first.open_kib < (first.open_kib - first.idle_kib) / 2, (
        "freed, but not used again"
    )


async def test_slow_readers_weigh_the_same_however_much_google_has_to_say(tmp_path: Path) -> None:
    google = Torrent()
    server = await asyncio.start_server(google.serve, "127.0.0.1", 0)
    gateway = Gateway(tmp_path / "home", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    await asyncio.to_thread(gateway.start)
    try:
        assert gateway._process is not None
        writers = [await _ask_and_read_nothing(gateway.url)]
        await google.stalled()
        before = rss_kib([gateway._process.pid])
        writers += [await _ask_and_read_nothing(gateway.url) for _ in range(READERS)]
        await google.stalled()
        each = (rss_kib([gateway._process.pid]) - before) / READERS
        print(f"{each:.0f} KB for each slow reader of {CHUNKS * len(TEXT) / 1e6:.0f} MB")
        assert each < READER_KIB
        for writer in writers:
            writer.transport.abort()
    finally:
        gateway.kill()
        server.close()


async def _ask_and_read_nothing(url: str) -> asyncio.StreamWriter:
    _, writer = await asyncio.open_connection(*url.removeprefix("http://").split(":"))
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    body = json.dumps(ASK)
    head = f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {GATEWAY_KEY}\r\n"
    writer.write(
        f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()
    )
    return writer


def test_short_of_descriptors_it_takes_fewer_connections_and_goes_on(tmp_path: Path) -> None:
    home = tmp_path / "home"
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "DRAGOMAN_HOME": str(home)}
    serve = [sys.executable, "-m", "dragoman", "serve", "--emulator", "--port", "0"]
    command = ["sh", "-c", f'ulimit -n {DESCRIPTORS} && exec "$@"', "sh", *serve]
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            place = urlsplit(process.stdout.readline().split()[2])
            address = str(place.hostname), int(place.port or 0)
            crowd = [socket.create_connection(address, timeout=10) for _ in range(2 * DESCRIPTORS)]
            time.sleep(0.5)
            for connection in crowd:
                connection.close()
            with socket.create_connection(address, timeout=10) as late:
                late.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
                assert late.recv(12) == b"HTTP/1.1 200"
        finally:
            process.terminate()
        assert "descriptors are short" in process.stderr.read()
