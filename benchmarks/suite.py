"""One run: all contenders run every workload in interleaved rounds, so that other load on the machine affects all."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from benchmarks.answer_checks import UnexpectedStop, WrongAnswer, read_answer
from benchmarks.contenders import (
    Contender,
    start_asgi_server,
    start_dragoman,
    start_fake,
    start_floor,
    start_peer,
)
from benchmarks.conversation import SMALL, Conversation
from benchmarks.fake_answers import AnswerSpec
from benchmarks.http_client import GATEWAY_KEY, HttpAnswer
from benchmarks.load_generator import Failure, Job, Measurement
from benchmarks.packages import NotInstalled
from benchmarks.peers import PEERS
from benchmarks.procfs import rss_kib
from benchmarks.request_encoders import HEADERS, PATHS, Style, encode_request
from benchmarks.workloads import Workload

_ROOT = Path(__file__).parents[1]
_FIRST_ANSWER_S = 60.0
_MANY_WORKERS = "dragoman-2"

Say = Callable[[str], None]
Ask = Callable[[Job], Measurement]


class JobFailed(Exception):
    """The load generator could not measure this job."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """All rounds of one contender with one workload; `failure` is the reason if there are none."""

    contender: str
    workload: Workload
    rounds: list[Measurement]
    failure: str = ""


class ServerFootprint(msgspec.Struct, frozen=True, kw_only=True):
    """Start time and memory; `first_answer_s` is from the start to the end of the first answer."""

    contender: str
    start_s: float
    first_answer_s: float
    idle_rss_kib: int
    loaded_rss_kib: int


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """`absent` maps peers that did not start to the reason."""

    floor: str
    rows: list[Row]
    standings: list[ServerFootprint]
    absent: dict[str, str]


def run_suite(
    workloads: Sequence[Workload],
    *,
    rounds: int,
    floor: str,
    peers: Sequence[str],
    peer_budget_s: float,
    say: Say,
    before: Path | None = None,
    servers: Sequence[str] = (),
) -> Results:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-bench-")))
        running = RunningServers(stack, folder, floor, say)
        if before is not None:
            running.add_before(before)
        for name in servers:
            running.add_server(name)
        for name in peers:
            running.add_peer(name)
        ask = stack.enter_context(start_load())
        rows: dict[tuple[str, str], Row] = {}
        for number in range(rounds):
            for workload in workloads:
                if workload.once and number:
                    continue
                say(f"round {number + 1} of {rounds}: {workload.name}")
                for contender in running.takes_part(workload):
                    key = contender.name, workload.name
                    row = rows.get(key) or Row(contender=contender.name, workload=workload, rounds=[])
                    seed = re.sub(r"\W|_", "", f"r{number}{contender.name}{workload.name}")
                    job = make_job(contender, running.fake, workload, seed)
                    if contender.name in PEERS:
                        job = msgspec.structs.replace(job, budget_s=peer_budget_s)
                    rows[key] = _measured(row, job, ask)
        names = [workload.name for workload in workloads]
        return Results(
            floor=floor,
            rows=sorted(rows.values(), key=lambda row: names.index(row.workload.name)),
            standings=list(map(running.standing, running.contenders)),
            absent=running.absent,
        )


def _measured(row: Row, job: Job, ask: Ask) -> Row:
    """Skip a contender that has failed with this workload before."""
    if row.failure:
        return row
    try:
        return msgspec.structs.replace(row, rounds=[*row.rounds, ask(job)])
    except JobFailed as failed:
        return msgspec.structs.replace(row, failure=str(failed))


class RunningServers:
    """All contenders, started one after the other; each has answered one request."""

    def __init__(self, stack: ExitStack, folder: Path, floor: str, say: Say) -> None:
        self._stack, self._folder, self._say = stack, folder, say
        self._first_answers: dict[str, float] = {}
        self.absent: dict[str, str] = {}
        self.contenders: list[Contender] = []
        self.fake = self._enter(start_fake())
        self._enter(start_floor(floor, self.fake.url, folder))
        for workers in (1, 2):
            self._enter(start_dragoman(self.fake.url, folder, workers))

    def _enter(self, starting: AbstractContextManager[Contender]) -> Contender:
        with ExitStack() as attempt:
            contender = attempt.enter_context(starting)
            self._first_answers[contender.name] = _first_answer_s(contender)
            self._stack.push(attempt.pop_all())
        self.contenders.append(contender)
        return contender

    def add_before(self, checkout: Path) -> None:
        self._enter(start_dragoman(self.fake.url, self._folder, before=checkout))

    def add_server(self, name: str) -> None:
        self._enter(start_asgi_server(name, self.fake.url, self._folder))

    def add_peer(self, name: str) -> None:
        self._say(f"starting {name}")
        try:
            self._enter(start_peer(PEERS[name], self.fake.url, self._folder))
        except (NotInstalled, OSError, RuntimeError, WrongAnswer) as error:
            log = self._folder / f"{name}.log"
            end = log.read_text(errors="replace")[-300:] if log.exists() else ""
            self.absent[name] = f"{error} {end}".strip()
            self._say(f"{name} is not measured: {self.absent[name]}")

    def takes_part(self, workload: Workload) -> list[Contender]:
        return [
            contender
            for contender in self.contenders
            if "floor" in contender.styles
            or (workload.style in contender.styles and (contender.name != _MANY_WORKERS or workload.scaling))
        ]

    def standing(self, contender: Contender) -> ServerFootprint:
        return ServerFootprint(
            contender=contender.name,
            start_s=contender.start_s,
            first_answer_s=contender.start_s + self._first_answers[contender.name],
            idle_rss_kib=contender.idle_rss_kib,
            loaded_rss_kib=rss_kib(contender.pids),
        )


def _first_answer_s(contender: Contender) -> float:
    """Send a first request and return its duration; raise `WrongAnswer` if the answer is not correct."""
    style, order = contender.styles[0], AnswerSpec(id="first")
    body = encode_request(style, Conversation(SMALL, "first", stream=False).body(order))
    own = contender.headers or f"authorization: Bearer {GATEWAY_KEY}\r\n"
    lines = f"content-type: application/json\r\n{HEADERS[style]}{own}".strip().split("\r\n")
    began = time.perf_counter()
    connection = http.client.HTTPConnection(urlsplit(contender.url).netloc, timeout=_FIRST_ANSWER_S)
    try:
        headers = {name: value for name, _, value in (line.partition(": ") for line in lines)}
        connection.request("POST", PATHS[style][0], body, headers)
        got = connection.getresponse()
        answer = HttpAnswer(got.status, got.read(), 0.0, 0.0, 1)
    except http.client.HTTPException as error:
        raise WrongAnswer(f"no answer: {error!r}") from error
    finally:
        connection.close()
    took = time.perf_counter() - began
    with suppress(UnexpectedStop):  # the report shows it beside the figures
        read_answer(answer, order, style, stream=False)
    return took


def make_job(contender: Contender, fake: Contender, workload: Workload, seed: str) -> Job:
    style: Style = "floor" if "floor" in contender.styles else workload.style
    return Job(
        url=contender.url,
        style=style,
        workload=workload,
        seed=seed,
        pids=contender.pids,
        fake_url=fake.url,
        fake_pids=fake.pids,
        headers=contender.headers,
    )


@contextmanager
def start_load() -> Iterator[Ask]:
    """Start the load generator, a process that ends with its standard input."""
    command = [sys.executable, "-m", "benchmarks.load_generator"]
    process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout
    stdout.readline()

    def ask(job: Job) -> Measurement:
        stdin.write(msgspec.json.encode(job) + b"\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise SystemExit(f"the load generator stopped in {job.workload.name} against {job.url}")
        outcome = msgspec.json.decode(line, type=Measurement | Failure)
        if isinstance(outcome, Failure):
            raise JobFailed(outcome.why)
        return outcome

    try:
        yield ask
    finally:
        stdin.close()
        process.wait()
