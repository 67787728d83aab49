"""Several workers on one port: they share state and work, and none of them is missed when it dies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from benchmarks.procfs import tree
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.faults.harness import FakeGoogle, chunk, events_of, streams, text_of, types_of

Json = dict[str, Any]

WORKERS = 3
MODEL = "gemini-3.8-flash"
HEADERS = {"x-api-key": GATEWAY_KEY, "anthropic-version": "2023-06-01"}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
ASK = {
    "model": MODEL,
    "max_tokens": 500,
    "stream": True,
    "messages": [{"role": "user", "content": "hi"}],
}


def workers_of(gateway: Gateway) -> list[int]:
    assert gateway._process is not None
    supervisor, *workers = tree(gateway._process.pid)
    assert supervisor == gateway._process.pid
    return workers


@asynccontextmanager
async def crowd(home: Path, google: str = "", **settings: str) -> AsyncIterator[Gateway]:
    gateway = Gateway(home, google, SERVER_WORKERS=str(WORKERS), **settings)
    await asyncio.to_thread(gateway.start)
    try:
        yield gateway
    finally:
        gateway.kill()


async def post(gateway: Gateway, path: str, body: Json) -> tuple[int, Any]:
    """On a connection of its own, so that any worker may get it."""
    async with (
        aiohttp.ClientSession(headers=HEADERS) as session,
        session.post(gateway.url + path, json=body) as response,
    ):
        return response.status, json.loads(await response.text())


async def until(holds: Callable[[], bool], limit_s: float = 30) -> None:
    deadline = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < deadline, "it never came to that"
        await asyncio.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return "Z" not in status.rpartition(")")[2].split()[0]


def test_one_ready_line_when_all_answer_and_every_worker_does(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path / "home", SERVER_WORKERS=str(WORKERS))
    gateway.start()
    try:
        assert gateway.log().count("ready on") == 1
        workers = workers_of(gateway)
        assert len(workers) == WORKERS
        before = {pid: _sockets(pid) for pid in workers}
        host, _, port = gateway.url.removeprefix("http://").partition(":")
        with _connections(host, int(port), 60) as connections:
            for connection in connections:
                connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
                assert connection.recv(12) == b"HTTP/1.1 200"
            assert all(_sockets(pid) > before[pid] for pid in workers), "one of them did nothing"
    finally:
        gateway.stop()
    assert not any(map(alive, workers))
    assert not {"Traceback", "Fatal", "ended"} & set(gateway.log().replace(":", " ").split())


@contextmanager
def _connections(host: str, port: int, number: int) -> Iterator[list[socket.socket]]:
    connections = [socket.create_connection((host, port), timeout=10) for _ in range(number)]
    yield connections
    for connection in connections:
        connection.close()


def _sockets(pid: int) -> int:
    folder = Path(f"/proc/{pid}/fd")
    return sum(os.readlink(folder / name).startswith("socket:") for name in os.listdir(folder))


async def test_conversations_go_to_whichever_worker_and_one_file_keeps_them(tmp_path: Path) -> None:
    """With the embedded emulator, whose signatures every worker knows."""

    async def converse(number: int, gateway: Gateway) -> None:
        tool = {"type": "function", "name": f"tool_{number}", "parameters": SCHEMA}
        kept: Json = {"model": MODEL, "conversation": f"c{number}"}
        wish = f'use tool_{number} with {{"n": {number}}}'
        _, first = await post(gateway, "/v1/responses", {**kept, "input": wish, "tools": [tool]})
        (call,) = [item for item in first["output"] if item["type"] == "function_call"]
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": f"result {number}"}
        _, second = await post(gateway, "/v1/responses", {**kept, "input": [result]})
        assert second["output"][-1]["content"][0]["text"] == f"tool_{number} returned: result {number}"

    async with crowd(tmp_path / "home") as gateway:
        await asyncio.gather(*(converse(number, gateway) for number in range(40)))


async def test_p5_a_budget_is_one_for_all_workers(tmp_path: Path) -> None:
    limits = json.dumps({"month": {"requests": 20}})
    async with crowd(tmp_path / "home", LIMITS_KEY=limits) as gateway:
        say = {"model": MODEL, "max_tokens": 50, "messages": [{"role": "user", "content": "Please say hi"}]}
        answers = await asyncio.gather(*(post(gateway, "/v1/messages", say) for _ in range(50)))
    assert sorted({status for status, _ in answers}) == [200, 429]
    assert sum(status == 200 for status, _ in answers) == 20


async def test_a_worker_that_dies_is_replaced_and_the_others_go_on(tmp_path: Path) -> None:
    say = {"model": MODEL, "max_tokens": 50, "messages": [{"role": "user", "content": "Please say hi"}]}
    async with crowd(tmp_path / "home") as gateway:
        first, *others = workers_of(gateway)
        os.kill(first, signal.SIGKILL)
        # Not by /proc: its first thread is a zombie before the last one has closed the listening socket.
        await until(lambda: "worker 1 ended (-9); it is started again" in gateway.log())
        for _ in range(20):
            assert (await post(gateway, "/v1/messages", say))[0] == 200
        await until(lambda: len(workers_of(gateway)) == WORKERS)
        assert set(others) < set(workers_of(gateway))


async def test_a_stop_signal_lets_the_streams_of_all_workers_finish(tmp_path: Path) -> None:
    pieces = [chunk({"text": f"{number} "}) for number in range(10)]
    google = FakeGoogle(streams(*pieces, chunk({"text": "end"}, finish="STOP"), pause_s=0.15))
    server = await asyncio.start_server(google.serve, "127.0.0.1", 0)
    async with crowd(tmp_path / "home", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as gateway:
        workers = workers_of(gateway)
        asking = [asyncio.ensure_future(_ask(gateway)) for _ in range(12)]
        await until(lambda: len(google.arrived) == len(asking))
        await asyncio.to_thread(gateway.stop)
        for events in await asyncio.gather(*asking):
            assert text_of(events) == "0 1 2 3 4 5 6 7 8 9 end"
            assert types_of(events)[-1] == "message_stop"
        assert not any(map(alive, workers))
    server.close()


async def _ask(gateway: Gateway) -> list[Json]:
    async with (
        aiohttp.ClientSession(headers=HEADERS) as session,
        session.post(gateway.url + "/v1/messages", json=ASK) as response,
    ):
        return await events_of(response)


async def test_however_the_supervisor_dies_no_worker_outlives_it(tmp_path: Path) -> None:
    async with crowd(tmp_path / "home") as gateway:
        workers = workers_of(gateway)
        gateway.kill()
        await until(lambda: not any(map(alive, workers)))


def test_what_keeps_workers_from_starting_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "state.db").write_text("this is no database, and long enough to be looked at" * 20)
    said = _refusal(tmp_path / "home", "--port", "0")
    assert said.count("error:") == 1
    assert "state.db cannot be used" in said
    assert "Traceback" not in said


def test_n3_a_port_in_use_is_said_before_a_worker_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = _refusal(tmp_path / "home", "--port", str(taken.getsockname()[1]))
    assert "in use" in said
    assert "--port" in said


@pytest.mark.parametrize("second", ["1", "3"])
async def test_n3_another_gateway_of_the_same_user_does_not_join_the_port(
    tmp_path: Path, second: str
) -> None:
    async with crowd(tmp_path / "home") as gateway:
        said = await asyncio.to_thread(
            _refusal, tmp_path / "other", "--port", gateway.url.rpartition(":")[2], workers=second
        )
    assert "in use" in said


def _refusal(home: Path, *flags: str, workers: str = "2") -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "DRAGOMAN_HOME": str(home)}
    command = [sys.executable, "-m", "dragoman", "serve", "--emulator", "--workers", workers, *flags]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    return done.stderr
