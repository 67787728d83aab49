"""Count the bytecode instructions of `dragoman` for one request in the pure core: decode, translate, encode.

There is no event loop, socket or thread, and every count starts with empty caches, so the same case gives the same
number on every run and machine. C code (msgspec) and Python code outside `dragoman` are not counted.
"""

from __future__ import annotations

import functools
import gc
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

import dragoman
from benchmarks.answer_checks import read_answer
from benchmarks.conversation import AGENT, BIG, SMALL, Conversation, Shape
from benchmarks.fake_answers import MODEL_VERSION, AnswerSpec, encode_answer, encode_stream
from benchmarks.http_client import HttpAnswer
from benchmarks.request_encoders import Style, encode_request
from dragoman.dialects import CLIENTS
from dragoman.dialects.base import ClientDialect, Target
from dragoman.dialects.bedrock import ConverseClient
from dragoman.dialects.gemini.client import GeminiClient
from dragoman.incremental.lru import SHARED_BYTES, set_shared_limit
from dragoman.ir import unseal
from dragoman.translation.exchange import Exchange

OTHER_STYLES: tuple[Style, ...] = ("openai_chat", "openai_responses", "gemini", "bedrock", "amazonq")
_TARGET = Target(model=MODEL_VERSION)
_WARM_UP = 3
_PACKAGE = f"{Path(dragoman.__file__).parent}/"
_SHOWN = 12


class StepCase(msgspec.Struct, frozen=True, kw_only=True):
    """`chunks` 0 means an answer without a stream; of a `running` conversation only the last turn is new."""

    about: str
    style: Style = "anthropic"
    shape: Shape = AGENT
    running: bool = True
    chunks: int = 0
    requests: int = 12


CASES = (
    StepCase(about="120 KB, next turn, whole answer"),
    StepCase(about="1 MB, next turn, whole answer", shape=BIG, requests=4),
    StepCase(about="120 KB, next turn, 20 chunks", chunks=20),
    StepCase(about="120 KB, new history, whole answer", running=False, requests=6),
    StepCase(about="2 KB, 500 chunks one by one", shape=SMALL, running=False, chunks=500, requests=2),
    *(
        StepCase(about=f"{size}, next turn in {style}, whole answer", style=style, shape=shape, requests=6)
        for style in OTHER_STYLES
        for size, shape in (("120 KB", AGENT), ("1 MB", BIG))
    ),
)


def print_steps() -> None:
    for case in CASES:
        steps = count_steps(case)
        print(
            f"{case.about}: {sum(steps.values()) / case.requests:,.0f} instructions per request, most of them in"
        )
        for name, count in steps.most_common(_SHOWN):
            print(f"  {count / case.requests:10,.0f}  {name}")


def count_steps(case: StepCase) -> Counter[str]:
    """Return the instructions for all `case.requests`, by file of the package."""
    _clear_caches()
    steps: Counter[str] = Counter()
    client = _client(case)
    signatures: dict[str, str] = {}
    tokens = map("{:016d}".format, itertools.count())
    conversation = Conversation(case.shape, "steps", stream=bool(case.chunks))
    for number in range(_WARM_UP + case.requests):
        if not case.running:
            conversation = Conversation(case.shape, f"steps{number}", stream=bool(case.chunks))
        order = AnswerSpec(id=f"order{number}", chunks=max(1, case.chunks))
        pieces = encode_stream(order) if case.chunks else [encode_answer(order)]
        body = encode_request(case.style, conversation.body(order))
        exchange = Exchange(client, new_id=tokens.__next__, scope="benchmark")
        with _count_bytecodes(steps if number >= _WARM_UP else Counter()):
            answer = _translate(exchange, body, pieces, signatures)
        signatures.update(exchange.store_entries)
        reply = HttpAnswer(status=200, body=answer, first_byte_s=0, total_s=0, reads=1)
        conversation.take(read_answer(reply, order, case.style, stream=bool(case.chunks)))
    return steps


def _client(case: StepCase) -> ClientDialect:
    if case.style == "gemini":
        return GeminiClient(MODEL_VERSION, "sse" if case.chunks else "whole")
    if case.style == "bedrock":
        return ConverseClient(MODEL_VERSION, stream=bool(case.chunks))
    return CLIENTS[case.style]


def _translate(exchange: Exchange, body: bytes, pieces: list[bytes], signatures: dict[str, str]) -> bytes:
    """Return what the client receives for its body when Google answers with these pieces."""
    exchange.decode(body)
    found = {key: unseal(signatures[key]) for key in exchange.missing_keys if key in signatures}
    exchange.encode(_TARGET, {key: sealed for key, sealed in found.items() if sealed is not None})
    return exchange.open() + b"".join(map(exchange.receive, pieces)) + exchange.finish()


def _clear_caches() -> None:
    set_shared_limit(0)
    set_shared_limit(SHARED_BYTES)
    for name, module in list(sys.modules.items()):
        if name.startswith("dragoman."):
            for value in vars(module).values():
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()


@contextmanager
def _count_bytecodes(steps: Counter[str]) -> Iterator[None]:
    """Count with the garbage collector off: it would run finalizers of unrelated objects."""

    def begin(frame: FrameType, _event: str, _arg: object) -> Callable[..., Any] | None:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        place = frame.f_code.co_filename.removeprefix(_PACKAGE)

        def step(_frame: FrameType, event: str, _arg: object) -> Callable[..., Any]:
            if event == "opcode":
                steps[place] += 1
            return step

        return step

    tracing, collecting = sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(begin)
    try:
        yield
    finally:
        sys.settrace(tracing)
        if collecting:
            gc.enable()
