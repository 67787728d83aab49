"""One cell of the matrix: a fault in one dialect at one moment, and everything that must hold then and afterwards."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.chaos.dialect_clients import TONGUES, Told, Tongue
from tests.chaos.environment import HANG_S, EnvironmentProtocol
from tests.chaos.matrix_rows import KEPT, Act, Cell, Disaster, Expected, Fault
from tests.chaos.raw_client import Heard
from tests.chaos.scripted_google import Moment, Play, Strike, nothing
from tests.chaos.scripted_turns import CALLS, IDS, LAST_WORDS, SIGNATURE, WORDS, Json, Said

_numbers = itertools.count(1)
_FOREVER = 1_000_000
_HELD = 409
#: What Google takes where a signature is lost.
_SENTINEL = "skip_thought_signature_validator"


class Conversation:
    """A client's two turns, of which one is struck."""

    def __init__(self, world: EnvironmentProtocol, cell: Cell, strike: Strike, times: int) -> None:
        self._world = world
        self._cell = cell
        self._model = f"gemini-{next(_numbers)}"
        self.play = Play(cell.phase, strike, times=times or _FOREVER)
        self._tongue: Tongue = TONGUES[cell.tongue]()
        self.play.listen = self._listen
        world.google.put_on(self._model, self.play)

    def _listen(self) -> Said:
        told = self._tongue.judge(self.play.client.heard, stream=self._cell.stream)
        return told.text, told.calls

    async def ask(self) -> tuple[Told, Heard]:
        """A conversation that the gateway keeps may be held for a moment by a request whose client has just left."""
        while True:
            self.play.client = self._world.client()
            heard = await self.play.client.ask(self._tongue.ask(self._model, stream=self._cell.stream))
            if heard.status != _HELD:
                return self._tongue.judge(heard, stream=self._cell.stream), heard
            await asyncio.sleep(0.02)

    def begin(self) -> None:
        self._tongue.speaker.say("Where are they?")

    async def first_turn(self) -> None:
        """Undisturbed."""
        told, heard = await self.ask()
        check_whole(told, second=False)
        self.take(heard)

    def take(self, heard: Heard) -> None:
        """The calls are answered."""
        seen = self._tongue.hear(heard, stream=self._cell.stream)
        assert len({call.id for call in seen.calls}) == len(seen.calls)
        self._tongue.speaker.answer([(call, f"{call.args['n']} is here") for call in seen.calls])

    async def again(self) -> None:
        """The whole conversation anew, undisturbed."""
        other = Conversation(self._world, self._cell, nothing, 0)
        other.begin()
        await other.first_turn()
        await other.second_turn()

    async def second_turn(self, *, lost: bool = False) -> None:
        told, _ = await self.ask()
        check_whole(told, second=True)
        check_history(self.play.arrived[-1].body, lost=lost)


async def play_cell(world: EnvironmentProtocol, fault: Fault, cell: Cell) -> None:
    strike = fault.strike if fault.make is None else fault.make(world)
    talk = Conversation(world, cell, strike, fault.times)
    second = cell.phase == "between turns"
    talk.begin()
    if second:
        await talk.first_turn()
    told, heard = await struck_turn(talk, fault.expect(cell))
    await go_on(talk, told, heard, second=second)


async def struck_turn(talk: Conversation, expected: Expected) -> tuple[Told, Heard]:
    before = len(talk.play.arrived)
    told, heard = await talk.ask()
    assert told.end in (expected.end, expected.or_else), told
    attempts = len(talk.play.arrived) - before
    assert expected.attempts in (attempts, None), f"{attempts} attempts"
    if told.end == "cut" and attempts:
        await talk.play.nobody_waits()
    return told, heard


async def go_on(talk: Conversation, told: Told, heard: Heard, *, second: bool, lost: bool = False) -> None:
    """The fault is over: what is there is right, and the conversation comes to its end."""
    talk.play.over()
    if told.end == "answer":
        check_whole(told, second=second)
        if not second:
            talk.take(heard)
            await talk.second_turn(lost=lost)
        return
    check_part(told, second=second)
    if told.end == "stopped":  # it is part of the conversation, such as it is; another one goes well
        await talk.again()
        return
    if not second:
        await talk.first_turn()
    await talk.second_turn(lost=lost)


class Barrier:
    """Everybody waits for everybody else; then it happens, once."""

    def __init__(self, number: int, act: Callable[[], Any]) -> None:
        self._missing = number
        self._act = act
        self._happened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._acting: asyncio.Task[None] | None = None

    async def wait(self) -> None:
        self.come()
        await asyncio.shield(self._happened)

    def come(self) -> None:
        self._missing -= 1
        if self._missing == 0:
            self._acting = asyncio.ensure_future(self._happen())

    async def _happen(self) -> None:
        try:
            await self._act()
        except BaseException as error:  # pytest's own among them
            self._happened.set_exception(AssertionError(repr(error)))
        else:
            self._happened.set_result(None)


async def play_disaster(world: EnvironmentProtocol, disaster: Disaster, cells: Sequence[Cell]) -> None:
    """All at once: each comes to its moment, the disaster strikes, each is judged, it is mended, each goes on."""

    def meeting(act: Act) -> Barrier:
        return Barrier(len(cells), lambda: act(world))

    strike, mend = meeting(disaster.strike), meeting(disaster.mend)
    await gather({cell: _suffer(world, disaster, cell, strike, mend) for cell in cells})
    await world.settled()


async def _suffer(
    world: EnvironmentProtocol, disaster: Disaster, cell: Cell, strike: Barrier, mend: Barrier
) -> None:
    """Who fails keeps nobody waiting."""
    waiting = [strike, mend]

    async def meet() -> None:
        await waiting.pop(0).wait()

    async def at_google(moment: Moment) -> None:
        await moment.heard()
        await meet()
        if disaster.google_waits:
            await asyncio.sleep(3600)

    try:
        talk = Conversation(world, cell, at_google, 1)
        talk.begin()
        second = cell.phase == "between turns"
        if second:
            talk.play.over()
            await talk.first_turn()
            await meet()
        told, heard = await struck_turn(talk, disaster.expect(cell))
        await meet()
        if (disaster.loses or disaster.unsure) and cell.tongue in KEPT:
            await talk.again()
        else:
            await go_on(talk, told, heard, second=second, lost=disaster.loses)
    finally:
        for meeting in waiting:
            meeting.come()


def check_whole(told: Told, *, second: bool) -> None:
    assert told.end == "answer", told
    wanted = (LAST_WORDS, []) if second else ("".join(WORDS), CALLS)
    assert (told.text, told.calls) == wanted


def check_part(told: Told, *, second: bool) -> None:
    """Nothing that Google did not say, nothing twice, and no call that was not whole."""
    words = LAST_WORDS if second else "".join(WORDS)
    assert words.startswith(told.text), told
    assert told.calls == ([] if second else CALLS)[: len(told.calls)], told


def check_history(body: Json, *, lost: bool = False) -> None:
    """Google gets back what it said: both calls with its own ids and signature, and a result for each.

    Ids and signatures that are `lost` are replaced by some that fit and by Google's sentinel.
    """
    parts = [part for content in body["contents"] for part in content["parts"]]
    calls = [part for part in parts if "functionCall" in part]
    results = [part["functionResponse"] for part in parts if "functionResponse" in part]
    found = [(call["functionCall"]["name"], call["functionCall"]["args"]) for call in calls]
    assert found == CALLS
    ids = tuple(call["functionCall"].get("id") for call in calls)
    assert tuple(result.get("id") for result in results) == ids
    assert lost or ids == IDS
    assert calls[0]["thoughtSignature"] in (SIGNATURE, _SENTINEL if lost else SIGNATURE)


async def play_cells(world: EnvironmentProtocol, fault: Fault, cells: Iterable[Cell]) -> None:
    """All at once; every one that fails is told."""
    await gather({cell: play_cell(world, fault, cell) for cell in cells})
    await world.settled()


async def gather(work: dict[Cell, Any]) -> list[Any]:
    async def guarded(cell: Cell, one: Any) -> Any:
        try:
            async with asyncio.timeout(HANG_S):
                return await one
        except TimeoutError:
            raise AssertionError(f"{cell}: it hangs") from None
        except Exception as error:
            error.add_note(f"in the cell {cell}")
            raise

    done: Sequence[Any] = await asyncio.gather(
        *(guarded(cell, one) for cell, one in work.items()), return_exceptions=True
    )
    failed = [one for one in done if isinstance(one, Exception)]
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {len(done)} cells", failed)
    return list(done)
