"""What is measured. A new workload is a line here."""

from __future__ import annotations

from typing import Literal

import msgspec

from benchmarks.conversation import AGENT, SMALL, Shape

#: How much of a request the gateway has seen before: all but the last turn, only the tools, nothing.
History = Literal["next turn", "new conversation", "new tools"]


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """`requests` are sent per round by `clients` at once; `chunks` 0 means a whole answer."""

    name: str
    about: str
    shape: Shape = AGENT
    history: History = "next turn"
    clients: int = 8
    requests: int
    chunks: int = 0
    pace_ms: int = 0
    aim_request_ms: float | None = None
    aim_chunk_us: float | None = None

    @property
    def stream(self) -> bool:
        return self.chunks > 0


WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload(
            name="next_turn",
            about="120 KB, next turn of a running conversation, whole answer",
            requests=240,
            aim_request_ms=1.2,
        ),
        Workload(
            name="new_conversation",
            about="120 KB, a history never seen, known tools, whole answer",
            history="new conversation",
            requests=120,
            aim_request_ms=1.2,
        ),
        Workload(
            name="new_tools",
            about="120 KB, history and tools never seen, whole answer",
            history="new tools",
            requests=40,
        ),
        Workload(
            name="turn_stream",
            about="120 KB, next turn, a stream of 20 chunks in a burst",
            requests=160,
            chunks=20,
        ),
        Workload(
            name="paced",
            about="2 KB, a stream of 500 chunks 2 ms apart",
            shape=SMALL,
            history="new conversation",
            requests=16,
            chunks=500,
            pace_ms=2,
            aim_chunk_us=40.0,
        ),
        Workload(
            name="burst",
            about="2 KB, a stream of 500 chunks in a burst",
            shape=SMALL,
            history="new conversation",
            clients=4,
            requests=40,
            chunks=500,
        ),
        Workload(
            name="latency",
            about="120 KB, next turn, one client, whole answer",
            clients=1,
            requests=100,
        ),
    )
}
