"""Faults of the network, on either side of the gateway, and of the clients themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.chaos.environment import Environment
from tests.chaos.faulty_proxy import Link, Side, Weather
from tests.chaos.matrix_rows import Cell, Expected, Fault, cured, fatal, harmless
from tests.chaos.scripted_google import Moment, Strike

_STALL_S = 0.4


def left(_cell: Cell) -> Expected:
    """Nobody is there any more who could hear how it ended."""
    return Expected("cut")


async def _never() -> None:
    """Google goes on thinking: only whoever asked can end this."""
    await asyncio.sleep(3600)


def on_google_way(act: Callable[[Link], None]) -> Callable[[Environment], Strike]:
    def make(world: Environment) -> Strike:
        async def strike(moment: Moment) -> None:
            await moment.heard()
            act(world.google_way.link("far", moment.peer))
            await _never()

        return strike

    return make


def on_client_way(act: Callable[[Link], None]) -> Callable[[Environment], Strike]:
    def make(world: Environment) -> Strike:
        async def strike(moment: Moment) -> None:
            await moment.heard()
            act(world.client_way.link("near", moment.play.client.port))
            await _never()

        return strike

    return make


def _resets(side: Side) -> Callable[[Link], None]:
    return lambda link: link.reset(side)


def _ends(side: Side) -> Callable[[Link], None]:
    return lambda link: link.end(side)


async def leaves(moment: Moment) -> None:
    await moment.heard()
    moment.play.client.leave()
    await _never()


async def resets(moment: Moment) -> None:
    await moment.heard()
    moment.play.client.reset()
    await _never()


async def stalls(moment: Moment) -> None:
    """It reads nothing for a while; Google does not wait."""
    await moment.heard()
    moment.play.client.stall()
    asyncio.get_running_loop().call_later(_STALL_S, moment.play.client.read_on)


async def half_closes(moment: Moment) -> None:
    """It has said all it wants to say, and closes that direction: to an HTTP server that is a client who left."""
    await moment.heard()
    moment.play.client.half_close()
    await _never()


TO_GOOGLE: tuple[Fault, ...] = (
    Fault(name="lost on the way to Google", make=on_google_way(Link.lose), expect=cured),
    Fault(name="reset, seen by the gateway", make=on_google_way(_resets("near")), expect=cured),
    Fault(name="reset, seen by Google", make=on_google_way(_resets("far")), expect=cured),
    Fault(name="Google's direction ends", make=on_google_way(_ends("near")), expect=cured),
    Fault(name="nothing passes to or from Google", make=on_google_way(Link.freeze), expect=fatal, hasty=True),
)
TO_CLIENTS: tuple[Fault, ...] = (
    Fault(name="lost on the way to the client", make=on_client_way(Link.lose), expect=left),
    Fault(name="reset, seen by the client", make=on_client_way(_resets("near")), expect=left),
    Fault(name="reset, seen by the gateway's door", make=on_client_way(_resets("far")), expect=left),
)
CLIENTS: tuple[Fault, ...] = (
    Fault(name="the client leaves", strike=leaves, expect=left),
    Fault(name="the client resets", strike=resets, expect=left),
    Fault(name="the client stalls", strike=stalls, expect=harmless),
    Fault(name="the client half-closes", strike=half_closes, expect=left),
)
WEATHER: dict[str, Weather] = {
    "latency and jitter": Weather(delay_s=0.005, jitter_s=0.03),
    "a narrow line": Weather(bytes_per_s=20_000),
}
BAD_WEATHER = tuple(Fault(name=name, expect=harmless) for name in WEATHER)
NETWORK = (*TO_GOOGLE, *TO_CLIENTS, *CLIENTS, *BAD_WEATHER)
