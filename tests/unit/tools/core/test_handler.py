"""Calls to results: whatever a tool does, the model gets an answer it can use."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from dragoman.errors import ConfigError
from dragoman.ir import Text, ToolCall
from dragoman.tools import (
    Context,
    Decision,
    ExecutionRecord,
    Handler,
    Registry,
    ToolDefinition,
    ToolFailed,
    ToolOutput,
    ToolRefused,
    result_text,
)
from dragoman.tools.handler import UNKNOWN_TOOL


class Notebook:
    """A journal that keeps."""

    def __init__(self) -> None:
        self.entries: list[ExecutionRecord] = []

    def record(self, entry: ExecutionRecord) -> None:
        self.entries.append(entry)


class Gate:
    """A guard that says what it was told to."""

    def __init__(self, decision: Decision | Exception) -> None:
        self.decision = decision
        self.asked: list[tuple[str, dict[str, Any], str]] = []

    async def decide(self, definition: ToolDefinition, args: dict[str, Any], context: Context) -> Decision:
        self.asked.append((definition.name, args, context.session))
        if isinstance(self.decision, Exception):
            raise self.decision
        return self.decision


def handler_of(*tools: ToolDefinition | Callable[..., Any], **settings: Any) -> Handler:
    return Handler(Registry(tools), **settings)


def asking(tool: str, call_id: str = "c1", /, **args: Any) -> ToolCall:
    return ToolCall(id=call_id, name=tool, args=msgspec.json.encode(args))


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


async def test_a_call_becomes_a_result_of_its_own_id_and_name() -> None:
    result = await handler_of(add).execute(asking("add", a=2, b=3))
    assert (result.call_id, result.name, result.is_error) == ("c1", "add", False)
    assert result.response == b'{"output":5}'
    assert result_text(result) == "5"


async def test_an_unknown_tool_is_answered_with_the_real_ones() -> None:
    handler = handler_of(add, ToolDefinition(name="read_file"))
    result = await handler.execute(asking("ad"))
    expected = "There is no tool named 'ad'. Did you mean add? The tools are: add, read_file."
    assert (result_text(result), result.is_error) == (expected, True)
    assert handler.metrics[UNKNOWN_TOOL].calls == 1
    assert "ad" not in handler.metrics, "a model can invent any number of names"
    assert "no tools at all" in result_text(await handler_of().execute(asking("x")))
    many = [ToolDefinition(name=f"tool{index}") for index in range(60)]
    assert "tool49 and 10 more." in result_text(await handler_of(*many).execute(asking("zzz")))


async def test_arguments_are_mended_where_that_is_safe_and_refused_where_not() -> None:
    handler = handler_of(add)
    done = await handler.run(asking("add", a="2"))
    assert result_text(done.result) == "3"
    assert [str(note) for note in done.notes] == ["mended add.a: string to integer"]
    done = await handler.run(asking("add", b=2))
    assert (done.outcome, done.result.is_error) == ("invalid", True)
    words = result_text(done.result)
    assert words == "The arguments of add do not fit its schema: arguments: `a` must be given"
    assert handler.metrics["add"].invalid == 1


async def test_strict_mode_mends_nothing() -> None:
    done = await handler_of(add, strict=True).run(asking("add", a="2"))
    assert (done.outcome, done.notes) == ("invalid", ())
    assert 'a: the value is not of type "integer"' in result_text(done.result)
    assert result_text(await handler_of(add, strict=True).execute(asking("add", a=2.0))) == "3"


async def test_strict_mode_says_which_schema_it_could_not_use() -> None:
    remote = ToolDefinition(
        name="far", schema=b'{"$ref":"https://example.com/far"}', execute=lambda *_: "done"
    )
    done = await handler_of(remote, strict=True).run(asking("far", a=1))
    assert done.outcome == "ok"
    assert [(note.kind, note.where) for note in done.notes] == [("dropped", "far")]


def test_strict_mode_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.config.validation.find_spec", lambda _name: None)
    handler_of(add)
    with pytest.raises(ConfigError, match=r"dragoman\[strict\]"):
        handler_of(add, strict=True)


@pytest.mark.parametrize("args", [b"", b"nonsense", b"[1]", b"\xff"])
async def test_arguments_that_are_no_object_are_told_so(args: bytes) -> None:
    done = await handler_of(add).run(ToolCall(id="c", name="add", args=args))
    assert done.outcome == "invalid"


def failing(kind: str) -> None:
    kinds: dict[str, BaseException] = {
        "refused": ToolRefused("not outside the project"),
        "failed": ToolFailed("no such file"),
        "bare": ValueError(),
        "words": KeyError("key"),
        "stop": StopIteration("x"),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt(),
        "timeout": TimeoutError(),
        "group": ExceptionGroup("two", [ValueError("a")]),
        "deep": RecursionError("too deep"),
    }
    raise kinds[kind]


async def failing_async(kind: str) -> None:
    if kind == "cancel":
        raise asyncio.CancelledError
    await asyncio.sleep(0)
    failing(kind)


@pytest.mark.parametrize("tool", [failing, failing_async])
@pytest.mark.parametrize(
    ("kind", "outcome", "words"),
    [
        ("refused", "refused", "not outside the project"),
        ("failed", "failed", "no such file"),
        ("bare", "failed", "ValueError"),
        ("words", "failed", "KeyError: 'key'"),
        ("exit", "failed", "the tool called exit(3)"),
        ("timeout", "failed", "TimeoutError"),
        ("group", "failed", "ExceptionGroup: two (1 sub-exception)"),
        ("deep", "failed", "RecursionError: too deep"),
    ],
)
async def test_whatever_a_tool_raises_is_an_error_result(
    tool: Callable[..., Any], kind: str, outcome: str, words: str
) -> None:
    done = await handler_of(tool).run(asking(tool.__name__, kind=kind))
    assert (done.outcome, result_text(done.result), done.result.is_error) == (outcome, words, True)


@pytest.mark.parametrize(
    ("tool", "kind", "words"),
    [
        (failing, "stop", "RuntimeError: StopIteration"),
        (failing, "interrupt", "RuntimeError: KeyboardInterrupt"),
        (failing_async, "cancel", "the tool cancelled itself"),
    ],
)
async def test_what_would_upset_the_loop_is_an_error_result_too(
    tool: Callable[..., Any], kind: str, words: str
) -> None:
    assert result_text(await handler_of(tool).execute(asking(tool.__name__, kind=kind))) == words


async def test_a_tool_that_is_only_declared_says_so() -> None:
    done = await handler_of(ToolDefinition(name="remote")).run(asking("remote"))
    assert (done.outcome, "only declared" in result_text(done.result)) == ("failed", True)


async def test_a_tool_may_say_itself_that_it_failed() -> None:
    def half() -> ToolOutput:
        return ToolOutput(content=(Text(text="exit code 1"),), is_error=True)

    done = await handler_of(half).run(asking("half"))
    assert (done.outcome, done.result.is_error) == ("failed", True)


async def test_a_result_that_json_cannot_say_is_an_error_not_a_crash() -> None:
    def odd() -> object:
        return object()

    result = await handler_of(odd).execute(asking("odd"))
    assert "a tool cannot return object" in result_text(result)


async def test_time_outs_are_answered_at_once_and_counted() -> None:
    release = threading.Event()
    ended: list[str] = []

    async def slow() -> str:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("slow")
        return "never"

    def stuck(context: Context) -> str:
        release.wait(60)
        context.progress("too late")
        ended.append("stopped" if context.stopped() else "not stopped")
        return "never"

    told: list[str] = []
    quick = ToolDefinition.from_function(slow, name="quick", timeout_s=0.02)
    handler = handler_of(slow, stuck, quick, timeout_s=0.03)
    context = Context(progress=told.append)
    calls = [asking("slow"), asking("stuck"), asking("quick")]
    results = await handler.execute_all(calls, context)
    assert [result_text(result) for result in results] == [
        "slow was stopped: it took longer than 0.03 s.",
        "stuck was stopped: it took longer than 0.03 s.",
        "quick was stopped: it took longer than 0.02 s.",
    ]
    assert ended == ["slow", "slow"], "tasks are really cancelled"
    assert handler.metrics["slow"].timeouts == 1
    release.set()
    for thread in threading.enumerate():
        if thread.name == "dragoman-tool":
            await asyncio.to_thread(thread.join, 10)
    assert "stopped" in ended, "a thread can ask whether anybody still waits"
    assert told == [], "nothing is told after the end"


async def test_results_are_capped_with_a_note() -> None:
    def long() -> str:
        return "é" * 1000

    def wide() -> dict[str, str]:
        return {"text": "x" * 1000}

    def noisy() -> str:
        raise ValueError("y" * 1000)

    handler = handler_of(long, wide, noisy, max_output_bytes=101)
    words = result_text(await handler.execute(asking("long")))
    assert words.startswith("é" * 50 + "\n[output cut: the first 100 of 2000 bytes are shown")
    cut = await handler.execute(asking("wide"))
    assert cut.response == b""
    assert result_text(cut).startswith('{"text":"xxx')
    loud = await handler.execute(asking("noisy"))
    assert loud.is_error
    assert "[output cut" in result_text(loud)


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (Decision(allowed=False, reason="a rule says no", by="rule"), "a rule says no"),
        (Decision(allowed=False), "add was not allowed."),
        (OSError("disk"), "The permission for add could not be checked: OSError: disk"),
    ],
)
async def test_a_guard_that_does_not_say_yes_means_no(decision: Decision | Exception, words: str) -> None:
    ran: list[int] = []

    def add(a: int) -> None:
        ran.append(a)

    gate, journal = Gate(decision), Notebook()
    handler = handler_of(add, guard=gate, journal=journal)
    done = await handler.run(asking("add", a="1"), Context(session="s"))
    assert (done.outcome, result_text(done.result), ran) == ("refused", words, [])
    assert gate.asked == [("add", {"a": 1}, "s")], "the guard sees what would really run"
    assert (journal.entries[0].outcome, journal.entries[0].decision.allowed) == ("refused", False)
    assert handler.metrics["add"].refused == 1


async def test_the_guard_is_not_asked_about_calls_that_cannot_run() -> None:
    gate, journal = Gate(Decision(allowed=True, by="a rule")), Notebook()
    handler = handler_of(add, guard=gate, journal=journal)
    await handler.execute_all([asking("nothing"), asking("add")])
    assert gate.asked == []
    assert [entry.decision.by for entry in journal.entries] == ["not asked", "not asked"]
    assert (await handler.run(asking("add", a=1))).decision.by == "a rule"


async def test_every_execution_is_written_down() -> None:
    ticks = iter([10.0, 10.5, 20.0, 20.25])
    journal = Notebook()
    handler = handler_of(add, journal=journal, clock=lambda: next(ticks), now=lambda: 1_800_000_000.0)
    await handler.execute(asking("add", a="1"), Context(session="s", caller="me"))
    await handler.execute(asking("subtract", a=1))
    first, second = journal.entries
    assert first == ExecutionRecord(
        session="s",
        caller="me",
        tool="add",
        args=b'{"a":1}',
        is_error=False,
        result_bytes=len(b'{"output":2}'),
        duration_s=0.5,
        decision=Decision(allowed=True, by="no guard"),
        at_s=1_800_000_000.0,
    )
    assert (second.tool, second.outcome, second.is_error, second.duration_s) == (
        "subtract",
        "unknown",
        True,
        0.25,
    )
    metrics = handler.metrics["add"]
    assert (metrics.calls, metrics.errors, metrics.seconds, metrics.bytes) == (1, 0, 0.5, 12)


async def test_a_journal_that_cannot_write_is_no_detail() -> None:
    class Full:
        def record(self, entry: ExecutionRecord) -> None:
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        await handler_of(add, journal=Full()).execute(asking("add", a=1))


async def test_deterministic_results_are_kept_within_their_bound_and_errors_never() -> None:
    ran: list[str] = []

    def look(name: str, depth: int = 1) -> str:
        ran.append(name)
        if name == "bad":
            raise ToolFailed("no")
        return name * 100

    cached = ToolDefinition.from_function(look, deterministic=True)
    handler = handler_of(cached, cache_bytes=2_000)
    first = await handler.run(asking("look", "c1", name="a", depth=2))
    again = await handler.run(ToolCall(id="c2", name="look", args=b'{"depth": 2, "name": "a"}'))
    assert (first.cached, again.cached, ran) == (False, True, ["a"])
    assert (again.result.call_id, again.result.content) == ("c2", first.result.content)
    for _ in range(2):
        await handler.execute(asking("look", name="bad"))
    assert ran == ["a", "bad", "bad"]
    for name in "bcdef":
        await handler.execute(asking("look", name=name))
    assert (await handler.run(asking("look", name="a", depth=2))).cached is False, "the oldest had to go"
    assert handler.metrics["look"].cached == 1
    handler.registry.register(
        msgspec.structs.replace(cached, execute=lambda _args, _context: "new"), replace=True
    )
    assert result_text(await handler.execute(asking("look", name="f"))) == "new", (
        "another tool, another memory"
    )


async def test_the_guard_is_asked_before_the_memory() -> None:
    gate = Gate(Decision(allowed=True))
    definition = ToolDefinition.from_function(add, deterministic=True)
    handler = handler_of(definition, cache_bytes=10_000, guard=gate)
    assert not (await handler.run(asking("add", a=1))).cached
    gate.decision = Decision(allowed=False, reason="no more")
    assert (await handler.run(asking("add", a=1))).outcome == "refused"


async def test_tools_that_are_not_deterministic_always_run() -> None:
    ran: list[int] = []
    handler = handler_of(ToolDefinition.from_function(lambda: ran.append(1), name="now"), cache_bytes=10_000)
    await handler.execute_all([asking("now"), asking("now")])
    assert len(ran) == 2


async def test_no_more_run_at_once_than_allowed() -> None:
    running = peak = 0

    async def work() -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0.001)
        running -= 1

    await handler_of(work, max_parallel=3).execute_all([asking("work", str(index)) for index in range(10)])
    assert peak == 3


async def test_a_cancelled_call_stops_its_work_and_is_written_down() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    journal = Notebook()
    handler = handler_of(work, journal=journal)
    task = asyncio.create_task(handler.execute_all([asking("work", "1"), asking("work", "2")]))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
    assert [entry.outcome for entry in journal.entries] == ["cancelled", "cancelled"]
    assert handler.metrics["work"].cancelled == 2
