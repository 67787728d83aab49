"""Bodies: read whole, refused unread, given up, thrown away."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

import pytest

from dragoman.config import ServerConfig
from dragoman.errors import DragomanError
from dragoman.gateway.asgi import ClientDisconnect
from dragoman.gateway.limits.bodies import BodyLimits, BodyReader
from dragoman.gateway.limits.concurrency import RequestLease

Message = dict[str, Any]


class Sender:
    """What a client sends, piece by piece; after the last one it is silent, or gone."""

    def __init__(self, *pieces: bytes, whole: bool = True, leaves: bool = False) -> None:
        self._messages: list[Message] = [
            {"type": "http.request", "body": piece, "more_body": True} for piece in pieces
        ]
        if whole:
            self._messages[-1]["more_body"] = False
        if leaves:
            self._messages.append({"type": "http.disconnect"})
        self.read = 0

    async def receive(self) -> Message:
        if self.read == len(self._messages):
            await asyncio.sleep(3600)
        self.read += 1
        return self._messages[self.read - 1]


def bodies(**settings: Any) -> BodyLimits:
    return BodyLimits(ServerConfig(**{"max_body_bytes": 100, "max_inflight_bytes": 160, **settings}))


async def read(
    shelf: BodyLimits, sender: Sender, held: RequestLease, *, length: str = "", proven: bool = True
) -> bytes:
    headers = {"content-length": length} if length else {}
    return await shelf.read(BodyReader(sender.receive, headers), held, authenticated=proven)


@pytest.mark.parametrize("length", ["", "6"])
@pytest.mark.parametrize("proven", [True, False])
async def test_a_body_is_read_whole_and_held_until_its_request_is_over(length: str, proven: bool) -> None:
    shelf = bodies()
    with RequestLease(shelf.byte_budget) as held:
        body = await read(shelf, Sender(b"ab", b"", b"cdef"), held, length=length, proven=proven)
        assert body == b"abcdef"
        assert (shelf.byte_budget.left_bytes, shelf._unauthenticated_budget.left_bytes) == (154, 100)
    assert shelf.byte_budget.left_bytes == 160


@pytest.mark.parametrize("proven", [True, False])
async def test_j5_what_is_declared_too_large_is_refused_unread(proven: bool) -> None:
    shelf, sender = bodies(), Sender(b"x" * 50, whole=False)
    with (
        RequestLease(shelf.byte_budget) as held,
        pytest.raises(DragomanError, match="larger than 100 bytes") as refused,
    ):
        await read(shelf, sender, held, length="101", proven=proven)
    assert (refused.value.kind, sender.read) == ("too_large", 0)


async def test_j5_what_turns_out_too_large_is_refused_on_the_way() -> None:
    shelf, sender = bodies(), Sender(b"x" * 60, b"x" * 60, b"x" * 60)
    with RequestLease(shelf.byte_budget) as held, pytest.raises(DragomanError, match="larger than 100 bytes"):
        await read(shelf, sender, held)
    assert sender.read == 2


async def test_where_the_memory_is_full_a_declared_body_is_refused_unread_and_another_on_the_way() -> None:
    shelf = bodies()
    with RequestLease(shelf.byte_budget) as held:
        await read(shelf, Sender(b"x" * 90), held, length="90")
        declared, streamed = Sender(b"y" * 71), Sender(b"y" * 40, b"y" * 40)
        for sender, length, seen in ((declared, "71", 0), (streamed, "", 2)):
            with (
                RequestLease(shelf.byte_budget) as other,
                pytest.raises(DragomanError, match="max_inflight_bytes") as refused,
            ):
                await read(shelf, sender, other, length=length)
            assert (refused.value.kind, sender.read) == ("overloaded", seen)
        assert shelf.byte_budget.left_bytes == 70


async def test_a_stranger_takes_room_with_bytes_and_not_with_words() -> None:
    shelf = bodies()
    reading = asyncio.ensure_future(_read_as_stranger(shelf, Sender(b"x", whole=False), "100"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (shelf.byte_budget.left_bytes, shelf._unauthenticated_budget.left_bytes) == (160, 99)
    reading.cancel()
    await asyncio.wait({reading})
    assert shelf._unauthenticated_budget.left_bytes == 100


async def _read_as_stranger(shelf: BodyLimits, sender: Sender, length: str) -> None:
    with RequestLease(shelf.byte_budget) as held:
        await read(shelf, sender, held, length=length, proven=False)


async def test_a_body_that_stops_coming_is_given_up() -> None:
    shelf = bodies(body_idle_s=0.05)
    sender = Sender(b"x" * 10, whole=False)
    with (
        pytest.raises(DragomanError, match="nothing of the request body has come") as refused,
        RequestLease(shelf.byte_budget) as held,
    ):
        await read(shelf, sender, held, length="50")
    assert (refused.value.kind, shelf.byte_budget.left_bytes) == ("timeout", 160)


async def test_who_leaves_in_the_middle_is_gone() -> None:
    shelf = bodies()
    with RequestLease(shelf.byte_budget) as held, pytest.raises(ClientDisconnect):
        await read(shelf, Sender(b"x", whole=False, leaves=True), held)


@pytest.mark.parametrize(
    ("sender", "headers", "seen"),
    [
        (Sender(b"x", b"y", b"z"), {}, 3),
        (Sender(b"x", whole=False, leaves=True), {}, 2),
        (Sender(*[b"x" * 100] * 9), {}, 4),
        (Sender(b"x"), {"expect": "100-continue"}, 0),
    ],
    ids=["all of it", "until the client leaves", "only so much", "nothing nobody sent"],
)
async def test_what_is_refused_is_thrown_away(sender: Sender, headers: dict[str, str], seen: int) -> None:
    await bodies().discard(BodyReader(sender.receive, headers))
    assert sender.read == seen


@pytest.mark.parametrize(("length", "declared"), [("", None), ("12", 12), ("x", None), ("9" * 5000, None)])
def test_a_length_is_a_number_or_nothing(length: str, declared: int | None) -> None:
    assert BodyReader(Sender(b"").receive, {"content-length": length}).content_length == declared


async def test_a_body_in_tiny_pieces_takes_no_more_memory_than_another() -> None:
    pieces = 50_000
    left = iter(range(pieces - 1, -1, -1))

    async def receive() -> Message:
        return {"type": "http.request", "body": bytes(bytearray(b"ab")), "more_body": next(left) > 0}

    shelf = bodies(max_body_bytes=2 * pieces, max_inflight_bytes=2 * pieces)
    tracemalloc.start()
    try:
        with RequestLease(shelf.byte_budget) as held:
            body = await shelf.read(BodyReader(receive, {}), held, authenticated=True)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(body) == 2 * pieces
    assert peak < 4 * len(body)


async def test_only_so_many_refused_clients_are_waited_for() -> None:
    """Each of them occupies a connection while it sends."""
    shelf = bodies(max_connections=8)
    slow = [asyncio.ensure_future(shelf.discard(BodyReader(_never, {}))) for _ in range(2)]
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await shelf.discard(BodyReader(_never, {}))
    assert not any(task.done() for task in slow)
    for task in slow:
        task.cancel()
    await asyncio.wait(slow)
    sender = Sender(b"a", b"b")
    await shelf.discard(BodyReader(sender.receive, {}))
    assert sender.read == 2  # there is room again


async def _never() -> Message:
    await asyncio.sleep(3600)
    raise AssertionError
