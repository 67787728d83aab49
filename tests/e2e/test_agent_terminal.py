"""`dragoman chat` and `dragoman run` in a real terminal, on a real gateway with the emulator behind it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from tests.e2e.directives import use
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.e2e.terminal import ALT_ENTER, CTRL_C, CTRL_D, ENTER, UP, Terminal

DRAGOMAN = [sys.executable, "-m", "dragoman"]
ASKED = "ne[v]er: "

Open = Callable[..., Terminal]


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp("gateway") / "home")
    gateway.start()
    yield gateway
    gateway.stop()


@pytest.fixture
def env(tmp_path: Path, emulated: Gateway) -> dict[str, str]:
    """Nothing of the caller's reaches the program; the gateway that runs already is found."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return kept | {
        "HOME": str(tmp_path),
        "TERM": "xterm-256color",
        "DRAGOMAN_HOME": str(tmp_path / "state"),
        "DRAGOMAN_SERVER_PORT": emulated.url.rpartition(":")[2],
        "DRAGOMAN_GATEWAY_KEY": GATEWAY_KEY,
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.rs").write_text("fn main() {}\n")
    (folder / "notes.txt").write_text("remember the milk\n")
    return folder


@pytest.fixture
def chat(project: Path, env: dict[str, str]) -> Iterator[Open]:
    opened: list[Terminal] = []

    def start(*args: str, columns: int = 100, **more: str) -> Terminal:
        command = [*DRAGOMAN, "chat", *args]
        terminal = Terminal(command, cwd=project, env=env | more, columns=columns)
        opened.append(terminal)
        terminal.wait("/help lists the commands")
        terminal.wait(">")
        return terminal

    yield start
    for terminal in opened:
        terminal.close()


def test_a_question_is_typed_and_the_answer_streams(chat: Open) -> None:
    terminal = chat()
    terminal.type("use read_file with " + '{"path": "notes.txt"}' + ENTER)
    terminal.wait("● read_file notes.txt")
    terminal.wait("✓ remember the milk")
    terminal.wait("read_file returned:")
    terminal.wait("tokens in")
    terminal.type("/usage" + ENTER)
    terminal.wait("2 requests")
    terminal.wait(">")
    terminal.type(CTRL_D)
    terminal.wait("saved; continue with dragoman chat --resume chat-")
    assert terminal.finish() == 0
    assert b"\x1b[34m" in terminal.raw


def test_a_write_shows_its_diff_and_waits_for_a_yes(chat: Open, project: Path) -> None:
    terminal = chat()
    terminal.type(use("write_file", {"path": "notes.txt", "content": "buy bread\n"}) + ENTER)
    shown = terminal.wait(ASKED)
    assert "-remember the milk" in shown
    assert "+buy bread" in shown
    assert (project / "notes.txt").read_text() == "remember the milk\n"
    terminal.type("what?" + ENTER)
    terminal.wait(ASKED)
    terminal.type("y" + ENTER)
    terminal.wait("✓ notes.txt written")
    terminal.wait("tokens in")
    assert (project / "notes.txt").read_text() == "buy bread\n"

    terminal.type("/undo" + ENTER)
    terminal.wait("notes.txt written")
    terminal.wait(">")
    assert (project / "notes.txt").read_text() == "remember the milk\n"


@pytest.mark.parametrize(
    ("key", "written", "asked_again"),
    [("n", False, True), ("a", True, False), ("v", False, False), (CTRL_D, False, True)],
    ids=["no", "always", "never", "Ctrl-D"],
)
def test_every_answer_means_what_it_says(
    chat: Open, project: Path, key: str, written: bool, asked_again: bool
) -> None:
    terminal = chat()
    order = use("write_file", {"path": "new.txt", "content": "one\n"}) + ENTER
    terminal.type(order)
    terminal.wait(ASKED)
    terminal.type(key if key == CTRL_D else key + ENTER)
    terminal.wait("✓" if written else "✗ the user declined")
    terminal.wait("tokens in")
    assert (project / "new.txt").exists() == written
    (project / "new.txt").unlink(missing_ok=True)

    terminal.type(order)
    if asked_again:
        terminal.wait(ASKED)
        terminal.type("n" + ENTER)
    terminal.wait("✓" if written else "✗ the user declined")
    assert ("ne[v]er" in terminal.wait("tokens in")) is False
    assert (project / "new.txt").exists() == written


def test_ctrl_c_stops_the_turn_and_not_the_session(chat: Open, env: dict[str, str]) -> None:
    terminal = chat("--yolo", DRAGOMAN_TOOLS_RUN_COMMAND="true")
    terminal.type(use("run_command", {"command": ["sleep", "98765"]}) + ENTER)
    terminal.wait("● run_command")
    terminal.wait(" s")  # the clock of the running call
    assert _running("98765")
    terminal.type(CTRL_C)
    terminal.wait("stopped")
    assert not _running("98765")
    terminal.type("say still here" + ENTER)
    terminal.wait("still here")
    terminal.wait("tokens in")


def test_ctrl_c_at_a_question_stops_the_turn_and_changes_nothing(chat: Open, project: Path) -> None:
    terminal = chat()
    terminal.type(use("write_file", {"path": "new.txt", "content": "x"}) + ENTER)
    terminal.wait(ASKED)
    terminal.type(CTRL_C)
    terminal.wait("stopped")
    terminal.type("say still here" + ENTER)
    terminal.wait("tokens in")
    assert not (project / "new.txt").exists()


def test_ctrl_c_twice_at_the_prompt_quits(chat: Open) -> None:
    terminal = chat()
    terminal.type(CTRL_C)
    terminal.wait("press Ctrl-C again or Ctrl-D to quit")
    terminal.type("say not yet" + ENTER)
    terminal.wait("tokens in")
    terminal.wait(">")  # between a turn and the prompt there is nothing to stop
    terminal.type(CTRL_C)
    terminal.wait("Ctrl-C again")
    terminal.type(CTRL_C)
    assert terminal.finish() == 0


def test_lines_and_history(chat: Open) -> None:
    terminal = chat()
    terminal.type("say first" + ALT_ENTER + "second\\" + ENTER + "third" + ENTER)
    terminal.wait("tokens in")
    terminal.type("/save trip" + ENTER)
    terminal.wait("saved as trip")
    terminal.type("/quit" + ENTER)
    assert terminal.finish() == 0

    again = chat("--resume")
    assert "resumed trip, 2 messages" in again.text
    again.type(UP + UP + UP + ENTER)
    again.wait("third")
    again.wait("tokens in")


def test_a_session_survives_kill_9_in_the_middle_of_a_tool(chat: Open) -> None:
    terminal = chat("--yolo", "--session", "work", DRAGOMAN_TOOLS_RUN_COMMAND="true")
    terminal.type(use("run_command", {"command": ["sleep", "87654"]}) + ENTER)
    terminal.wait("● run_command")
    while not _running("87654"):
        terminal.type("")
    terminal.kill()

    again = chat("--resume")
    assert "resumed work, 3 messages" in again.text  # the question, the call, and that its result is lost
    again.type("say we go on" + ENTER)
    again.wait("we go on")
    again.wait("tokens in")


def test_the_commands_do_what_help_says(chat: Open) -> None:
    terminal = chat()
    for typed, answer in (
        ("/help", "/compact"),
        ("/tools", "write_file"),
        ("/model", "the model is gemini-flash-latest"),
        ("/model gemini-3.6-flash", "the model is gemini-3.6-flash"),
        ("/usage", "0 requests"),
        ("/undo", "there is nothing to undo"),
        ("/compact", "there is nothing to summarise yet"),
        ("/resume", "there are no saved sessions"),
        ("/resume nobody", "there is no session nobody"),
        ("/halp", "did you mean /help?"),
        ("/xyzzy", "try /help"),
    ):
        terminal.type(typed + ENTER)
        terminal.wait(answer)
    for number in ("one", "two", "three"):
        terminal.type(f"say {number}" + ENTER)
        terminal.wait("tokens in")
    terminal.type("/save mine" + ENTER)
    terminal.wait("saved as mine")
    terminal.type("/compact" + ENTER)
    terminal.wait("6 messages became 5")
    terminal.type("/clear" + ENTER)
    terminal.wait("the old one is saved as mine")
    terminal.type("/save mine" + ENTER)
    terminal.wait("there is already a session mine")
    terminal.type("/resume" + ENTER)
    terminal.wait("5 messages")
    terminal.type("/resume mine" + ENTER)
    terminal.wait("resumed mine, 5 messages")
    terminal.type("/undo" + ENTER)
    terminal.wait("undone: say three")


@pytest.mark.parametrize("more", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
def test_no_colours_where_they_are_not_wanted(chat: Open, more: dict[str, str]) -> None:
    terminal = chat(**more)
    terminal.type("say **plain** words" + ENTER)
    terminal.wait("**plain** words")
    terminal.wait("tokens in")
    assert b"\x1b[2m" not in terminal.raw
    assert b"\x1b[34m" not in terminal.raw


def test_a_narrow_terminal_is_not_overrun(chat: Open) -> None:
    terminal = chat(columns=30)
    words = " ".join(["word"] * 30)
    terminal.type(f"say {words}" + ENTER)
    terminal.wait("word word word word word word\n")
    said = terminal.wait("1 requests")
    assert all(len(line) <= 30 for line in said.splitlines())


def test_nobody_is_asked_where_nobody_can_be(project: Path, env: dict[str, str]) -> None:
    typed = use("write_file", {"path": "new.txt", "content": "x"}) + "\nn\nsay bye\n"
    done = subprocess.run(
        [*DRAGOMAN, "chat"], cwd=project, env=env, input=typed, capture_output=True, text=True, check=True
    )
    assert "✗ the user declined" in done.stdout
    assert "bye" in done.stdout
    assert not (project / "new.txt").exists()


# dragoman run


def run(project: Path, env: dict[str, str], *args: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [*DRAGOMAN, "run", *args]
    return subprocess.run(
        command, cwd=project, env=env, input=given, capture_output=True, text=True, check=False
    )


def test_run_gives_the_answer_on_stdout_and_the_rest_on_stderr(project: Path, env: dict[str, str]) -> None:
    done = run(project, env, 'use list_files with {"pattern": "**/*.rs"} then say it is all there')
    assert (done.returncode, done.stdout) == (0, "it is all there\n")
    assert "● list_files **/*.rs" in done.stderr
    assert "src/main.rs" in done.stderr


def test_run_json_is_one_event_per_line(project: Path, env: dict[str, str]) -> None:
    order = use("read_file", {"path": "nowhere.txt"})
    done = run(project, env, "--json", "--session", "s1", "-", given=order)
    events = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert events[0] == {"type": "start", "session": "s1", "model": "gemini-flash-latest"}
    assert [event["args"] for event in events if event["type"] == "call"] == [{"path": "nowhere.txt"}]
    (result,) = [event for event in events if event["type"] == "result"]
    assert result["is_error"]
    assert events[-1]["type"] == "stop"
    assert events[-1]["reason"] == "done"
    assert events[-1]["usage"]["requests"] == 2


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--max-steps", "1", use("list_files", {})), 3, "max steps"),
        (("--max-tokens", "1", use("list_files", {})), 3, "max tokens"),
        (("--model", "gemini-1.5-pro", "say hi"), 1, "failed"),
        (("  ",), 2, "no task given"),
        (("--root", "/nowhere", "say hi"), 2, "not a folder"),
        (("--yolo", "--read-only", "say hi"), 2, "contradict"),
        (("--max-steps", "0", "say hi"), 2, "1 or more"),
        (("--session", "*x", "say hi"), 1, "printable"),
    ],
)
def test_the_exit_code_says_how_it_ended(
    project: Path, env: dict[str, str], args: tuple[str, ...], code: int, words: str
) -> None:
    done = run(project, env, *args)
    assert done.returncode == code, done.stderr
    assert words in done.stderr


def test_run_asks_nobody_and_read_only_beats_a_yes(project: Path, env: dict[str, str]) -> None:
    order = use("write_file", {"path": "new.txt", "content": "x"})
    assert "nobody can be asked" in run(project, env, order).stderr
    assert "--read-only" in run(project, env, "--read-only", order).stderr
    assert not (project / "new.txt").exists()
    assert run(project, env, "--yolo", order).returncode == 0
    assert (project / "new.txt").read_text() == "x"


def test_run_ends_in_good_order_when_time_is_over(project: Path, env: dict[str, str]) -> None:
    order = use("run_command", {"command": ["sleep", "76543"]})
    more = env | {"DRAGOMAN_TOOLS_RUN_COMMAND": "true"}
    done = run(project, more, "--yolo", "--timeout", "2", order)
    assert done.returncode == 3
    assert "2 s are over" in done.stderr
    assert not _running("76543")


def test_run_asks_at_a_terminal(project: Path, env: dict[str, str]) -> None:
    order = use("write_file", {"path": "new.txt", "content": "x"})
    terminal = Terminal([*DRAGOMAN, "run", order], cwd=project, env=env)
    terminal.wait(ASKED)
    terminal.type("y" + ENTER)
    terminal.wait("✓ new.txt created")
    assert terminal.finish() == 0
    assert (project / "new.txt").read_text() == "x"
    terminal.close()


def test_run_is_interrupted_by_ctrl_c(project: Path, env: dict[str, str]) -> None:
    order = use("run_command", {"command": ["sleep", "65432"]})
    more = env | {"DRAGOMAN_TOOLS_RUN_COMMAND": "true"}
    terminal = Terminal([*DRAGOMAN, "run", "--yolo", order], cwd=project, env=more)
    terminal.wait("● run_command")
    terminal.type(CTRL_C)
    terminal.wait("interrupted; the session is run-")
    assert terminal.finish() == 130
    terminal.close()


def _running(word: str) -> bool:
    """Whether a process with this argument is alive."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            argv = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if argv[0].endswith(b"sleep") and word.encode() in argv:
            return True
    return False
