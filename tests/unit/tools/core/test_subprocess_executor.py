"""A tool in a process of its own: it can be killed, with everything it started."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.ir import ToolCall
from dragoman.tools import Context, Handler, InvalidTool, Registry, ToolDefinition, result_text
from dragoman.tools import subprocess_worker as children
from dragoman.tools.subprocess_executor import (
    FunctionReference,
    WorkerMessage,
    WorkerRequest,
    subprocess_executor,
)
from tests.unit.tools.core import sample_tools


def asking(name: str, **args: Any) -> ToolCall:
    return ToolCall(id="c", name=name, args=msgspec.json.encode(args))


async def test_it_answers_like_any_other_tool() -> None:
    handler = Handler(Registry([sample_tools.choosy, sample_tools.asleep]))
    results = await handler.execute_all(
        [asking("choosy", what="tea"), asking("asleep", text="abc"), asking("choosy", what="print")]
    )
    assert [result_text(one) for one in results] == ['{"what":"tea"}', "cba", '{"what":"print"}']


@pytest.mark.parametrize(
    ("what", "outcome", "words"),
    [
        ("refuse", "refused", "not here"),
        ("fail", "failed", "did not work"),
        ("crash", "failed", "KeyError: 'lost'"),
        ("die", "failed", "the tool's process ended with code 7 before it answered"),
    ],
)
async def test_it_fails_like_any_other_tool(what: str, outcome: str, words: str) -> None:
    done = await Handler(Registry([sample_tools.choosy])).run(asking("choosy", what=what))
    assert (done.outcome, result_text(done.result)) == (outcome, words)


async def test_a_loop_that_never_listens_is_killed() -> None:
    told: list[str] = []
    began = asyncio.Event()

    def progress(line: str) -> None:
        told.append(line)
        began.set()

    handler = Handler(Registry([sample_tools.busy]))
    task = asyncio.create_task(handler.run(asking("busy", seconds=600), Context(progress=progress)))
    await asyncio.wait_for(began.wait(), 30)
    running = _processes()
    assert running
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert told == ["began"]
    assert not set(running) & set(_processes()), "it is gone when the cancellation is"


async def test_what_it_started_does_not_outlive_it() -> None:
    result = await Handler(Registry([sample_tools.choosy])).execute(asking("choosy", what="spawn"))
    sleeper = Path("/proc") / result_text(result) / "stat"
    for _ in range(200):
        if not sleeper.exists() or sleeper.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        await asyncio.sleep(0.05)
    pytest.fail("the process that the tool started still runs")


async def test_it_knows_for_whom_it_works() -> None:
    handler = Handler(Registry([sample_tools.busy]))
    result = await handler.execute(asking("busy", seconds=0), Context(session="s"))
    assert result_text(result) == "s done"


async def test_a_bare_executor_can_have_its_own_process_too() -> None:
    definition = ToolDefinition.from_schema(
        "t", {"type": "object"}, sample_tools.plain_executor, process=True
    )
    result = await Handler(Registry([definition])).execute(asking("t", a=1), Context(session="s"))
    assert result_text(result) == '{"got":{"a":1},"session":"s"}'
    assert ToolDefinition.from_schema("t", {}, None, process=True).execute is None


async def test_an_answer_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.tools.subprocess_executor.MAX_MESSAGE_BYTES", 1000)
    done = await Handler(Registry([sample_tools.choosy])).run(asking("choosy", what="long"))
    assert result_text(done.result) == "the answer is longer than 1000 bytes"


async def test_modules_are_never_taken_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docstring_parser.py").write_text("raise SystemExit('hostile')")
    (tmp_path / "msgspec.py").write_text("raise SystemExit('hostile')")
    monkeypatch.chdir(tmp_path)
    done = await Handler(Registry([sample_tools.choosy])).run(asking("choosy", what="tea"))
    assert done.outcome == "ok"


@pytest.mark.parametrize(
    "function",
    [lambda: 1, sample_tools.Service().note, print, sample_tools.Service()],
    ids=["lambda", "method", "builtin", "object"],
)
def test_what_another_process_could_not_find_is_refused(function: Any) -> None:
    with pytest.raises(InvalidTool, match="must be a function of a module"):
        subprocess_executor(function)


def test_a_program_without_a_module_is_found_by_its_file(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import asyncio\n"
        "from dragoman import Handler, Registry, ToolCall, result_text, tool\n"
        "@tool(process=True)\n"
        "def double(a: int) -> int:\n"
        "    return 2 * a\n"
        "if __name__ == '__main__':\n"
        "    call = ToolCall(id='1', name='double', args=b'{\"a\":21}')\n"
        "    print(result_text(asyncio.run(Handler(Registry([double])).execute(call))))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "42\n"


def order(
    qualname: str, *, module: str = sample_tools.__name__, plain: bool = False, **args: Any
) -> WorkerRequest:
    reference = FunctionReference(module=module, qualname=qualname, file=sample_tools.__file__, plain=plain)
    return WorkerRequest(reference=reference, args=args, session="s", caller="c")


def test_the_other_side_tells_progress_and_one_end() -> None:
    told: list[WorkerMessage] = []
    last = children.run_request(order("with_context", text="t"), told.append)
    assert (told, last.kind) == ([WorkerMessage(kind="progress", text="working on t")], "output")
    assert result_text(last.output) == "s/c: t"
    assert result_text(children.run_request(order("asleep", text="ab"), told.append).output) == "ba"
    kinds = [
        children.run_request(order("choosy", what=one), told.append).kind
        for one in ("refuse", "fail", "crash")
    ]
    assert kinds == ["refused", "failed", "error"]
    assert children.run_request(order("plain_executor", plain=True), told.append).kind == "output"
    for module in ("__main__", "no.such.module"):
        assert children.run_request(order("google", module=module, city="a"), told.append).kind == "output"


def test_a_module_whose_own_imports_fail_is_not_loaded_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "needy_tools.py").write_text("import not_installed_anywhere")
    monkeypatch.syspath_prepend(str(tmp_path))
    frame = children.run_request(order("x", module="needy_tools"), print)
    assert "not_installed_anywhere" in frame.text


def test_the_process_speaks_lines_of_json(monkeypatch: pytest.MonkeyPatch) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dragoman.tools.subprocess_worker"],
        input=msgspec.json.encode(order("choosy", what="print")),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert msgspec.json.decode(done.stdout, type=WorkerMessage).kind == "output"
    assert done.stderr == b"this is no answer\n"


def _processes() -> list[int]:
    mine = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
            if b"dragoman.tools.subprocess_worker" in command and int(parent) == os.getpid():
                mine.append(int(entry.name))
    return mine
