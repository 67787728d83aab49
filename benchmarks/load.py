"""The load, a process of its own: one job per line of JSON in, one measurement per line out."""

from __future__ import annotations

import asyncio
import sys
from time import perf_counter, thread_time
from urllib.parse import urlsplit

import msgspec
import uvloop

from benchmarks.answers import Order
from benchmarks.checks import Blocks, check_upstream, read_answer
from benchmarks.conversation import Conversation
from benchmarks.http import Connection, HttpAnswer, Style, build_post, connect
from benchmarks.procfs import cpu_s
from benchmarks.workloads import Workload

_WARM_UP_TURNS = 2
_TURNS_PER_SESSION = 15  # 105 KB grow to 140 KB
_JOB_LIMIT_S = 120.0
_REFERENCE_STEPS = 100_000
_ASK_LAST = b"GET /last HTTP/1.1\r\nhost: fake\r\n\r\n"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """`pids` are charged; `fake_url` shows what arrived upstream."""

    url: str
    style: Style
    workload: Workload
    seed: str
    pids: list[int]
    fake_url: str
    fake_pids: list[int]


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """`reference_s` is what a fixed piece of work cost meanwhile: how fast the machine was just then."""

    requests: int
    chunks: int
    reads: int
    request_bytes: int
    cpu_s: float
    reference_s: float
    fake_cpu_s: float
    wall_s: float
    first_byte_s: list[float]
    total_s: list[float]


class Client:
    """One connection with its sessions; every answer is checked before the next question."""

    def __init__(self, job: Job, number: int, connection: Connection) -> None:
        self._job = job
        self._number = number
        self._connection = connection
        self._orders = 0
        self._begun = 0
        self._turns = job.workload.requests // job.workload.clients
        self._sessions: list[Conversation] = []
        self.answers: list[HttpAnswer] = []
        self.request_bytes = 0

    async def prepare(self) -> None:
        """Running sessions have had their first turns before anything is counted; new ones are only written."""
        if self._job.workload.history == "next turn":
            self._sessions = [self._begin() for _ in range(-(-self._turns // _TURNS_PER_SESSION))]
            for session in self._sessions * _WARM_UP_TURNS:
                await self._turn(session)
        else:
            await self._turn(self._begin())
            self._sessions = [self._begin() for _ in range(self._turns)]
        self.answers, self.request_bytes = [], 0

    async def run(self) -> None:
        for turn in range(self._turns):
            await self._turn(self._sessions[turn % len(self._sessions)])

    async def verify(self) -> None:
        """Two more turns, and a look at what Gemini got for the second."""
        session = self._sessions[0]
        first, second = self._order(quick=True), self._order(quick=True)
        session.take(await self._ask(session, first))
        await self._ask(session, second)
        check_upstream(await _last_body(self._job.fake_url), session, first)

    def _begin(self) -> Conversation:
        self._begun += 1
        workload = self._job.workload
        return Conversation(
            workload.shape,
            f"{self._job.seed}c{self._number}s{self._begun}",
            stream=workload.stream,
            unseen_tools=workload.history == "new tools",
        )

    def _order(self, *, quick: bool = False) -> Order:
        self._orders += 1
        workload = self._job.workload
        return Order(
            id=f"{self._job.seed}c{self._number}n{self._orders}",
            chunks=1 if quick else max(1, workload.chunks),
            pace_ms=0 if quick else workload.pace_ms,
        )

    async def _turn(self, session: Conversation) -> None:
        session.take(await self._ask(session, self._order()))

    async def _ask(self, session: Conversation, order: Order) -> Blocks:
        style, stream = self._job.style, self._job.workload.stream
        body = session.body(order)
        answer = await self._connection.ask(build_post(style, body, stream=stream))
        blocks = read_answer(answer, order, style, stream=stream)
        self.answers.append(msgspec.structs.replace(answer, body=b""))
        self.request_bytes += len(body)
        return blocks


async def run_job(job: Job) -> Measurement:
    async with asyncio.timeout(_JOB_LIMIT_S):
        return await _measure(job)


async def _measure(job: Job) -> Measurement:
    place = urlsplit(job.url)
    clients = [
        Client(job, number, await connect(place.hostname or "", place.port or 0))
        for number in range(job.workload.clients)
    ]
    await asyncio.gather(*(client.prepare() for client in clients))
    began, cpu, fake_cpu = perf_counter(), cpu_s(job.pids), cpu_s(job.fake_pids)
    await asyncio.gather(*(client.run() for client in clients))
    cpu, fake_cpu, wall = cpu_s(job.pids) - cpu, cpu_s(job.fake_pids) - fake_cpu, perf_counter() - began
    answers = [answer for client in clients for answer in client.answers]
    measured = Measurement(
        requests=len(answers),
        chunks=len(answers) * (job.workload.chunks + 2 if job.workload.stream else 0),  # a thought, a call
        reads=sum(answer.reads for answer in answers),
        request_bytes=sum(client.request_bytes for client in clients) // len(answers),
        cpu_s=cpu,
        reference_s=_reference_s(),
        fake_cpu_s=fake_cpu,
        wall_s=wall,
        first_byte_s=[answer.first_byte_s for answer in answers],
        total_s=[answer.total_s for answer in answers],
    )
    if job.style == "anthropic":
        await clients[0].verify()
    return measured


def _reference_s() -> float:
    began = thread_time()
    total = 0
    for step in range(_REFERENCE_STEPS):
        total += step & 7
    return thread_time() - began


async def _last_body(fake_url: str) -> bytes:
    place = urlsplit(fake_url)
    connection = await connect(place.hostname or "", place.port or 0)
    answer = await connection.ask(_ASK_LAST)
    connection.close()
    return answer.body


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin.buffer:
        measurement = uvloop.run(run_job(msgspec.json.decode(line, type=Job)))
        print(msgspec.json.encode(measurement).decode(), flush=True)


if __name__ == "__main__":
    main()
