"""The load generator, a separate process: reads a job per line (JSON) and writes a measurement per line."""

from __future__ import annotations

import asyncio
import sys
from time import perf_counter, thread_time
from urllib.parse import urlsplit

import msgspec
import uvloop

from benchmarks.answer_checks import (
    Blocks,
    MinorDeviation,
    UnexpectedStop,
    WrongAnswer,
    check_upstream,
    expected_blocks,
    read_answer,
)
from benchmarks.conversation import Conversation
from benchmarks.fake_answers import AnswerSpec
from benchmarks.http_client import Connection, HttpAnswer, build_post, connect
from benchmarks.procfs import cpu_s
from benchmarks.request_encoders import Style, encode_request
from benchmarks.workloads import Workload

_WARM_UP_TURNS = 2
_TURNS_PER_SESSION = 15  # 105 KB grow to 140 KB
_JOB_LIMIT_S = 300.0
_CROWD = 64  # with this many clients, one warm-up turn each is enough
_REFERENCE_STEPS = 100_000
_ASK_LAST = b"GET /last HTTP/1.1\r\nhost: fake\r\n\r\n"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """`pids` are the measured processes; `fake_url` reports what arrived upstream; no request starts after `budget_s`."""

    url: str
    style: Style
    workload: Workload
    seed: str
    pids: list[int]
    fake_url: str
    fake_pids: list[int]
    headers: str = ""
    budget_s: float = _JOB_LIMIT_S


class Measurement(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """`reference_s` is the CPU of a fixed piece of work at the same time, which shows how fast the machine was.

    `per_s` is the number of requests answered per second while all clients were active. `wrong` answers invalidate
    the measurement (`why` is the first reason); `oddities` are only reported.
    """

    requests: int
    chunks: int
    reads: int
    request_bytes: int
    cpu_s: float
    reference_s: float
    fake_cpu_s: float
    load_cpu_s: float
    wall_s: float
    per_s: float
    first_byte_s: list[float]
    total_s: list[float]
    wrong: int = 0
    why: str = ""
    oddities: list[str] = []


class Failure(msgspec.Struct, frozen=True, tag=True):
    """Nothing could be measured."""

    why: str


class LoadClient:
    """One connection with its sessions; every answer is checked before the next request."""

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
        self.wrong: list[str] = []
        self.oddities: dict[str, None] = {}

    async def prepare(self) -> None:
        """Running sessions have had their first turns before anything is counted; new ones are only written."""
        if self._job.workload.history == "next turn":
            self._sessions = [self._begin() for _ in range(-(-self._turns // _TURNS_PER_SESSION))]
            for session in self._sessions * (_WARM_UP_TURNS if self._job.workload.clients < _CROWD else 1):
                await self._turn(session)
        else:
            await self._turn(self._begin())
            self._sessions = [self._begin() for _ in range(self._turns)]
        self.answers, self.request_bytes = [], 0

    async def run(self) -> None:
        deadline = perf_counter() + self._job.budget_s
        for turn in range(self._turns):
            if turn and perf_counter() > deadline:
                return
            await self._turn(self._sessions[turn % len(self._sessions)])

    async def verify(self) -> None:
        """Two more turns, and a look at what Gemini got for the second."""
        session = self._sessions[0]
        first, second = self._order(quick=True), self._order(quick=True)
        session.take(await self._ask(session, first))
        await self._ask(session, second)
        try:
            check_upstream(await _last_body(self._job.fake_url), session, first)
        except MinorDeviation as odd:
            self.oddities[str(odd)] = None
        except WrongAnswer as wrong:
            self.wrong.append(f"upstream: {wrong}")

    def _begin(self) -> Conversation:
        self._begun += 1
        workload = self._job.workload
        return Conversation(
            workload.shape,
            f"{self._job.seed}c{self._number}s{self._begun}",
            stream=workload.stream,
            unseen_tools=workload.history == "new tools",
        )

    def _order(self, *, quick: bool = False) -> AnswerSpec:
        self._orders += 1
        workload = self._job.workload
        return AnswerSpec(
            id=f"{self._job.seed}c{self._number}n{self._orders}",
            chunks=1 if quick else max(1, workload.chunks),
            pace_ms=0 if quick else workload.pace_ms,
        )

    async def _turn(self, session: Conversation) -> None:
        session.take(await self._ask(session, self._order()))

    async def _ask(self, session: Conversation, order: AnswerSpec) -> Blocks:
        style, stream = self._job.style, self._job.workload.stream
        body = encode_request(style, session.body(order))
        if self._connection.closed:  # idle for too long while others were prepared
            self._connection = await _connect_to(self._job.url)
        post = build_post(style, body, stream=stream, headers=self._job.headers)
        try:
            answer = await self._connection.ask(post)
        except ConnectionError:  # closed as idle that very moment; every client's library tries once more
            self._connection = await _connect_to(self._job.url)
            answer = await self._connection.ask(post)
        self.answers.append(msgspec.structs.replace(answer, body=b""))
        self.request_bytes += len(body)
        return self._judge(answer, order)

    def _judge(self, answer: HttpAnswer, order: AnswerSpec) -> Blocks:
        try:
            return read_answer(answer, order, self._job.style, stream=self._job.workload.stream)
        except UnexpectedStop as odd:
            self.oddities[str(odd)] = None
            return odd.blocks
        except WrongAnswer as wrong:
            self.wrong.append(str(wrong))
            return expected_blocks(order)


async def run_job(job: Job) -> Measurement | Failure:
    try:
        async with asyncio.timeout(_JOB_LIMIT_S):
            return await _measure(job)
    except (OSError, ValueError) as error:  # a timeout is an OSError
        return Failure(why=f"{type(error).__name__}: {error}"[:300])


async def _measure(job: Job) -> Measurement:
    clients = [LoadClient(job, number, await _connect_to(job.url)) for number in range(job.workload.clients)]
    await asyncio.gather(*(client.prepare() for client in clients))
    began, load_cpu = perf_counter(), thread_time()
    cpu, fake_cpu = cpu_s(job.pids), cpu_s(job.fake_pids)
    per_s = await _run(clients)
    cpu, fake_cpu = cpu_s(job.pids) - cpu, cpu_s(job.fake_pids) - fake_cpu
    wall, load_cpu = perf_counter() - began, thread_time() - load_cpu
    answers = [answer for client in clients for answer in client.answers]
    measured = Measurement(
        requests=len(answers),
        chunks=len(answers) * (job.workload.chunks + 2 if job.workload.stream else 0),  # a thought, a call
        reads=sum(answer.reads for answer in answers),
        request_bytes=sum(client.request_bytes for client in clients) // len(answers),
        cpu_s=cpu,
        reference_s=_reference_s(),
        fake_cpu_s=fake_cpu,
        load_cpu_s=load_cpu,
        wall_s=wall,
        per_s=per_s,
        first_byte_s=[answer.first_byte_s for answer in answers],
        total_s=[answer.total_s for answer in answers],
    )
    if job.style != "floor":
        await clients[0].verify()
    wrong = [why for client in clients for why in client.wrong]
    return msgspec.structs.replace(
        measured,
        wrong=len(wrong),
        why=wrong[0] if wrong else "",
        oddities=list({odd: None for client in clients for odd in client.oddities}),
    )


async def _run(clients: list[LoadClient]) -> float:
    """Requests a second, until the first client has had all its answers.

    Two workers share the connections out by chance: who has fewer of them is done, and idle, before the other.
    """
    began = perf_counter()
    running = [asyncio.ensure_future(client.run()) for client in clients]
    await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    per_s = sum(len(client.answers) for client in clients) / (perf_counter() - began)
    await asyncio.gather(*running)
    return per_s


async def _connect_to(url: str) -> Connection:
    place = urlsplit(url)
    return await connect(place.hostname or "", place.port or 0)


def _reference_s() -> float:
    began = thread_time()
    total = 0
    for step in range(_REFERENCE_STEPS):
        total += step & 7
    return thread_time() - began


async def _last_body(fake_url: str) -> bytes:
    connection = await _connect_to(fake_url)
    answer = await connection.ask(_ASK_LAST)
    connection.close()
    return answer.body


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin.buffer:
        outcome = uvloop.run(run_job(msgspec.json.decode(line, type=Job)))
        print(msgspec.json.encode(outcome).decode(), flush=True)


if __name__ == "__main__":
    main()
