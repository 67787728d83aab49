"""Whole conversations of the agent with the strict emulator, as they went over the wire; `DRAGOMAN_BLESS=1` writes
them anew.

Random words (call ids, signatures, backup ids) are numbered in the order in which they appear.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.agent.conversation import AgentConversation, AgentDependencies
from dragoman.agent.events import ApprovalAnswer, ApprovalQuestion, ShowCall, ShowCommand, ShowResult
from dragoman.agent.model import GeminiAgentModel
from dragoman.agent.runner import MachineApprover
from dragoman.agent.sessions import SessionStore
from dragoman.agent.toolbox import open_toolbox
from dragoman.agent.tui.screens import PlainScreen
from dragoman.config.tools import ToolsConfig
from dragoman.store import MemoryStore
from dragoman.upstream.client import UpstreamClient
from tests.e2e.directives import plan, together, use
from tests.e2e.fake_google import KEY, Google, emulated_google
from tests.e2e.recording_server import Exchanged

HERE = Path(__file__).parent
MODEL = "gemini-3.8-flash"

#: scenario -> what the user says, and what they answer when asked
SCENARIOS: dict[str, tuple[tuple[str, ...], tuple[ApprovalAnswer, ...]]] = {
    "list_rust_files": (
        (
            plan(
                "say I will look.", use("list_files", {"pattern": "**/*.rs"}), say="There are two Rust files."
            ),
        ),
        (),
    ),
    "read_a_file": (("read README.md", "say thank you"), ()),
    "write_with_confirmation": (
        (plan(use("write_file", {"path": "src/greet.rs", "content": "// hello\n"}), say="written"),),
        ("once",),
    ),
    "write_declined": (
        (plan(use("write_file", {"path": "README.md", "content": ""}), say="I leave it as it is."),),
        ("no",),
    ),
    "read_a_missing_file": ((use("read_file", {"path": "nowhere.txt"}),), ()),
    "path_traversal_refused": (
        (
            together(
                use("read_file", {"path": "../outside.txt"}),
                use("read_file", {"path": "/etc/passwd"}),
                use("read_file", {"path": "link.txt"}),
            ),
        ),
        (),
    ),
}


class Watched(PlainScreen):
    """A screen whose person answers what the scenario says, after the diff was shown."""

    def __init__(self, out: io.StringIO, answers: tuple[ApprovalAnswer, ...]) -> None:
        super().__init__(out, out)
        self._answers = list(answers)
        self._calls: list[str] = []
        self._done: dict[str, ShowResult] = {}

    def show(self, shown: ShowCommand) -> None:
        """Results of one step in call order, whichever was first."""
        if isinstance(shown, ShowCall):
            self._calls.append(shown.call.id)
        if not isinstance(shown, ShowResult):
            super().show(shown)
            return
        self._done[shown.call.id] = shown
        if len(self._done) == len(self._calls):
            for call in self._calls:
                super().show(self._done[call])
            self._calls, self._done = [], {}

    async def approve(self, question: ApprovalQuestion) -> ApprovalAnswer:
        given = self._answers.pop(0)
        self.line(f"? {question.tool} {question.subject}\n{question.preview}= {given}")
        return given


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "main.rs").write_text("fn main() {}\n")
    (root / "src" / "lib.rs").write_text("pub mod greet;\n")
    (root / "README.md").write_text("# A small project\n")
    (tmp_path / "outside.txt").write_text("secret\n")
    (root / "link.txt").symlink_to("../outside.txt")
    return root


@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_conversation_is_word_for_word(name: str, project: Path) -> None:
    said, answers = SCENARIOS[name]
    with emulated_google() as google:
        transcript = await converse(google, project, said, answers)
        assert google.refusals() == []
        assert google.sentinels() == 0
    golden = HERE / f"{name}.txt"
    if os.environ.get("DRAGOMAN_BLESS"):
        golden.write_text(transcript, "utf-8")
    assert transcript == golden.read_text("utf-8")


def test_nothing_outside_the_project_was_told() -> None:
    for name in SCENARIOS:
        golden = (HERE / f"{name}.txt").read_text("utf-8")
        assert "secret" not in golden
        assert "root:" not in golden


async def converse(
    google: Google, project: Path, said: tuple[str, ...], answers: tuple[ApprovalAnswer, ...]
) -> str:
    out = io.StringIO()
    screen, approver = Watched(out, answers), MachineApprover()
    client = UpstreamClient(connect_timeout_s=5, idle_timeout_s=30, total_timeout_s=60)
    sessions = SessionStore(MemoryStore().turns)
    home = project.parent / "home"
    home.mkdir()
    lines: list[str] = []
    async with open_toolbox(
        root=project, home=home, settings=ToolsConfig(), servers={}, approver=approver
    ) as toolbox:
        setup = AgentDependencies(
            root=Path("/project"),
            model=GeminiAgentModel(google.url, KEY, client),
            tool_executor=toolbox.handler,
            screen=screen,
            sessions=sessions,
            approver=approver,
            tools=toolbox.registry.to_ir,
        )
        desk = AgentConversation(setup, await sessions.open("golden"), MODEL)
        for text in said:
            stop = await desk.send(text)
            screen.close()
            lines += [f"user: {text}", *_wire(google), "seen at the terminal:", out.getvalue().rstrip()]
            lines.append(f"stop: {stop.reason} {stop.detail}".rstrip() + "\n")
            google.forget()
            out.seek(0)
            out.truncate()
    await client.close()
    return _steady("\n".join(lines))


def _wire(google: Google) -> list[str]:
    seen: list[Exchanged] = google._loopback.seen()
    return [line for one in seen for line in _exchange(one)]


def _exchange(one: Exchanged) -> list[str]:
    body = msgspec.json.decode(one.asked.body)
    declared = [tool["name"] for group in body["tools"] for tool in group["functionDeclarations"]]
    chunks = re.split(rb"\r?\n\r?\n", one.answered.body.strip())
    return [
        f"--> {one.asked.verb} {one.asked.target}",
        f"    tools: {', '.join(declared)}",
        *(f"    {_line(content)}" for content in body["contents"]),
        f"<-- {one.answered.status}",
        *(f"    {_line(_without_counts(chunk.removeprefix(b'data: ')))}" for chunk in chunks),
    ]


def _without_counts(chunk: bytes) -> dict[str, Any]:
    """Tokens are counted with the tools' descriptions, which are not what is proven here."""
    return {key: value for key, value in msgspec.json.decode(chunk).items() if key != "usageMetadata"}


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


#: What differs from run to run -> the word that stands for it.
_RANDOM = {
    "call": re.compile(r'(?<="id": ")[^"]+'),
    "signature": re.compile(r'(?<="thoughtSignature": ")[^"]+'),
    "response": re.compile(r'(?<="responseId": ")[^"]+'),
    "backup": re.compile(r"\d{20}-[0-9a-f]{8}"),
    "seconds": re.compile(r"\d+\.\d\d s(?=\n)"),
}


def _steady(text: str) -> str:
    for word, pattern in _RANDOM.items():
        text = pattern.sub(_numbered(word), text)
    return text


def _numbered(word: str) -> Callable[[re.Match[str]], str]:
    known: dict[str, str] = {}

    def name(found: re.Match[str]) -> str:
        if word == "seconds":
            return "0.00 s"
        return known.setdefault(found[0], f"{word}-{len(known) + 1}")

    return name
