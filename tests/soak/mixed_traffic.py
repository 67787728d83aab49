"""Mixed traffic: every SDK and dialect, faults of Google and of the network, clients that disconnect.

The report has the outcomes of the conversations, the gateway's memory and descriptors, and protocol violations.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from tests.chaos.dialect_clients import TONGUES, Tongue
from tests.chaos.network_faults import leaves, resets, stalls
from tests.chaos.raw_client import Client
from tests.chaos.scripted_google import Play, Stage, Strike, nothing
from tests.chaos.scripted_turns import CALLS, LAST_WORDS, PHASES, WORDS, Phase
from tests.chaos.upstream_faults import UPSTREAM
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.soak.sdk_clients import REFUSALS, Libraries

AT_ONCE = 12
WITHOUT_FAULT = 0.6  # share of the conversations
WHOLE = [("".join(WORDS), CALLS), (LAST_WORDS, [])]
_SAMPLE_S = 1.0
_MIN_SLOPE_S = 120.0  # over less time a slope is noise
_WARM_UP_SHARE = 0.25  # of the run, before the memory slope is measured
#: The slope is not measured before this many either: only then everything bounded by a count is full (10,000 pending
#: tool calls, SQLite's pages), however fast the machine is.
WARM_CONVERSATIONS = 12_000
_SETTLE_S = 60.0
_STABLE_SAMPLES = 4
#: Without faults that end by a timeout, which only take time.
_FAULTS = [fault for fault in UPSTREAM if not fault.hasty and fault.make is None]
_LEAVING: dict[str, Strike] = {"leaves": leaves, "resets": resets, "stalls": stalls}
_SETTINGS = {
    "UPSTREAM_IDLE_TIMEOUT_S": "20",
    "UPSTREAM_TOTAL_TIMEOUT_S": "40",
    "UPSTREAM_MAX_WAIT_S": "2",
    # Caches that are full within a minute, so that they do not look like a leak.
    "SERVER_CACHE_BYTES": str(4 * 1024 * 1024),
}


class Report(msgspec.Struct, kw_only=True):
    seconds: float = 0.0
    ends: Counter[str] = msgspec.field(default_factory=Counter)
    violations: list[str] = msgspec.field(default_factory=list)
    rss_kib: list[tuple[float, int]] = msgspec.field(default_factory=list)
    warm_s: float = float("inf")  # when `WARM_CONVERSATIONS` had ended
    descriptors: tuple[int, int] = (0, 0)  # after the warm-up conversations, and at the end
    left_at_google: int = 0

    @property
    def slope_kib_per_min(self) -> float | None:
        """The slope by least squares after the warm-up; None if the run was too short."""
        begin = max(self.warm_s, self.seconds * _WARM_UP_SHARE)
        points = [(at / 60, kib) for at, kib in self.rss_kib if at >= begin]
        if self.seconds - begin < _MIN_SLOPE_S:
            return None
        mid_x = sum(x for x, _ in points) / len(points)
        mid_y = sum(y for _, y in points) / len(points)
        over = sum((x - mid_x) * (y - mid_y) for x, y in points)
        return over / sum((x - mid_x) ** 2 for x, _ in points)

    def __str__(self) -> str:
        rss = [kib for _, kib in self.rss_kib]
        slope = self.slope_kib_per_min
        slope_text = "too short to tell" if slope is None else f"{slope:+.1f} KiB/min"
        ends = ", ".join(f"{number} {end}" for end, number in sorted(self.ends.items()))
        lines = (
            f"{self.seconds:.0f} s, {sum(self.ends.values())} conversations: {ends}",
            f"protocol violations: {len(self.violations)}",
            f"memory (RSS): {rss[0] / 1024:.1f} MiB at the start, {rss[-1] / 1024:.1f} MiB at the end, at most "
            f"{max(rss) / 1024:.1f}; slope after the warm-up: {slope_text}",
            f"descriptors: {self.descriptors[0]} before, {self.descriptors[1]} after",
            f"requests still open at Google: {self.left_at_google}",
            *self.violations[:20],
        )
        return "\n".join(lines)


class Soak:
    def __init__(self, google: Stage, gateway: Gateway, seed: int) -> None:
        self._google = google
        self._gateway = gateway
        self._random = random.Random(seed)
        self._numbers = itertools.count(1)
        self._port = int(gateway.url.rpartition(":")[2])
        self._pid = gateway._process.pid if gateway._process is not None else 0
        self.report = Report()

    async def run(self, seconds: float) -> Report:
        await self._while_open(self._warm_up)
        before = await self._settled_descriptors()
        watching: list[asyncio.Task[None]] = []

        async def traffic(libraries: Libraries) -> None:
            begun = time.monotonic()
            watching.append(asyncio.ensure_future(self._watch(begun)))
            await asyncio.gather(*(self._send_until(libraries, begun + seconds) for _ in range(AT_ONCE)))
            self.report.seconds = time.monotonic() - begun

        await self._while_open(traffic)
        watching[0].cancel()
        self.report.descriptors = (before, await self._settled_descriptors(before))
        self.report.left_at_google = self._google.answers
        return self.report

    async def _while_open(self, work: Callable[[Libraries], Awaitable[None]]) -> None:
        libraries = Libraries(self._gateway.url)
        try:
            await work(libraries)
        finally:
            await libraries.close()

    async def _warm_up(self, libraries: Libraries) -> None:
        """Open everything that the gateway opens once and keeps."""
        for kind in _kinds(libraries):
            await self._converse(libraries, kind, without_fault=True)

    async def _send_until(self, libraries: Libraries, until_s: float) -> None:
        kinds = _kinds(libraries)
        while time.monotonic() < until_s:
            without_fault = self._random.random() < WITHOUT_FAULT
            await self._converse(libraries, self._random.choice(kinds), without_fault=without_fault)

    async def _settled_descriptors(self, wanted: int = 0) -> int:
        """Close idle upstream connections; return the number of descriptors once it is stable, or at most `wanted`."""
        deadline = time.monotonic() + _SETTLE_S
        found = [self._descriptors()]
        while self._google.answers or found[-1] > wanted:
            stable = len(found) > _STABLE_SAMPLES and len(set(found[-_STABLE_SAMPLES:])) == 1
            if time.monotonic() > deadline or (stable and not wanted):
                break
            if not self._google.answers:
                self._google.hang_up()
            await asyncio.sleep(_SAMPLE_S)
            found.append(self._descriptors())
        return found[-1]

    async def _converse(self, libraries: Libraries, kind: str, *, without_fault: bool) -> None:
        model = f"gemini-soak-{next(self._numbers)}"
        name, phase, strike, times = ("none", PHASES[0], nothing, 1) if without_fault else self._fault(kind)
        play = Play(phase, strike, times=times)
        self._google.put_on(model, play)
        try:
            if kind.startswith("raw "):
                end = await self._raw(model, kind.removeprefix("raw "), play)
            else:
                turns = await libraries.talks[kind](model)
                assert turns == WHOLE, turns
                end = "answered"
        except REFUSALS as error:
            end = "failed with an error of the SDK"
            if without_fault:
                self._add_violation(kind, name, phase, error)
        except Exception as error:
            end = "stopped with a reason" if _is_stop(name, error) else "broken"
            if end == "broken":
                self._add_violation(kind, name, phase, error)
        self.report.ends[end] += 1
        self._google.take_off(model)

    def _fault(self, kind: str) -> tuple[str, Phase, Strike, int]:
        if kind.startswith("raw ") and self._random.random() < 0.4:
            name = self._random.choice(sorted(_LEAVING))
            return name, self._random.choice(PHASES[:5]), _LEAVING[name], 1
        fault = self._random.choice(_FAULTS)
        phase = self._random.choice(fault.whole if "whole" in kind and fault.whole else fault.streamed)
        return fault.name, phase, fault.strike, fault.times or 1_000_000

    def _add_violation(self, kind: str, name: str, phase: str, error: BaseException) -> None:
        self.report.violations.append(f"{kind}, {name}, {phase}: {type(error).__name__}: {error}"[:400])

    async def _raw(self, model: str, name: str, play: Play) -> str:
        """Send one turn with a plain client, which may disconnect; also for dialects without an SDK."""
        tongue: Tongue = TONGUES[name]()
        tongue.speaker.say("Where are they?")
        play.client = Client(self._port, {"authorization": f"Bearer {GATEWAY_KEY}"})
        stream = self._random.choice(tongue.forms)

        def listen() -> tuple[str, list[tuple[str, dict[str, object]]]]:
            outcome = tongue.judge(play.client.heard, stream=stream)
            return outcome.text, outcome.calls

        play.listen = listen
        heard = await play.client.ask(tongue.ask(model, stream=stream))
        outcome = tongue.judge(heard, stream=stream)
        assert outcome.end != "cut" or play.client.left, "cut"
        if outcome.end == "answer":
            assert (outcome.text, outcome.calls) == WHOLE[0], outcome
        return {"answer": "answered", "cut": "disconnected by the client"}.get(
            outcome.end, f"reported as {outcome.end}"
        )

    async def _watch(self, begun: float) -> None:
        while True:
            now_s = time.monotonic() - begun
            self.report.rss_kib.append((now_s, self._rss_kib()))
            if self.report.ends.total() >= WARM_CONVERSATIONS:
                self.report.warm_s = min(self.report.warm_s, now_s)
            await asyncio.sleep(_SAMPLE_S)

    def _rss_kib(self) -> int:
        status = Path(f"/proc/{self._pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))

    def _descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self._pid}/fd"))


def _kinds(libraries: Libraries) -> list[str]:
    return [*libraries.talks, *(f"raw {name}" for name in TONGUES)]


def _is_stop(fault: str, error: Exception) -> bool:
    """Return whether the error is a stop reason such as MAX_TOKENS, which our clients do not accept as an end."""
    stops = ("MAX_TOKENS", "SAFETY", "a blocked prompt")
    words = (
        "max_tokens",
        "length",
        "refusal",
        "content_filter",
        "incomplete",
        "guardrail",
        "MAX_TOKENS",
        "SAFETY",
        "index out of range",
        "LengthFinishReason",
        "ContentFilterFinishReason",
    )
    return fault in stops and any(word in f"{type(error).__name__} {error}" for word in words)


async def soak(folder: Path, seconds: float, seed: int = 1) -> Report:
    google = Stage()
    server = await asyncio.start_server(google.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    gateway = Gateway(folder / "home", f"http://127.0.0.1:{port}", **_SETTINGS)
    try:
        await asyncio.to_thread(gateway.start)
        return await Soak(google, gateway, seed).run(seconds)
    finally:
        gateway.kill()
        server.close()
