"""CPU of the translation by stage, in this process: `python -m benchmarks.profile [--calls]`."""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec

from benchmarks.conversation import AGENT, SMALL, Conversation
from benchmarks.fake_answers import AnswerSpec, encode_answer, encode_stream
from dragoman.dialects import anthropic, gemini
from dragoman.dialects.base import Target
from dragoman.dialects.gemini.stream_framing import FrameDecoder
from dragoman.dialects.gemini.wire import decode_chunk
from dragoman.ids import new_id
from dragoman.ir import SealedSignature, unseal
from dragoman.store import SqliteStore
from dragoman.translation.exchange import Exchange
from dragoman.translation.repair import SignatureRestorer, repair
from dragoman.translation.token_estimate import estimate_tokens

_TARGET = Target(model="gemini-flash-latest")
_TURNS = 30
_NEW = 20
_CHUNKS = 500
_STREAMS = 20


class Clock:
    """CPU microseconds by stage; the order of first use is the order of the report."""

    def __init__(self) -> None:
        self._spent: dict[str, list[float]] = {}

    def time(self, stage: str, work: Callable[[], object], per: int = 1) -> None:
        began = time.process_time_ns()
        work()
        spent = time.process_time_ns() - began
        self._spent.setdefault(stage, []).append(spent / 1000 / per)

    def lines(self) -> list[str]:
        return [
            f"  {stage:44}{statistics.median(spent):10.1f}{min(spent):10.1f}"
            for stage, spent in self._spent.items()
        ]


def print_profile() -> None:
    _print_stages("next turn of a running conversation (120 KB), us per request", profile_turns)
    _print_stages("new conversation, known tools (120 KB), us per request", profile_new_conversations)
    _print_stages("new tools (120 KB), us per request", lambda clock: profile_new_conversations(clock, True))
    _print_stages(f"a stream of {_CHUNKS} lone chunks, us per chunk", profile_chunks)


def _print_stages(title: str, profile: Callable[[Clock], None]) -> None:
    clock = Clock()
    profile(clock)
    print(f"\n{title}\n  {'':44}{'median':>10}{'minimum':>10}")
    print("\n".join(clock.lines()))


def profile_turns(clock: Clock) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        store = SqliteStore(path, max_age_s=3600, max_bytes=1 << 28, now=time.time)
        conversation = Conversation(AGENT, new_id(), stream=False)
        for turn in range(_TURNS):
            order = AnswerSpec(id=new_id())
            _profile_request(clock if turn else Clock(), conversation, order, store)


def profile_new_conversations(clock: Clock, unseen_tools: bool = False) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        store = SqliteStore(path, max_age_s=3600, max_bytes=1 << 28, now=time.time)
        for turn in range(_NEW):
            conversation = Conversation(AGENT, new_id(), stream=False, unseen_tools=unseen_tools)
            _profile_request(clock if turn else Clock(), conversation, AnswerSpec(id=new_id()), store)


def _profile_request(clock: Clock, conversation: Conversation, order: AnswerSpec, store: SqliteStore) -> None:
    """Run the stages of a request as `gateway.relay` does; the indented stages repeat parts of those above them."""
    body, answer = conversation.body(order), encode_answer(order)
    exchange = Exchange(anthropic, new_id=new_id, scope="somebody")
    signatures: dict[str, SealedSignature] = {}
    clock.time("Exchange.decode", lambda: exchange.decode(body))
    request = exchange.request
    clock.time("    anthropic.decode_request, all cached", lambda: anthropic.decode_request(body, {}))
    clock.time("    SignatureRestorer, nothing cached", lambda: SignatureRestorer(request.messages))
    clock.time(
        "store.get_values and unseal",
        lambda: signatures.update(_get_signatures(store, exchange.missing_keys)),
    )
    clock.time("Exchange.encode", lambda: exchange.encode(_TARGET, signatures))
    signed = SignatureRestorer(request.messages, "caller").sign(signatures)
    messages, _ = repair(signed, ends_with_user=False)
    ready = msgspec.structs.replace(request, messages=messages)
    clock.time(
        "    SignatureRestorer.sign, all cached",
        lambda: SignatureRestorer(request.messages, "caller").sign(signatures),
    )
    clock.time("    repair", lambda: repair(signed, ends_with_user=False))
    clock.time("    gemini.encode_request", lambda: gemini.encode_request(ready, _TARGET, new_id))
    clock.time("Exchange.receive (whole answer)", lambda: exchange.receive(answer))
    clock.time("Exchange.finish", exchange.finish)
    clock.time("    estimate_tokens", lambda: estimate_tokens(request))
    clock.time("store.set_values", lambda: _finish(store.set_values(exchange.store_entries)))
    conversation.take(_blocks(body, answer, order))


def _blocks(body: bytes, answer: bytes, order: AnswerSpec) -> list[dict[str, object]]:
    exchange = Exchange(anthropic, new_id=lambda: order.id)
    exchange.decode(body)
    exchange.encode(_TARGET)
    exchange.receive(answer)
    content: list[dict[str, object]] = msgspec.json.decode(exchange.finish())["content"]
    return content


def _get_signatures(store: SqliteStore, wanted: Collection[str]) -> dict[str, SealedSignature]:
    found: dict[str, str] = {}

    async def ask() -> None:
        found.update(await store.get_values(wanted))

    _finish(ask())
    return {key: sealed for key, value in found.items() if (sealed := unseal(value)) is not None}


def _finish(work: object) -> None:
    """Run a coroutine that never waits, without an event loop."""
    try:
        work.send(None)  # type: ignore[attr-defined]
    except StopIteration:
        return
    raise RuntimeError("it waited")


def profile_chunks(clock: Clock) -> None:
    for _ in range(_STREAMS):
        order = AnswerSpec(id=new_id(), chunks=_CHUNKS)
        body, chunks = Conversation(SMALL, order.id, stream=True).body(order), encode_stream(order)
        clock.time("Exchange.receive", _receiving(body, chunks), per=len(chunks))
        clock.time("    FrameDecoder.feed", _framing(chunks), per=len(chunks))
        clock.time("    decode_chunk", _decoding(chunks), per=len(chunks))
        clock.time("    GeminiStream.feed (both, and events)", _reading(body, chunks), per=len(chunks))


def _receiving(body: bytes, chunks: list[bytes]) -> Callable[[], object]:
    exchange = Exchange(anthropic, new_id=new_id)
    exchange.decode(body)
    exchange.encode(_TARGET)
    exchange.open()
    return lambda: [exchange.receive(chunk) for chunk in chunks]


def _framing(chunks: list[bytes]) -> Callable[[], object]:
    frames = FrameDecoder()
    return lambda: [frames.feed(chunk) for chunk in chunks]


def _decoding(chunks: list[bytes]) -> Callable[[], object]:
    documents = [chunk[5:].strip() for chunk in chunks]
    return lambda: [decode_chunk(document) for document in documents]


def _reading(body: bytes, chunks: list[bytes]) -> Callable[[], object]:
    request = anthropic.decode_request(body, {}).request
    reader = gemini.encode_request(request, _TARGET, new_id).reader()
    return lambda: [reader.feed(chunk) for chunk in chunks]


def _print_calls() -> None:
    """Print the functions that take most time; the profiler adds to each, so only the order is reliable."""
    for profile in (profile_turns, profile_chunks):
        profiler = cProfile.Profile()
        profiler.runcall(profile, Clock())
        pstats.Stats(profiler).sort_stats("tottime").print_stats("dragoman|msgspec|sqlite|built-in", 25)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("--calls", action="store_true", help="also print the functions that take most time")
    options = parser.parse_args()
    print_profile()
    if options.calls:
        _print_calls()
