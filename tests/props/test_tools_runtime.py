"""Whatever the delays, the failures and the moment of cancellation: results in call order, and nothing left."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.ir import ToolCall
from dragoman.tools import Context, Handler, Registry, ToolDefinition, ToolOutput, result_text
from dragoman.tools.results import cap_output, size_of, to_output

OPEN = {"type": "object"}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
BEHAVIOURS = st.sampled_from(["async", "thread", "raise", "hang", "unknown"])


async def act(args: dict[str, Any], _context: Context) -> str:
    for _ in range(args["delay"]):
        await asyncio.sleep(0)
    if args["how"] in ("hang", "stay"):
        await asyncio.sleep(3600)
    if args["how"] == "raise":
        raise ValueError(args["mark"])
    return str(args["mark"])


def act_in_thread(args: dict[str, Any], _context: Context) -> str:
    return str(args["mark"])


def calls_of(rows: list[tuple[str, int]]) -> list[ToolCall]:
    names = {"thread": "thread", "unknown": "unknown", "hang": "hasty"}
    return [
        ToolCall(
            id=f"c{index}",
            name=names.get(how, "async"),
            args=msgspec.json.encode({"how": how, "delay": delay, "mark": f"mark-{index}"}),
        )
        for index, (how, delay) in enumerate(rows)
    ]


def handler(**more: Any) -> Handler:
    tools = [
        ToolDefinition.from_schema("async", OPEN, act),
        ToolDefinition.from_schema("hasty", OPEN, act, timeout_s=0.005),
        ToolDefinition.from_schema("thread", OPEN, act_in_thread),
    ]
    return Handler(Registry(tools), **more)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(BEHAVIOURS, st.integers(0, 20)), max_size=12), st.integers(1, 5))
def test_results_stand_in_call_order_and_belong_to_their_calls(
    rows: list[tuple[str, int]], width: int
) -> None:
    async def go() -> tuple[list[Any], int]:
        made = handler(max_parallel=width)
        results = await made.execute_all(calls_of(rows))
        assert sum(one.calls for one in made.metrics.values()) == len(rows)
        return results, len(asyncio.all_tasks())

    results, left = asyncio.run(go())
    assert left == 1, "no task outlives its call"
    assert [result.call_id for result in results] == [f"c{index}" for index in range(len(rows))]
    for index, ((how, _), result) in enumerate(zip(rows, results, strict=True)):
        text = result_text(result)
        assert result.is_error == (how in ("raise", "hang", "unknown"))
        if how in ("async", "thread"):
            assert text == f"mark-{index}"
        elif how == "raise":
            assert text == f"ValueError: mark-{index}"
        else:
            assert ("took longer" if how == "hang" else "no tool named") in text


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 10), min_size=1, max_size=8), st.integers(0, 12))
def test_cancellation_at_any_moment_leaves_no_task_and_no_thread(delays: list[int], moment: int) -> None:
    before = threading.active_count()

    async def go() -> int:
        rows = [("stay", delay) for delay in delays]
        task = asyncio.create_task(handler(timeout_s=60).execute_all(calls_of(rows)))
        for _ in range(moment):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        return len(asyncio.all_tasks())

    assert asyncio.run(go()) == 1
    assert threading.active_count() <= before


@given(JSON)
def test_every_json_value_is_a_result(value: Any) -> None:
    output = to_output(value)
    if output.response:
        said = msgspec.json.decode(output.response)
        assert isinstance(said, dict)
        assert said == value or (not isinstance(value, dict) and said == {"output": value})
    else:
        assert value is None or isinstance(value, str)
    result_text(output)


@given(JSON, st.integers(1, 200))
def test_a_capped_result_is_never_much_longer_than_its_cap(value: Any, cap: int) -> None:
    output = to_output(value)
    capped = cap_output(output, cap)
    assert capped == output if size_of(output) <= cap else size_of(capped) <= cap + 100
    assert isinstance(capped, ToolOutput)
