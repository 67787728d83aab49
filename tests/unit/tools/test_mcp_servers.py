"""MCP servers as they are: real programs that answer, report, hang, die, change and leave children behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.config.tools import McpServer
from dragoman.ir import Media, Text, ToolCall
from dragoman.tools.definition import Context, ToolDefinition, ToolOutput
from dragoman.tools.errors import ToolFailed
from dragoman.tools.handler import Handler
from dragoman.tools.mcp import McpServers
from dragoman.tools.mcp.servers import McpTiming
from dragoman.tools.registry import Registry

HERE = Path(__file__).parent
SAMPLE = McpServer(command=(sys.executable, str(HERE / "mcp_sample.py")), env={"GIVEN": "yes"})
LEGACY = McpServer(command=(sys.executable, str(HERE / "mcp_legacy.py")))
QUICK = McpTiming(start_s=60, wait_s=60, first_pause_s=0.01)
WAIT_S = 60.0


async def call(
    servers: McpServers, name: str, args: dict[str, Any] | None = None, context: Context | None = None
) -> ToolOutput:
    definition = find(servers, name)
    assert definition is not None, name
    assert definition.execute is not None
    output = await definition.execute(args or {}, context or Context())
    assert isinstance(output, ToolOutput)
    return output


def find(servers: McpServers, name: str) -> ToolDefinition | None:
    return next((one for one in servers.definitions() if one.name == name), None)


async def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        await asyncio.sleep(0.02)


def words(output: ToolOutput) -> str:
    return "\n".join(part.text for part in output.content if isinstance(part, Text))


def alive(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


async def test_the_tools_of_a_server_work_like_our_own() -> None:
    heard: list[str] = []
    async with McpServers({"py": SAMPLE}, timing=QUICK) as servers:
        assert servers.problems == {}
        add = find(servers, "mcp__py__add")
        assert add is not None
        assert (add.risk, add.description, add.timeout_s) == ("read", "Add two numbers.", 60)
        assert json.loads(add.schema)["required"] == ["a", "b"]
        assert (await call(servers, "mcp__py__add", {"a": 1, "b": 2})).response == b'{"result":3}'
        failed = await call(servers, "mcp__py__fail", {"why": "out of luck"})
        assert failed.is_error
        assert "out of luck" in words(failed)
        assert (await call(servers, "mcp__py__picture")).content == (
            Media(mime="image/png", data="iVBORw0KGgo="),
        )
        await call(servers, "mcp__py__steps", context=Context(progress=heard.append))
        assert heard == ["step 1 (1 of 2)", "step 2 (2 of 2)"]


async def test_a_server_gets_no_key_and_does_not_start_in_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "secret")
    monkeypatch.chdir(tmp_path)
    async with McpServers({"py": SAMPLE}, timing=QUICK) as servers:
        said = json.loads(words(await call(servers, "mcp__py__environment")))
    assert said["env"]["GIVEN"] == "yes"
    assert "secret" not in said["env"].values()
    assert said["cwd"] == str(Path.home().resolve())


async def test_a_server_that_dies_is_an_error_result_and_starts_again() -> None:
    async with McpServers({"py": SAMPLE}, timing=QUICK) as servers:
        with pytest.raises(
            ToolFailed, match="the MCP server py went away while crash ran; it is being restarted"
        ):
            await call(servers, "mcp__py__crash")
        assert (await call(servers, "mcp__py__add", {"a": 2, "b": 2})).response == b'{"result":4}'
        assert servers.problems == {}


async def test_a_server_that_stays_dead_is_a_problem_with_its_last_words(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    server = McpServer(command=(*SAMPLE.command, str(flag)))
    timing = McpTiming(start_s=60, wait_s=0.05, first_pause_s=0.01, longest_pause_s=0.02)
    async with McpServers({"py": server}, timing=timing) as servers:
        with pytest.raises(ToolFailed):
            await call(servers, "mcp__py__crash", {"flag": str(flag)})
        await eventually(lambda: "not today" in servers.problems.get("py", ""))
        with pytest.raises(ToolFailed, match=r"py is not running: .*not today"):
            await call(servers, "mcp__py__add", {"a": 1, "b": 1})
        flag.unlink()
        await eventually(lambda: not servers.problems)


async def test_an_idle_server_that_dies_is_noticed_without_a_call() -> None:
    async with McpServers({"py": SAMPLE}, timing=McpTiming(start_s=60, first_pause_s=600)) as servers:
        pid = int(words(await call(servers, "mcp__py__spawn")))
        parent = int(Path(f"/proc/{pid}/stat").read_text().split()[3])
        os.kill(parent, signal.SIGKILL)
        await eventually(lambda: servers.problems == {"py": "it ended"})
        await eventually(lambda: not alive(pid))


async def test_news_of_tools_are_taken_up_from_new_and_old_servers() -> None:
    changes: list[tuple[str, int]] = []
    both = {"new": SAMPLE, "old": LEGACY}
    async with McpServers(
        both, timing=QUICK, on_change=lambda name, tools: changes.append((name, len(tools)))
    ) as servers:
        before = dict(changes)
        for name in both:
            await call(servers, f"mcp__{name}__grow")
            await eventually(lambda name=name: find(servers, f"mcp__{name}__grown") is not None)  # type: ignore[misc]
        assert dict(changes) == {name: count + 1 for name, count in before.items()}


async def test_a_tool_without_a_usable_name_is_left_out_and_pages_are_read_to_the_end() -> None:
    async with McpServers({"old": LEGACY}, timing=QUICK) as servers:
        names = [one.name for one in servers.definitions()]
        assert names == ["mcp__old__twice", "mcp__old__answer", "mcp__old__grow", "mcp__old__lie"]
        answer = find(servers, "mcp__old__answer")
        assert answer is not None
        assert answer.description == "A title"


@pytest.mark.parametrize(
    ("tool", "args", "reason"),
    [
        ("answer", {"refuse": True}, "old: not like this"),
        ("answer", {"result": {"content": "no list"}}, "old answered wrongly: "),
        ("lie", {}, "old answered wrongly: "),
    ],
)
async def test_a_wrong_answer_is_an_error_result_and_the_server_lives(
    tool: str, args: dict[str, Any], reason: str
) -> None:
    async with McpServers({"old": LEGACY}, timing=QUICK) as servers:
        with pytest.raises(ToolFailed, match=reason):
            await call(servers, f"mcp__old__{tool}", args)
        good = {"result": {"content": [{"type": "text", "text": "fine"}]}}
        assert words(await call(servers, "mcp__old__answer", good)) == "fine"


async def test_a_time_out_tells_the_server_to_stop(tmp_path: Path) -> None:
    started, stopped = tmp_path / "started", tmp_path / "stopped"
    async with McpServers({"py": SAMPLE}, timing=QUICK) as servers:
        handler = Handler(Registry(servers.definitions()))
        args = json.dumps({"started": str(started), "stopped": str(stopped)}).encode()
        work = asyncio.ensure_future(handler.execute(ToolCall(id="1", name="mcp__py__hang", args=args)))
        await eventually(started.exists)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        await eventually(stopped.exists)
        result = await handler.execute(ToolCall(id="2", name="mcp__py__add", args=b'{"a":1,"b":1}'))
        assert not result.is_error


async def test_nothing_lives_on_after_the_end() -> None:
    async with McpServers({"py": SAMPLE}, timing=QUICK) as servers:
        child = int(words(await call(servers, "mcp__py__spawn")))
        server = int(Path(f"/proc/{child}/stat").read_text().split()[3])
        assert alive(child)
        assert alive(server)
    assert not alive(server)
    await eventually(lambda: not alive(child))


async def test_a_server_that_never_answers_or_cannot_start_does_not_hold_up_the_others(
    tmp_path: Path,
) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    servers = McpServers(
        {
            "silent": McpServer(command=("sleep", "300")),
            "broken": McpServer(command=(str(broken),)),
            "nonsense": McpServer(command=("echo", "hello")),
            "unreachable": McpServer(url="http://127.0.0.1:9/mcp"),
        },
        timing=McpTiming(start_s=3, first_pause_s=600),
    )
    async with servers:
        assert servers.definitions() == ()
        problems = servers.problems
    assert set(problems) == {"silent", "broken", "nonsense", "unreachable"}
    assert problems["silent"] == "it did not start within 3 s"
    assert "not found" in problems["broken"]


async def test_leaving_while_servers_still_start_stops_them() -> None:
    servers = McpServers({"silent": McpServer(command=("sleep", "300.31459"))})
    entering = asyncio.ensure_future(servers.__aenter__())
    await eventually(lambda: bool(find_processes("300.31459")))
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering
    await eventually(lambda: not find_processes("300.31459"))


def find_processes(word: str) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            argv = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if argv.split(b"\0")[:2] == [b"sleep", word.encode()] or argv.endswith(
            b"/sleep\0" + word.encode() + b"\0"
        ):
            found.append(folder.name)
    return found
