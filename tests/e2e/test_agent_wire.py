"""What the agent makes of interrupts, summaries, circles and other models is judged by the strict emulator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman.agent.conversation import AgentConversation, AgentDependencies
from dragoman.agent.events import ApprovalAnswer, ApprovalQuestion, ShowCommand, ShowNotice
from dragoman.agent.model import GeminiAgentModel
from dragoman.agent.runner import MachineApprover
from dragoman.agent.sessions import SessionStore
from dragoman.agent.toolbox import open_toolbox
from dragoman.config.tools import ToolsConfig
from dragoman.ir import ToolCall, ToolResult
from dragoman.store import MemoryStore
from dragoman.tools.definition import Context, ToolDefinition
from dragoman.upstream.client import UpstreamClient
from tests.e2e.directives import plan, together, use
from tests.e2e.fake_google import KEY, Google, emulated_google

MODELS = ["gemini-3.8-flash", "gemini-3.1-pro-preview", "gemini-2.5-flash", "gemini-4-argon"]


class Silent:
    def __init__(self) -> None:
        self.remarks: list[str] = []

    def show(self, shown: ShowCommand) -> None:
        if isinstance(shown, ShowNotice):
            self.remarks.append(shown.text)

    def progress(self, line: str) -> None:
        self.remarks.append(line)

    async def approve(self, question: ApprovalQuestion) -> ApprovalAnswer:
        raise AssertionError(f"nobody expected the question {question}")


class Waiting:
    """A tool that never ends, and a handler beside it that knows the rest."""

    def __init__(self, desk_hands: object) -> None:
        self._hands = desk_hands
        self.started = asyncio.Event()

    async def execute(self, call: ToolCall, context: Context) -> ToolResult:
        if call.name == "wait":
            self.started.set()
            await asyncio.Event().wait()
        result: ToolResult = await self._hands.execute(call, context)  # type: ignore[attr-defined]
        return result


@pytest.fixture(scope="module")
def judge() -> Iterator[Google]:
    with emulated_google() as google:
        yield google


@pytest.fixture
def google(judge: Google) -> Iterator[Google]:
    judge.forget()
    yield judge
    assert judge.refusals() == []


@asynccontextmanager
async def desk_at(
    url: str, root: Path, model: str = MODELS[0]
) -> AsyncIterator[tuple[AgentConversation, Waiting, Silent]]:
    (root / "notes.txt").write_text("remember the milk\n")
    client = UpstreamClient(connect_timeout_s=5, idle_timeout_s=30, total_timeout_s=60)
    approver, screen, sessions = MachineApprover(), Silent(), SessionStore(MemoryStore().turns)
    home = root.parent / "home"
    async with open_toolbox(
        root=root, home=home, settings=ToolsConfig(), servers={}, mode="yolo", approver=approver
    ) as toolbox:
        toolbox.registry.register(ToolDefinition(name="wait", risk="read"))
        hands = Waiting(toolbox.handler)
        setup = AgentDependencies(
            root=root,
            model=GeminiAgentModel(url, KEY, client),
            tool_executor=hands,
            screen=screen,
            sessions=sessions,
            approver=approver,
            tools=toolbox.registry.to_ir,
        )
        yield AgentConversation(setup, await sessions.open("wire"), model), hands, screen
    await client.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "home").mkdir()
    return folder


@pytest.mark.parametrize("model", MODELS)
async def test_google_accepts_what_an_interrupt_leaves(google: Google, root: Path, model: str) -> None:
    async with desk_at(google.url, root, model) as (desk, hands, _):
        read = use("read_file", {"path": "notes.txt"})
        turn = asyncio.create_task(desk.send(plan(read, together(read, use("wait", {})), say="never")))
        await hands.started.wait()
        desk.interrupt()
        assert (await turn).reason == "interrupted"
        assert (await desk.send("say and on")).reason == "done"
        assert google.sentinels() == 0


@pytest.mark.parametrize("model", MODELS)
async def test_google_accepts_the_summary_and_what_follows(google: Google, root: Path, model: str) -> None:
    async with desk_at(google.url, root, model) as (desk, _, screen):
        for number in range(4):
            await desk.send(plan(use("read_file", {"path": "notes.txt"}), say=f"read {number}"))
        assert (await desk.compact()).reason == "done"
        assert screen.remarks[-1] == "16 messages became 9"
        assert (await desk.send(plan(use("read_file", {"path": "notes.txt"}), say="and on"))).reason == "done"
    summary = google.requests()[8]
    assert summary["toolConfig"]["functionCallingConfig"]["mode"] == "NONE"
    assert "Summarise this conversation" in str(summary["contents"][-1])
    assert "Summary of the conversation so far" in str(google.requests()[9]["contents"][0])


async def test_a_long_turn_is_summarised_in_its_middle_with_signatures_kept(
    google: Google, root: Path
) -> None:
    async with desk_at(google.url, root) as (desk, _, screen):
        desk._runner.machine.context_tokens = 3_000
        for number in range(4):
            (root / f"{number}.txt").write_text("many words " * 250)
        steps = [use("read_file", {"path": f"{number}.txt"}) for number in range(4)]
        await desk.send(plan(*steps, say="done"))
        assert "summarising the conversation" in screen.remarks
    assert google.sentinels() == 0


async def test_google_accepts_the_remark_about_a_circle_and_the_loop_ends(google: Google, root: Path) -> None:
    async with desk_at(google.url, root) as (desk, _, _screen):
        read = use("read_file", {"path": "notes.txt"})
        stop = await desk.send(plan(*[read] * 8))
        assert stop.reason == "loop"
        assert (await desk.send("say sorry")).reason == "done"
    assert "3 times with the same arguments" in str(google.requests()[3])


async def test_another_model_goes_on_with_the_conversation(google: Google, root: Path) -> None:
    async with desk_at(google.url, root, "gemini-2.5-flash") as (desk, _, _screen):
        read = use("read_file", {"path": "notes.txt"})
        for model in ("gemini-3.8-flash", "gemini-4-argon", "gemini-2.5-flash"):
            assert (await desk.send(read)).reason == "done"
            desk.use_model(model)
        assert (await desk.send(read)).reason == "done"


async def test_a_refusal_of_google_is_told_and_the_session_goes_on(google: Google, root: Path) -> None:
    async with desk_at(google.url, root) as (desk, _, _screen):
        google.refuse_next(429, "Quota is used up.", "RESOURCE_EXHAUSTED")
        stop = await desk.send("say hi")
        assert (stop.reason, stop.detail) == ("failed", "Quota is used up.")
        assert (await desk.send("say hi")).reason == "done"


async def test_nobody_at_the_other_end_is_told(root: Path) -> None:
    async with desk_at("http://127.0.0.1:9", root) as (desk, _, _screen):
        stop = await desk.send("say hi")
        assert stop.reason == "failed"
        assert "cannot be reached" in stop.detail


async def test_undo_resume_and_clear_change_what_google_is_told(google: Google, root: Path) -> None:
    async with desk_at(google.url, root) as (desk, _, _screen):
        await desk.send("say one")
        await desk.send("say two")
        gone = await desk.undo()
        assert len(gone) == 2
        await desk.send("say three")
        told = str(google.requests()[-1]["contents"])
        assert "say one" in told
        assert "say two" not in told
        await desk.clear()
        await desk.send("say four")
        assert len(google.requests()[-1]["contents"]) == 1
        assert desk.usage.requests == 4
        await desk.resume("wire")
        await desk.send("say five")
        assert "say three" in str(google.requests()[-1]["contents"])
        await desk.rename("copy")
        assert desk.session.name == "copy"
        assert len(desk.history) == 6
