"""The commands of a chat and what becomes of the files, without a terminal and without a model."""

from __future__ import annotations

import asyncio
import io
import signal
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from dragoman import ir
from dragoman.agent.conversation import AgentConversation, AgentDependencies
from dragoman.agent.runner import MachineApprover
from dragoman.agent.sessions import SessionStore
from dragoman.agent.toolbox import backup_ids, open_toolbox, restore_files
from dragoman.agent.tui.chat import COMMANDS, Chat, ChatCommands, Quit, run_slash_command
from dragoman.agent.tui.prompt import EditorPrompt, PlainPrompt, PromptInterrupted, open_prompt
from dragoman.agent.tui.screens import TerminalScreen
from dragoman.agent.tui.style import TerminalStyle
from dragoman.config.tools import McpServer, ToolsConfig
from dragoman.errors import ConfigError
from dragoman.ir import Message, Text, ToolResult
from dragoman.store import MemoryStore
from dragoman.tools.definition import Context
from dragoman.tools.fs import FileLimits, FileTools
from tests.unit.agent.builders import answer, call, user


class Echo:
    """Answers with the last words of the user."""

    async def stream(self, request: ir.Request) -> AsyncIterator[ir.Event]:
        text = str(getattr(request.messages[-1].parts[0], "text", ""))
        for event in answer(f"you said {text}"):
            yield event


class Typed:
    """A person who types these lines; an exception is a key."""

    def __init__(self, *lines: str | type[Exception]) -> None:
        self._lines = list(lines)

    async def read(self, _label: str) -> str:
        if not self._lines:
            raise EOFError
        line = self._lines.pop(0)
        if isinstance(line, str):
            return line
        raise line

    async def ask(self, label: str) -> str:
        return await self.read(label)


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def screen(out: io.StringIO) -> TerminalScreen:
    return TerminalScreen(TerminalStyle(), out)


@pytest.fixture
async def room(tmp_path: Path, screen: TerminalScreen) -> AsyncIterator[ChatCommands]:
    root, home = tmp_path / "project", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    sessions, approver = SessionStore(MemoryStore().turns), MachineApprover()
    async with open_toolbox(root=root, home=home, settings=ToolsConfig(), servers={}) as toolbox:
        setup = AgentDependencies(
            root=root,
            model=Echo(),
            tool_executor=toolbox.handler,
            screen=screen,
            sessions=sessions,
            approver=approver,
            tools=toolbox.registry.to_ir,
        )
        desk = AgentConversation(setup, await sessions.open("first"), "gemini-2.5-flash")
        yield ChatCommands(
            conversation=desk,
            sessions=sessions,
            registry=toolbox.registry,
            restore=lambda _turn: ["restored"],
        )


@pytest.fixture
def talk(room: ChatCommands, screen: TerminalScreen, out: io.StringIO) -> Callable[..., Awaitable[str]]:
    async def run(*lines: str | type[Exception]) -> str:
        await Chat(room, screen, Typed(*lines), TerminalStyle()).run()
        return out.getvalue()

    return run


async def test_a_chat_goes_on_until_the_end_of_input(talk: Callable[..., Awaitable[str]]) -> None:
    said = await talk("hello", "  ", "again", "/quit", "never read")
    assert "you said again" in said
    assert "2 requests" in said
    assert "never read" not in said


async def test_ctrl_c_twice_in_a_row_and_not_otherwise(talk: Callable[..., Awaitable[str]]) -> None:
    keys = (PromptInterrupted, "hello", PromptInterrupted, PromptInterrupted, "unread")
    said = await talk(*keys)
    assert "you said hello" in said
    assert "unread" not in said


async def test_ctrl_c_before_the_prompt_has_the_keyboard_counts(
    room: ChatCommands, screen: TerminalScreen
) -> None:
    class Slow(Typed):
        async def read(self, _label: str) -> str:
            signal.raise_signal(signal.SIGINT)
            await asyncio.Event().wait()
            return ""

    async with asyncio.timeout(10):
        await Chat(room, screen, Slow(), TerminalStyle()).run()


async def test_a_chat_that_is_cancelled_ends(room: ChatCommands, screen: TerminalScreen) -> None:
    class Idle(Typed):
        async def read(self, _label: str) -> str:
            await asyncio.Event().wait()
            return ""

    chat = asyncio.create_task(Chat(room, screen, Idle(), TerminalStyle()).run())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    chat.cancel()
    with pytest.raises(asyncio.CancelledError):
        await chat


async def test_what_goes_wrong_ends_the_turn_and_not_the_chat(talk: Callable[..., Awaitable[str]]) -> None:
    said = await talk("/save *index", "/resume nobody", "hello")
    assert "printable" in said
    assert "there is no session nobody" in said
    assert "you said hello" in said


async def test_every_command_says_something(room: ChatCommands) -> None:
    await room.conversation.send("hello")
    for word in COMMANDS:
        if word == "/quit":
            with pytest.raises(Quit):
                await run_slash_command(room, word)
        else:
            assert await run_slash_command(room, word), word


async def test_a_typo_gets_a_hint(room: ChatCommands) -> None:
    await room.conversation.send("hello")
    assert await run_slash_command(room, "/modle x") == ["unknown command /modle; did you mean /model?"]
    assert await run_slash_command(room, "/resume frist") == [
        "there is no session frist; did you mean first?"
    ]


async def test_undo_brings_the_files_back_too(room: ChatCommands) -> None:
    await room.conversation.send("hello")
    assert await run_slash_command(room, "/undo") == ["undone: hello", "restored"]
    assert room.conversation.history == ()
    assert await run_slash_command(room, "/undo") == ["there is nothing to undo"]


async def test_a_summary_takes_the_place_of_the_old_turns(room: ChatCommands) -> None:
    for number in range(4):
        await room.conversation.send(f"question {number}")
    assert await run_slash_command(room, "/compact") == []
    assert len(room.conversation.history) == 5


# Files


def turn_of(*results: ToolResult) -> list[Message]:
    return [user("change it"), Message(role="user", parts=results)]


def written(text: str, name: str = "write_file", *, is_error: bool = False) -> ToolResult:
    return ToolResult(call_id="c", name=name, content=(Text(text=text),), is_error=is_error)


def test_a_file_changed_twice_is_as_before_the_first_time(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("one")
    files = FileTools(tmp_path / "project", limits=FileLimits(state=tmp_path / "home"))
    said = [
        written(files.write_file({"path": path, "content": content}, Context()))
        for path, content in (("a.txt", "two"), ("a.txt", "three"), ("new.txt", "x"))
    ]
    lines = restore_files(files, turn_of(*said))
    assert (tmp_path / "project" / "a.txt").read_text() == "one"
    assert not (tmp_path / "project" / "new.txt").exists()
    assert len(lines) == 2


def test_only_what_a_writing_tool_says_of_itself_is_restored(tmp_path: Path) -> None:
    backup = "01794810992671674368-b00c9696"
    told = f"a.txt written (backup {backup})"
    turn = turn_of(written(told, "read_file"), written(told, is_error=True), written("nothing"))
    assert backup_ids(turn) == []
    (tmp_path / "project").mkdir()
    files = FileTools(tmp_path / "project", limits=FileLimits(state=tmp_path / "home"))
    assert restore_files(files, turn_of(written(told))) == [
        f"not restored: {backup}: there is no such backup"
    ]


# Tools and typing


async def test_tools_of_the_users_own_are_there_and_rules_are_checked(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "tools").mkdir(parents=True)
    (home / "tools" / "mine.py").write_text(
        "from dragoman.tools import tool\n@tool(risk='read')\ndef shout(text: str) -> str:\n    return text.upper()\n"
    )
    settings = ToolsConfig(run_command=True, audit="off")
    async with open_toolbox(root=tmp_path, home=home, settings=settings, servers={}) as toolbox:
        assert {"shout", "run_command", "read_file"} <= set(toolbox.registry.names())
        done = await toolbox.handler.execute(call("c1", "shout", b'{"text": "hi"}'))
        assert done.content == (Text(text="HI"),)
        assert not (home / "audit.jsonl").exists()
    with pytest.raises(ConfigError, match="write_fiel"):
        async with open_toolbox(
            root=tmp_path, home=home, settings=ToolsConfig(deny=("write_fiel",)), servers={}
        ):
            pass


async def test_a_pipe_is_read_line_by_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\ntwo\\\nthree\nlast"))
    prompt = open_prompt(tmp_path, ["/help"])
    assert isinstance(prompt, PlainPrompt)
    assert [await prompt.read("> "), await prompt.read("> "), await prompt.ask("? ")] == [
        "one",
        "two\nthree",
        "last",
    ]
    with pytest.raises(EOFError):
        await prompt.read("> ")


async def test_what_was_typed_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    from prompt_toolkit.application import create_app_session
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output import DummyOutput

    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        prompt = EditorPrompt(tmp_path / "chat_history", ["/help"])
        keys.send_text("first\x1b\rsecond\\\rthird\r")
        assert await prompt.read("> ") == "first\nsecond\nthird"
        keys.send_text("yes\r")
        assert await prompt.ask("? ") == "yes"
        keys.send_text("typed ahead\n")
        assert await prompt.read("> ") == "typed ahead"
        keys.send_text("\x1b[A\x1b[A\r")
        async with asyncio.timeout(10):
            assert await prompt.read("> ")
    kept = tmp_path / "chat_history"
    assert "typed ahead" in kept.read_text()
    assert "yes" not in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


MCP_SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("greeter")
@server.tool()
def greet(name: str) -> str:
    return f"hello {name}"
server.run("stdio")
"""


async def test_tools_of_an_mcp_server_are_tools_like_all_others(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(MCP_SERVER)
    server = McpServer(command=(sys.executable, str(tmp_path / "server.py")))
    missing = McpServer(command=(sys.executable, "-c", "raise SystemExit(3)"))
    async with open_toolbox(
        root=tmp_path,
        home=tmp_path,
        settings=ToolsConfig(allow=("mcp__greeter__*",)),
        servers={"greeter": server, "gone": missing},
    ) as toolbox:
        assert "mcp__greeter__greet" in toolbox.registry.names()
        assert any("MCP server gone" in remark for remark in toolbox.warnings)
        done = await toolbox.handler.execute(call("c1", "mcp__greeter__greet", b'{"name": "you"}'))
        assert "hello you" in str(done)
