"""`python -m benchmarks --growth`: CPU of a turn with longer histories and more tools.

nginx with the same bytes shows how much of it is copying them.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import uvloop

from benchmarks.answer_checks import read_answer
from benchmarks.contenders import Contender, best_floor, start_dragoman, start_fake, start_floor
from benchmarks.conversation import Conversation, Shape
from benchmarks.fake_answers import AnswerSpec
from benchmarks.http_client import build_post, connect
from benchmarks.procfs import cpu_s

_TURN_BYTES = 2_000  # of a history
_TOOL_BYTES = 2_400
_TURNS = (10, 30, 100, 300, 1_000)
_TOOLS = (10, 25, 100, 250, 500)
_WARM_UP, _MEASURED, _ROUNDS = 3, 10, 3


class GrowthPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The CPU of one turn in milliseconds (median of the rounds)."""

    name: str
    kilobytes: float
    floor_ms: float
    gateway_ms: float

    @property
    def beyond_ms(self) -> float:
        """CPU beyond copying the bytes, which the gateway does twice: in and out."""
        return self.gateway_ms - 2 * self.floor_ms


def print_growth() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-growth-")))
        fake = stack.enter_context(start_fake())
        floor = stack.enter_context(start_floor(best_floor(), fake.url, folder))
        gateway = stack.enter_context(start_dragoman(fake.url, folder))
        for title, shapes in (("turns before", _by_turns()), ("tools", _by_tools())):
            _print_points(title, [_measure(name, shape, floor, gateway) for name, shape in shapes])


def _by_turns() -> Iterator[tuple[str, Shape]]:
    for turns in _TURNS:
        yield str(turns), Shape(60_000, 15_000, turns * _TURN_BYTES)


def _by_tools() -> Iterator[tuple[str, Shape]]:
    for tools in _TOOLS:
        yield str(tools), Shape(tools * _TOOL_BYTES, 15_000, 27_000)


def _measure(name: str, shape: Shape, floor: Contender, gateway: Contender) -> GrowthPoint:
    spent: dict[str, list[float]] = {}
    size = 0
    for number in range(_ROUNDS):
        for contender in (floor, gateway):
            cost_ms, size = uvloop.run(_converse(contender, shape, f"growth{name}r{number}"))
            spent.setdefault(contender.name, []).append(cost_ms)
    floor_ms, gateway_ms = (statistics.median(spent[one.name]) for one in (floor, gateway))
    return GrowthPoint(name=name, kilobytes=size / 1000, floor_ms=floor_ms, gateway_ms=gateway_ms)


async def _converse(contender: Contender, shape: Shape, seed: str) -> tuple[float, int]:
    """Return the CPU per turn in milliseconds after a warm-up, and the bytes of the last request."""
    place = urlsplit(contender.url)
    connection = await connect(place.hostname or "", place.port or 0)
    conversation = Conversation(shape, seed, stream=False)
    pids, style = contender.pids, contender.styles[0]
    spent, size = 0.0, 0
    async with asyncio.timeout(300):
        for turn in range(_WARM_UP + _MEASURED):
            order = AnswerSpec(id=f"{seed}n{turn}")
            body = conversation.body(order)
            request, size = build_post(style, body, stream=False), len(body)
            before = cpu_s(pids)
            answer = await connection.ask(request)
            spent += cpu_s(pids) - before if turn >= _WARM_UP else 0.0
            conversation.take(read_answer(answer, order, style, stream=False))
    connection.close()
    return 1000 * spent / _MEASURED, size


def _print_points(title: str, points: list[GrowthPoint]) -> None:
    print(
        f"\n  {title:>14}{'KB':>9}{'nginx ms':>10}{'gateway ms':>12}{'beyond copying':>15}{'x the first':>13}"
    )
    for point in points:
        times = point.beyond_ms / points[0].beyond_ms
        print(
            f"  {point.name:>14}{point.kilobytes:>9.0f}{point.floor_ms:>10.2f}{point.gateway_ms:>12.2f}"
            f"{point.beyond_ms:>15.2f}{times:>13.2f}"
        )
