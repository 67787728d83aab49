"""CPU of the emulator per request, in this process, compared with `json.loads` of the same bytes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.conversation import AGENT, SMALL, Conversation, Shape
from benchmarks.fake_answers import AnswerSpec
from dragoman.dialects import anthropic
from dragoman.dialects.base import Target
from dragoman.emulator import parsed_request
from dragoman.emulator.models import find_model
from dragoman.emulator.routes import find_route
from dragoman.emulator.service import EmulatorService, HttpRequest
from dragoman.emulator.signature import Signer
from dragoman.emulator.validate import check_request, parse_request
from dragoman.incremental.lru import LruCache
from dragoman.translation.exchange import Exchange

_MODEL = "gemini-3.8-flash"
_PATH = f"/v1beta/models/{_MODEL}:generateContent"
#: The shape of the request, and whether its tools are declared with the older `parameters` message.
_WORKLOADS = {
    "2 KB": (SMALL, False),
    "120 KB": (AGENT, False),
    "120 KB, `parameters`": (AGENT, True),
    "1 MB": (Shape(60_000, 15_000, 780_000), False),
}
_TURNS = 25
_CACHE_BYTES = 32 * 1024 * 1024


def print_emulator() -> None:
    """Print a line per size and state of the cache; each number is the CPU time of the fastest request."""
    print(
        f"{'':22}{'':11}{'json.loads':>11}{'validation':>12}{'x loads':>9}{'answer':>9}{'x loads':>9}   (ms)"
    )
    for name, (shape, proto_schemas) in _WORKLOADS.items():
        sent = list(bodies(shape, proto_schemas))
        for state, prepare in (("cold", _clear_cache), ("next turn", _keep_cache)):
            loads, validation, answer = _measure(sent, prepare)
            print(
                f"{name:22}{state:11}{loads:>11.3f}{validation:>12.3f}{validation / loads:>9.2f}"
                f"{answer:>9.3f}{answer / loads:>9.2f}"
            )


def bodies(shape: Shape, proto_schemas: bool) -> Iterator[bytes]:
    """Yield an agent's requests as the gateway encodes them, each with one step more than the one before."""
    conversation = Conversation(shape, "emulator", stream=False)
    for turn in range(_TURNS + 1):
        exchange = Exchange(anthropic, new_id=lambda: "token")
        exchange.decode(conversation.body(AnswerSpec(id=f"turn{turn}")))
        yield exchange.encode(Target(model=_MODEL, proto_schemas=proto_schemas))
        conversation.take([_call(turn)])


def _call(turn: int) -> dict[str, object]:
    return {
        "type": "tool_use",
        "id": f"toolu_{turn:024x}",
        "name": "Read",
        "input": {"file_path": f"/{turn}"},
    }


def _measure(sent: list[bytes], prepare: Callable[[], None]) -> tuple[float, ...]:
    """Return the milliseconds of json.loads, of validation and of an answer for the same requests."""
    works: tuple[Callable[[bytes], object], ...] = (
        json.loads,
        _validate,
        partial(_answer, EmulatorService("bench")),
    )
    return tuple(_fastest(work, sent, prepare) for work in works)


def _fastest(work: Callable[[bytes], object], sent: list[bytes], prepare: Callable[[], None]) -> float:
    first, *later = sent
    _clear_cache()
    work(first)
    spent: list[float] = []
    for body in later:
        prepare()
        began = time.process_time_ns()
        work(body)
        spent.append((time.process_time_ns() - began) / 1e6)
    return min(spent)


def _validate(body: bytes) -> None:
    route, model = find_route("POST", _PATH), find_model(_MODEL, "v1beta")
    assert route is not None
    assert model is not None
    check_request(parse_request(body, route.backend), model, route.backend, Signer("bench"))


def _answer(service: EmulatorService, body: bytes) -> None:
    answer = service.handle(HttpRequest(method="POST", path=_PATH, body=body))
    if answer.status != 200:
        raise SystemExit(f"the emulator refused: {answer.body!r}")


def _clear_cache() -> None:
    parsed_request.FRAGMENT_CACHE = LruCache(_CACHE_BYTES)


def _keep_cache() -> None:
    """Keep the cache of the previous turn."""


if __name__ == "__main__":
    print_emulator()
