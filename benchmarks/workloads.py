"""The workloads: size and format of the requests, number of clients, and the goals for the CPU they take."""

from __future__ import annotations

from typing import Literal

import msgspec

from benchmarks.conversation import AGENT, BIG, SMALL, Shape
from benchmarks.request_encoders import Style

#: What the gateway has seen of a request before: all but the last turn, only the tools, or nothing.
History = Literal["next turn", "new conversation", "new tools"]


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """`clients` send `requests` per round concurrently; `chunks` 0 means an answer without a stream.

    `quick` workloads are part of `--quick`; `once` ones have a single round; `scaling` ones also run with two
    workers. Two workers are compared by elapsed time only if the workload is `heavy`: otherwise the load generator
    and the fake Gemini take too much of the machine. The goals are CPU per request, CPU relative to nginx in the
    same run, and the added time to the first byte.
    """

    name: str
    about: str
    shape: Shape = AGENT
    history: History = "next turn"
    style: Style = "anthropic"
    clients: int = 8
    requests: int
    chunks: int = 0
    pace_ms: int = 0
    quick: bool = False
    once: bool = False
    scaling: bool = False
    heavy: bool = False
    aim_request_ms: float | None = None
    aim_times_floor: float | None = None
    aim_first_byte_ms: float | None = None

    @property
    def stream(self) -> bool:
        return self.chunks > 0


_DIALECTS: tuple[tuple[Style, str], ...] = (
    ("openai_chat", "Chat Completions"),
    ("openai_responses", "Responses"),
    ("gemini", "Gemini API"),
    ("bedrock", "Bedrock Converse"),
    ("amazonq", "Amazon Q"),
)
_NAMED = (
    Workload(
        name="next_turn",
        about="120 KB, next turn of a running conversation, whole answer",
        requests=240,
        quick=True,
        aim_request_ms=0.6,
        aim_times_floor=12,
    ),
    Workload(
        name="new_conversation",
        about="120 KB, new history, known tools, whole answer",
        history="new conversation",
        requests=120,
        quick=True,
        aim_request_ms=1.2,
    ),
    Workload(
        name="new_tools",
        about="120 KB, new history and tools, whole answer",
        history="new tools",
        requests=40,
    ),
    Workload(
        name="small",
        about="2 KB, new history, whole answer",
        shape=SMALL,
        history="new conversation",
        requests=240,
        quick=True,
    ),
    Workload(
        name="big",
        about="1 MB, next turn of a running conversation, whole answer",
        shape=BIG,
        clients=2,
        requests=30,
        quick=True,
    ),
    Workload(
        name="turn_stream",
        about="120 KB, next turn, a stream of 20 chunks without pauses",
        requests=160,
        chunks=20,
    ),
    Workload(
        name="turn_paced",
        about="120 KB, next turn, a stream of 20 chunks 10 ms apart",
        requests=80,
        chunks=20,
        pace_ms=10,
    ),
    Workload(
        name="paced",
        about="2 KB, a stream of 500 chunks 2 ms apart",
        shape=SMALL,
        history="new conversation",
        requests=16,
        chunks=500,
        pace_ms=2,
        quick=True,
        aim_request_ms=20,
        aim_times_floor=3.2,
    ),
    Workload(
        name="burst",
        about="2 KB, a stream of 500 chunks without pauses",
        shape=SMALL,
        history="new conversation",
        clients=4,
        requests=40,
        chunks=500,
        quick=True,
        aim_request_ms=4,
    ),
    Workload(
        name="latency",
        about="120 KB, next turn, whole answer",
        clients=1,
        requests=100,
        quick=True,
    ),
    Workload(
        name="latency_stream",
        about="120 KB, next turn, a stream of 20 chunks 2 ms apart",
        clients=1,
        requests=60,
        chunks=20,
        pace_ms=2,
        quick=True,
        aim_first_byte_ms=1.0,
    ),
    Workload(
        name="clients_32",
        about="120 KB, next turn, whole answer",
        clients=32,
        requests=320,
        scaling=True,
        quick=True,
    ),
    Workload(
        name="crowd",
        about="1 MB, new history, whole answer",
        shape=BIG,
        history="new conversation",
        clients=16,
        requests=64,
        scaling=True,
        heavy=True,
        quick=True,
    ),
    Workload(
        name="clients_256",
        about="120 KB, next turn, whole answer",
        clients=256,
        requests=512,
        once=True,
    ),
)
WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        *_NAMED,
        *(
            workload
            for style, name in _DIALECTS
            for workload in (
                Workload(
                    name=f"{style}_turn",
                    about=f"120 KB, next turn, {name} format, whole answer",
                    style=style,
                    requests=120,
                    quick=style == "openai_chat",
                ),
                Workload(
                    name=f"{style}_paced",
                    about=f"2 KB, {name} format, a stream of 500 chunks 2 ms apart",
                    shape=SMALL,
                    history="new conversation",
                    style=style,
                    requests=16,
                    chunks=500,
                    pace_ms=2,
                ),
            )
        ),
    )
}
